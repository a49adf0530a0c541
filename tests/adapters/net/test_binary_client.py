"""An Outgoing on real sockets: everything arrives, or one line says why not."""

from __future__ import annotations

import asyncio
import socket
import time
from itertools import count
from uuid import UUID, uuid4

import pytest

from bridge.adapters.net import binary_client as module
from bridge.adapters.net.binary_client import PeerUnavailable, send_all
from bridge.model.guid import Guid
from bridge.model.message import EXPRESS, RECOVERABLE, Message, Transaction
from bridge.protocol.binary.outgoing import Outgoing
from tests.adapters.net.memory_server import Behaviour, peer, pipe_to, run, world
from tests.core.messages import ORDERS, PLAIN
from tests.outside.expected import expected_cp_response, expected_ec_response
from tests.support.waiting import until

DEADLINE_S = 30.0


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.02)


def outgoing(number: int, kind: str = "recoverable", size: int = 0) -> Outgoing:
    source = Guid.random()
    made = Outgoing(
        local=source, sequence_timestamp=int(time.time()), ordinals=count(number + 1).__next__
    )
    tx = Transaction(sequence_id=0, number=0) if kind == "transactional" else None
    made.add(
        [
            Message(
                source=source,
                ordinal=n,
                destination=ORDERS if tx else PLAIN,
                delivery=EXPRESS if kind == "express" else RECOVERABLE,
                transaction=tx,
                sent_time=int(time.time()),
                body=(b"%d" % n).ljust(size),
            )
            for n in range(1, number + 1)
        ]
    )
    return made


def numbers(bodies: list[bytes]) -> list[int]:
    return [int(body) for body in bodies]


@pytest.mark.parametrize("kind", ["express", "recoverable", "transactional"])
def test_all_arrive_in_order(kind: str) -> None:
    async def test() -> None:
        async with world() as made:
            sender, progress = outgoing(300, kind), []
            await send_all(
                sender,
                made.host,
                made.port,
                deadline_s=DEADLINE_S,
                on_progress=lambda: progress.append(sender.done),
            )
            await until(lambda: len(made.bodies) == 300)
            assert numbers(made.bodies) == list(range(1, 301))
            assert (sender.waiting, sender.done) == (0, 300)
            assert progress == sorted(progress)
            assert progress[-1] == 300
            await until(lambda: not made.server.connections)
            assert made.closed("peer-closed") == 1

    run(test())


def test_nothing_to_send_needs_no_connection() -> None:
    run(send_all(outgoing(0), "127.0.0.1", 1, deadline_s=0.1))


@pytest.mark.parametrize("kind", ["recoverable", "transactional"])
def test_a_lost_connection_is_made_again(kind: str) -> None:  # QB-27, QB-53
    async def hang_up(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        pass

    async def test() -> None:
        async with world() as made:
            plan = [
                hang_up,
                *(pipe_to(made, cut_after=size) for size in (100, 604, 700, 5000, 14_000)),
                pipe_to(made),
            ]
            async with peer(*plan) as port:
                sender = outgoing(200, kind)
                await send_all(sender, "127.0.0.1", port, deadline_s=DEADLINE_S)
            assert numbers(made.bodies) == list(range(1, 201))
            assert sender.done == 200

    run(test())


def test_the_server_drops_its_connections_again_and_again() -> None:  # QB-27
    async def test() -> None:
        async with world() as made:
            sender = outgoing(2000, "transactional")
            task = asyncio.create_task(
                send_all(sender, made.host, made.port, deadline_s=DEADLINE_S)
            )
            for mark in (100, 500, 900):
                await until(lambda mark=mark: len(made.log.records) >= mark)  # type: ignore[misc]
                made.server.hang_up()
            await task
            assert numbers(made.bodies) == list(range(1, 2001))
            assert made.closed("shutdown") == 3

    run(test())


def test_a_peer_that_starts_later_is_found() -> None:  # MS-MQQB 3.1.6.1
    async def test() -> None:
        async with world(listen=False) as made:
            with socket.socket() as place:
                place.bind(("127.0.0.1", 0))  # bound, but not listening: refused
                made.port = place.getsockname()[1]
                sender = outgoing(5)
                task = asyncio.create_task(
                    send_all(sender, made.host, made.port, deadline_s=DEADLINE_S)
                )
                await asyncio.sleep(0.1)
                assert not task.done()
            await made.listen()
            await task
            assert numbers(made.bodies) == [1, 2, 3, 4, 5]

    run(test())


# -- one that does not take it ----------------------------------------------------------------


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(-1)


async def refusing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(expected_cp_response())  # out of turn
    await writer.drain()


@pytest.mark.parametrize(
    ("behaviour", "why"), [(silent, "no acknowledgment"), (refusing, "handshake")]
)
def test_the_deadline(behaviour: Behaviour, why: str) -> None:
    async def test() -> None:
        async with peer(behaviour) as port:
            sender = outgoing(3)
            with pytest.raises(PeerUnavailable, match="3 messages are not acknowledged") as caught:
                await send_all(sender, "127.0.0.1", port, deadline_s=0.3)
        assert str(caught.value).startswith(f"127.0.0.1:{port}: ")
        assert why in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
        assert sender.waiting == 3

    run(test())


async def greeting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Opens the session and then neither reads nor hangs up."""
    writer.write(_answer(await reader.readexactly(572)))
    writer.write(await reader.readexactly(32))
    await asyncio.Event().wait()


async def gibberish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Opens the session, reads to its end, and breaks the protocol."""
    writer.write(_answer(await reader.readexactly(572)))
    writer.write(await reader.readexactly(32))
    await reader.read(-1)
    writer.write(b"garbage" * 10)
    await writer.drain()


def _answer(request: bytes) -> bytes:
    return expected_ec_response(client=UUID(bytes_le=request[20:36]), server=uuid4())


@pytest.mark.parametrize("behaviour", [greeting, gibberish])
def test_express_messages_that_nobody_read_are_not_done(behaviour: Behaviour) -> None:
    async def test() -> None:
        async with peer(behaviour) as port:
            sender = outgoing(3, "express")
            with pytest.raises(PeerUnavailable, match="3 messages are not acknowledged"):
                await send_all(sender, "127.0.0.1", port, deadline_s=0.3)
        assert (sender.waiting, sender.done) == (3, 0)

    run(test())


def test_nobody_there() -> None:
    async def test() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            with pytest.raises(PeerUnavailable, match=r"\(Connection refused\)"):
                await send_all(outgoing(1), "127.0.0.1", port, deadline_s=0.2)

    run(test())


def test_an_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(PeerUnavailable, match=r"^msmq01:1801: .*\(Name or service not known\)"):
        run(send_all(outgoing(1), "msmq01", 1801, deadline_s=0.1))


def test_a_host_that_does_not_even_refuse() -> None:
    async def test() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            address = full.getsockname()
            waiting = [socket.socket() for _ in range(3)]  # the backlog is full
            for plug in waiting:
                plug.setblocking(False)
                plug.connect_ex(address)
            try:
                with pytest.raises(PeerUnavailable, match=r"\(no answer\)"):
                    await send_all(outgoing(1), *address, deadline_s=0.3)
            finally:
                for plug in waiting:
                    plug.close()

    run(test())


def test_a_stuck_connection_does_not_disturb_the_next_one() -> None:
    """The peer reads no more and breaks the protocol; its connection ends much later."""

    async def test() -> None:
        async with world() as made:
            stuck = asyncio.Event()

            async def clog(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                other_reader, other_writer = await asyncio.open_connection(made.host, made.port)
                other_writer.write(await reader.readexactly(572))
                writer.write(await other_reader.readexactly(572))
                other_writer.write(await reader.readexactly(32))
                writer.write(await other_reader.readexactly(32))
                other_writer.close()
                await other_writer.wait_closed()
                await reader.readexactly(65_536)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(b"garbage" * 10)
                await stuck.wait()

            async with peer(clog, pipe_to(made)) as port:
                sender = outgoing(150, size=200_000)
                task = asyncio.create_task(
                    send_all(sender, "127.0.0.1", port, deadline_s=DEADLINE_S)
                )
                await until(lambda: len(made.log.records) >= 30)
                stuck.set()
                await task
            assert numbers(made.bodies) == list(range(1, 151))
            assert made.sample("sessions_opened_total") == 2  # one of them the clogged one's

    run(test())
