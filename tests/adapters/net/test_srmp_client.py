"""A Sender on real sockets, against a receiver that is built from the digest srmp.md alone."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.net.binary_client import PeerUnavailable
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.srmp_client import ReceiptDesk, Route, SrmpClient, address_towards
from bridge.adapters.net.tls import client_context, server_context
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.model.message import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    EXPRESS,
    JOURNAL_NEGATIVE,
    RECOVERABLE,
    Message,
    Transaction,
)
from bridge.protocol.srmp.sender import Sender, Timing
from bridge.protocol.srmp.sending import Fate
from bridge.wire.srmp.head import split_url
from tests.adapters.net.srmp_receiver import (
    HANG_UP,
    Got,
    Receiver,
    acknowledge_each,
    listening,
)
from tests.support.waiting import eventually
from tests.vectors.srmp import V5_ENVELOPE, multipart

DEADLINE_S = 30.0
SHORT_S = 1.5  # enough for what has to happen before it
QUICK = Timing(retransmit_s=0.05, receipt_wait_s=(0.3,))
REACHED, RECEIVE = (Fate.REACHED, 2), 16384


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


class Client:
    """A SrmpClient with its desk, and what it sends."""

    def __init__(self, url: str, desk: ReceiptDesk, local: Guid, timing: Timing) -> None:
        self.url, self.desk, self.local = url, desk, local
        self.sender = Sender(
            local=local, receipts_to=desk.url, stream_ordinals=count(1).__next__, timing=timing
        )
        self.progress: list[int] = []

    def message(self, ordinal: int, **fields: Any) -> Message:
        given = {"delivery": EXPRESS, "body": b"%d" % ordinal, **fields}
        return Message(
            source=self.local,
            ordinal=ordinal,
            destination=f"DIRECT={self.url}",
            sent_time=int(time.time()),
            **given,
        )

    def step(self, ordinal: int, **fields: Any) -> Message:
        place = Transaction(sequence_id=0, number=0)
        return self.message(ordinal, transaction=place, delivery=RECOVERABLE, **fields)

    async def send(
        self, *messages: Message, deadline_s: float = DEADLINE_S, **options: Any
    ) -> SrmpClient:
        self.sender.add(messages)
        client = SrmpClient(
            self.sender,
            route(self.url, options.pop("tls", None)),
            desk=self.desk,
            on_progress=lambda: self.progress.append(self.sender.done),
            **options,
        )
        await client.run(deadline_s)
        return client


def route(url: str, tls: ssl.SSLContext | None = None) -> Route:
    place = split_url(url)
    return Route(
        url=url,
        target=place.target,
        authority=place.authority,
        address=(place.host, place.port),
        tls=tls,
        server_name="localhost",
    )


@asynccontextmanager
async def client_to(url: str, timing: Timing = QUICK) -> AsyncIterator[Client]:
    local = Guid.random()
    desk = ReceiptDesk(local)
    await desk.open("127.0.0.1", 0)
    try:
        yield Client(url, desk, local, timing)
    finally:
        await desk.close()


def numbers(bodies: list[bytes]) -> list[int]:
    return [int(body) for body in bodies]


# -- regular and durable ----------------------------------------------------------------------


def test_the_request_as_windows_writes_it() -> None:  # srmp.md 1.2, 1.3
    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            await client.send(client.message(9_876, label="mqsender label", body_type=8))
            (got,) = receiver.requests
            envelope = V5_ENVELOPE.decode()
            for old, new in (
                ("MSMQ:MULTICAST=234.1.1.1:8001", client.url),  # <to> as given
                ("uuid:4494@", "uuid:9876@"),
                ("32221eda-9376-46df-b6ed-783091123831", str(client.local)),
                ("20070608T023719", got.find("sentAt") or ""),
                ("20070612T023719", got.find("TTrq") or ""),
            ):
                envelope = envelope.replace(old, new)
            body = multipart(9_976, envelope.encode(), b"9876", str(client.local))
            assert got.content == body
            assert got.head == (
                "POST /msmq/private$/tsimpleq HTTP/1.1\r\n"  # in small letters
                f"Host: 127.0.0.1:{receiver.port}\r\n"
                'Content-Type: multipart/related; boundary="MSMQ - SOAP boundary, 9976"; '
                "type=text/xml\r\n"
                f"Content-Length: {len(body)}\r\n"
                'SOAPAction: "MSMQMessage"\r\n'
                "Proxy-Accept: NonInteractiveClient\r\n\r\n"
            )

    with listening(Receiver()) as receiver:
        run(test(receiver))


@pytest.mark.parametrize("delivery", [EXPRESS, RECOVERABLE])
def test_all_arrive_in_order(delivery: int) -> None:  # SR-70
    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            sent = [client.message(n, delivery=delivery) for n in range(1, 51)]
            done = await client.send(*sent)
            assert numbers(receiver.taken) == list(range(1, 51))
            assert all(got.has("durable") == bool(delivery) for got in receiver.requests)
            assert done.settled == {REACHED: 50}
            assert client.progress == sorted(client.progress)
            assert client.progress[-1] == 50

    with listening(Receiver()) as receiver:
        run(test(receiver))


def test_400_is_final_and_500_is_not() -> None:  # 1.4, SR-75, SR-76
    async def test(receiver: Receiver) -> None:
        receiver.plan = [200, 400, 500, 503, 404, 200]
        async with client_to(receiver.url()) as client:
            done = await client.send(*(client.message(n) for n in (1, 2, 3)))
            assert numbers(receiver.taken) == [1, 3]
            assert [int(got.body) for got in receiver.requests] == [1, 2, 3, 3, 3, 3]
            assert done.settled == {REACHED: 2, (Fate.REFUSED, 0): 1}
            assert client.sender.done == 2

    with listening(Receiver()) as receiver:
        run(test(receiver))


def test_no_answer_is_tried_again() -> None:  # SR-75, SR-71: with the same id
    async def test(receiver: Receiver) -> None:
        receiver.plan = [HANG_UP, 200, HANG_UP, HANG_UP]
        async with client_to(receiver.url()) as client:
            await client.send(client.message(1), client.message(2))
            assert numbers(receiver.taken) == [1, 2]
            assert len({got.find("id") for got in receiver.requests}) == 2

    with listening(Receiver()) as receiver:
        run(test(receiver))


def test_a_receiver_that_starts_later_is_found() -> None:  # SR-76
    async def test() -> None:
        with socket.socket() as place:
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind(("127.0.0.1", 0))  # bound, but not listening: refused
            port = place.getsockname()[1]
            async with client_to(f"http://127.0.0.1:{port}/msmq/private$/q") as client:
                refused = asyncio.Event()
                client.progress = _Watched(refused)
                task = asyncio.create_task(client.send(client.message(1)))
                await refused.wait()
                assert not task.done()
                place.close()
                with listening(Receiver(), port) as receiver:
                    await task
                    assert numbers(receiver.taken) == [1]

    run(test())


class _Watched(list[int]):
    """Tells when something has come of the first POST."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def append(self, done: int) -> None:
        super().append(done)
        if len(self) >= 2:
            self._event.set()


# -- streams ----------------------------------------------------------------------------------


def test_a_stream_with_a_receipt_for_each() -> None:  # SR-51, SR-54, SR-73
    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            done = await client.send(*(client.step(n) for n in range(1, 21)))
            assert numbers(receiver.taken) == list(range(1, 21))
            first = receiver.requests[0]
            assert first.find("sendReceiptsTo") == client.desk.url
            assert re.fullmatch(
                r"http://127\.0\.0\.1:\d+/MSMQ/PRIVATE\$/order_queue\$", client.desk.url
            )
            assert done.settled == {REACHED: 20}

    with listening(Receiver(acknowledge_each)) as receiver:
        run(test(receiver))
        assert set(receiver.answers) == {200}


def test_one_receipt_for_all() -> None:  # SR-36: one receipt covers everything up to lastOrdinal
    def after(receiver: Receiver, got: Got) -> None:
        if got.find("current") == "20":
            receiver.stream_receipt()

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url(), Timing()) as client:
            await client.send(*(client.step(n) for n in range(1, 21)))
            assert [int(got.find("current") or 0) for got in receiver.requests] == [*range(1, 21)]
            assert len({got.find("streamId") for got in receiver.requests}) == 1
            assert client.progress[-1] == 20
            assert set(client.progress) == {0, 20}

    with listening(Receiver(after)) as receiver:
        run(test(receiver))


def test_a_lost_receipt_makes_it_send_all_again() -> None:  # SR-76, SR-37
    lost: list[Got] = []

    def after(receiver: Receiver, got: Got) -> None:
        if got.find("current") == "3":
            lost.append(got)
            if len(lost) == 2:
                receiver.stream_receipt()

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            await client.send(*(client.step(n) for n in (1, 2, 3)))
            assert [got.find("current") for got in receiver.requests] == ["1", "2", "3"] * 2
            assert numbers(receiver.taken) == [1, 2, 3]

    with listening(Receiver(after)) as receiver:
        run(test(receiver))


def test_receipts_out_of_order() -> None:  # SR-51: only upwards; unknown: ignore
    def after(receiver: Receiver, got: Got) -> None:
        if got.find("current") == "4":
            receiver.stream_receipt(4, stream=f"uid:{Guid.random()}\\7")
            receiver.stream_receipt(3)
            receiver.stream_receipt(1)
            receiver.stream_receipt(3)
            receiver.stream_receipt(4)

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url(), Timing()) as client:
            await client.send(*(client.step(n) for n in (1, 2, 3, 4)))
            assert set(client.progress) == {0, 3, 4}

    with listening(Receiver(after)) as receiver:
        run(test(receiver))
        eventually(lambda: receiver.answers == [200] * 5)


def test_a_stream_over_a_bad_line() -> None:  # SR-75
    async def test(receiver: Receiver) -> None:
        receiver.plan = [500, 200, HANG_UP, HANG_UP, 200, 503, 400]
        async with client_to(receiver.url()) as client:
            done = await client.send(*(client.step(n) for n in range(1, 7)))
            assert numbers(receiver.taken) == [1, 2, 4, 5, 6]
            assert done.settled == {REACHED: 5, (Fate.REFUSED, 0): 1}

    with listening(Receiver(acknowledge_each)) as receiver:
        run(test(receiver))


def test_final_receipts() -> None:  # SR-53
    def after(receiver: Receiver, got: Got) -> None:
        assert got.has("DeadLetter")
        if got.find("current") == "3":
            first, second, third = receiver.requests
            receiver.final_receipt(second, 49154)
            receiver.stream_receipt()
            receiver.final_receipt(third)
            receiver.final_receipt(third)
            receiver.final_receipt(first)

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url(), Timing()) as client:
            steps = (client.step(n, journal=JOURNAL_NEGATIVE) for n in (1, 2, 3))
            done = await client.send(*steps)
            assert done.settled == {(Fate.RECEIVED, RECEIVE): 2, (Fate.DIED, 49154): 1}
            assert client.sender.done == 2

    with listening(Receiver(after)) as receiver:
        run(test(receiver))
        eventually(lambda: receiver.answers == [200] * 5)


# -- the desk ---------------------------------------------------------------------------------


def test_receipts_for_single_messages_are_counted_once() -> None:  # SR-50
    def after(receiver: Receiver, got: Got) -> None:
        receiver.delivery_receipt(got)
        receiver._ids -= 1
        receiver.delivery_receipt(got)  # again, with the same id: a repetition
        receiver.commitment_receipt(got)

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            fields = {"ack": ACK_ARRIVAL | ACK_RECEIVE, "admin_queue": f"DIRECT={client.desk.url}"}
            sent = (client.message(n, **fields) for n in (1, 2))
            await client.send(*sent, receipts_each=2)
            assert sorted(client.desk.classes) == [2, 2, RECEIVE, RECEIVE]

    with listening(Receiver(after)) as receiver:
        run(test(receiver))


def test_no_receipt_is_waited_for_if_the_message_was_refused() -> None:
    async def test(receiver: Receiver) -> None:
        receiver.plan = [400]
        async with client_to(receiver.url()) as client:
            await client.send(client.message(1), receipts_each=1)

    with listening(Receiver()) as receiver:
        run(test(receiver))


def delivered(identifier: str) -> str:
    return (
        "<deliveryReceipt><receivedAt>20250608T023719</receivedAt>"
        f"<id>{identifier}</id></deliveryReceipt>"
    )


def test_what_means_nothing_gets_200() -> None:  # SR-8; SR-5: what cannot be read gets 400
    def after(receiver: Receiver, got: Got) -> None:
        url, user_message = receiver.receipts_to, got.envelope.encode()
        receiver.post(url, user_message)
        receiver.post(url, user_message, "text/plain")
        receiver.post(url, b"what?")
        receiver._receipt(url, got, "", 255, "QM Ordering Ack")
        receiver._receipt(url, got, "<deliveryReceipt></deliveryReceipt>", 2)
        receiver._receipt(url, got, delivered(f"uuid:1@{Guid.random()}"), 2)  # another's
        receiver._receipt(url, got, delivered("not an id"), 2)
        receiver.stream_receipt()

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            await client.send(client.step(1))
            assert client.desk.classes == []

    with listening(Receiver(after)) as receiver:
        run(test(receiver))
        eventually(lambda: receiver.answers == [200, 400, 400, 200, 400, 200, 200, 200])


def test_a_desk_that_cannot_open() -> None:
    async def test() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(ConfigError, match="cannot listen"):
                await ReceiptDesk(Guid.random()).open(*taken.getsockname())

    run(test())


def test_its_url_names_no_port_80(monkeypatch: pytest.MonkeyPatch) -> None:  # SR-73
    async def test() -> None:
        desk = ReceiptDesk(Guid.random())

        async def start(host: str, port: int) -> str:
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

        monkeypatch.setattr(desk._server, "start", start)
        await desk.open("machine1", 80)
        assert desk.url == "http://machine1/MSMQ/PRIVATE$/order_queue$"
        await desk.open("fd00::7", 8080)
        assert desk.url == "http://[fd00::7]:8080/MSMQ/PRIVATE$/order_queue$"

    run(test())


def test_the_address_we_connect_from() -> None:
    async def test() -> None:
        assert await address_towards("127.0.0.1", 80) == "127.0.0.1"
        with pytest.raises(PeerUnavailable, match=r"^no\.such\.host\.invalid:80: there is no way"):
            await address_towards("no.such.host.invalid", 80)

    run(test())


# -- HTTPS ------------------------------------------------------------------------------------


def test_https(tmp_path: Path) -> None:  # srmp.md 2.1.1: same content over TLS
    certificate, key = self_signed(["localhost"], tmp_path)

    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url(scheme="https")) as client:
            tls = client_context(certificate)
            await client.send(client.step(1), client.message(2), tls=tls)
            assert numbers(receiver.taken) == [1, 2]
            assert receiver.requests[0].find("to") == client.url
        async with client_to(receiver.url(scheme="https")) as client:
            with pytest.raises(PeerUnavailable, match="certificate is not trusted: self"):
                await client.send(client.message(1), tls=client_context(), deadline_s=SHORT_S)

    with listening(Receiver(acknowledge_each), tls=server_context(certificate, key)) as receiver:
        run(test(receiver))


def test_https_to_who_speaks_http() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def test() -> None:
        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with client_to(f"https://127.0.0.1:{port}/msmq/private$/q") as client:
                with pytest.raises(PeerUnavailable, match=r"\(TLS: "):
                    await client.send(client.message(1), tls=client_context(), deadline_s=SHORT_S)

    run(test())


# -- not in time ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ([500] * 1000, r"\(HTTP 500\)"),
        ([HANG_UP] * 1000, r"\(closed without an answer\)"),
        ([], r"\(no stream receipt came to http://127\.0\.0\.1:\d+/MSMQ/PRIVATE\$/order_queue\$\)"),
    ],
)
def test_the_deadline(plan: list[int], why: str) -> None:
    async def test(receiver: Receiver) -> None:
        receiver.plan = plan
        timing = Timing(retransmit_s=0.05)
        async with client_to(receiver.url(), timing) as client:
            with pytest.raises(PeerUnavailable, match=why) as caught:
                await client.send(client.step(1), client.step(2), deadline_s=SHORT_S)
        text = str(caught.value)
        assert text.startswith(f"{client.url}: 2 messages are not acknowledged after 1.5 s (")
        assert len(text.splitlines()) == 1

    with listening(Receiver()) as receiver:
        run(test(receiver))


def test_no_final_receipt() -> None:
    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            with pytest.raises(PeerUnavailable, match=r"1 messages .*\(no final receipt came to"):
                await client.send(client.step(1, journal=JOURNAL_NEGATIVE), deadline_s=SHORT_S)

    with listening(Receiver(acknowledge_each)) as receiver:
        run(test(receiver))


def test_missing_receipts() -> None:
    async def test(receiver: Receiver) -> None:
        async with client_to(receiver.url()) as client:
            sent = (client.message(n) for n in (1, 2))
            with pytest.raises(PeerUnavailable, match=r"2 receipts are missing after 1\.5 s"):
                await client.send(*sent, receipts_each=1, deadline_s=SHORT_S)

    with listening(Receiver()) as receiver:
        run(test(receiver))


def test_a_receiver_that_says_nothing() -> None:
    async def test() -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/msmq/private$/q"
            async with client_to(url) as client:
                with pytest.raises(PeerUnavailable, match=r"\(no answer\)"):
                    await client.send(client.step(1), deadline_s=SHORT_S)

    run(test())


def test_nobody_there() -> None:
    async def test() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/msmq/private$/q"
            async with client_to(url) as client:
                with pytest.raises(PeerUnavailable, match=r"\(Connection refused\)"):
                    await client.send(client.message(1), deadline_s=SHORT_S)

    run(test())
