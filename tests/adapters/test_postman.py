"""Receipts on their way, over real sockets: srmp.md 3.7, SR-36, SR-49, SR-70, SR-75 to SR-78."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, cast

import pytest

from bridge.adapters import outgoing
from bridge.adapters import postman as module
from bridge.adapters.intake import ShardPump
from bridge.adapters.postman import Postman
from bridge.adapters.receipt_targets import ReceiptTargets
from bridge.adapters.telemetry import Telemetry
from bridge.core import receipt_timers
from bridge.core.ports import OutboxEntry
from bridge.core.posted import Due
from bridge.core.redirection import Redirects
from tests.adapters.receiver import CUT, HANG, SOON, Receiver
from tests.core.messages import LOCAL, SENDER
from tests.core.posts import TO


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_timers, "DELAY_S", 0.0)


class Owner:
    """A shard as far as receipts see it."""

    def __init__(self) -> None:
        self.forgotten: list[int] = []
        self.told: list[tuple[int, int]] = []  # stream and number
        self._news = asyncio.Condition()
        self.on_forget: Callable[[], None] = lambda: None
        self._tasks: list[asyncio.Task[None]] = []

    def forget(self, ordinals: Sequence[int]) -> None:
        self.forgotten += ordinals
        self.on_forget()
        self._tasks.append(asyncio.create_task(self._tell()))

    def receipted(self, due: Due) -> None:
        self.told.append((due.id, due.number))
        self._tasks.append(asyncio.create_task(self._tell()))

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON), self._news:
            await self._news.wait_for(enough)


class Watched(Telemetry):
    """Tells when something was counted."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()

    def refusal(self, reason: str, count: int = 1) -> None:
        super().refusal(reason, count)
        self._news.set()

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON):
            while not enough():
                self._news.clear()
                await self._news.wait()


async def turn() -> None:
    """Timers that are due have fired."""
    fired = asyncio.Event()
    asyncio.get_running_loop().call_later(0.0, fired.set)
    await fired.wait()


class World:
    def __init__(
        self,
        *,
        hosts: Sequence[str] = ("127.0.0.1",),
        allowed: Sequence[str] = ("loopback",),
        redirects: Callable[["World"], Sequence[tuple[str, str]]] = lambda _: (),
        retransmission_s: float = 0.0,
    ) -> None:
        self.receivers = [Receiver(host) for host in hosts]
        self.receiver = self.receivers[0]
        self.owner, self.telemetry = Owner(), Watched()
        self._allowed, self._redirects = allowed, redirects
        self._retransmission_s = retransmission_s

    async def start(self) -> None:
        for receiver in self.receivers:
            await receiver.start()
        self.postman = Postman(
            LOCAL,
            count(9001).__next__,
            ReceiptTargets(self._allowed, None, Redirects(self._redirects(self))),
            self.telemetry,
            retransmission_s=self._retransmission_s,
        )

    async def stop(self) -> None:
        self.postman.stop()
        for receiver in self.receivers:
            await receiver.stop()
        await asyncio.sleep(0)

    def take(self, *entries: OutboxEntry) -> None:
        self.postman.take(entries, cast(ShardPump, self.owner))

    def due(self, *dues: Due) -> None:
        self.postman.due(dues, cast(ShardPump, self.owner))

    def entry(self, ordinal: int, url: str = "", **more: Any) -> OutboxEntry:
        known: dict[str, Any] = {"host": "127.0.0.1", "packet": b"<receipt %d/>" % ordinal}
        return OutboxEntry(ordinal=ordinal, url=url or self.receiver.url(), **{**known, **more})

    def mark(
        self,
        number: int,
        *,
        stream: int = 7,
        url: str = "",
        again: bool = False,
        peer: str = "127.0.0.1",
    ) -> Due:
        return Due(
            key=(SENDER, f"DIRECT={TO}"),
            id=stream,
            text=f"UID:{SENDER}\\{stream}",
            number=number,
            receipts_to=url or self.receiver.url(),
            peer=peer,
            is_repeated=again,
        )

    def refused(self, reason: str) -> float:
        found = self.telemetry.registry.get_sample_value(
            "msmq_bridge_refusals_total", {"reason": reason}
        )
        return found or 0.0


def play(scene: Callable[[World], Awaitable[None]], make: Callable[[], World] = World) -> World:
    async def run() -> World:
        async with asyncio.timeout(30):
            world = make()
            await world.start()
            try:
                await scene(world)
            finally:
                await world.stop()
            return world

    return asyncio.run(run())


# -- what is sent ---------------------------------------------------------------------------


def test_a_receipt_of_a_message() -> None:  # srmp.md 1.2: text/xml, the bare envelope
    async def scene(world: World) -> None:
        world.take(world.entry(5, world.receiver.url("/MSMQ/Private$/Admin?X=Y")))
        await world.owner.until(lambda: world.owner.forgotten == [5])  # durable until now
        (request,) = world.receiver.got
        assert request.first == "POST /msmq/private$/admin?x=y HTTP/1.1"
        assert request.headers == {
            "Host": f"127.0.0.1:{world.receiver.port}",
            "Content-Type": "text/xml",
            "Content-Length": "12",
            "SOAPAction": '"MSMQMessage"',
            "Proxy-Accept": "NonInteractiveClient",
        }
        assert request.body == b"<receipt 5/>"
        assert world.postman.waiting == {}
        assert world.postman._taken == set()

    play(scene)


def test_a_receipt_of_a_stream() -> None:  # srmp.md 3.7, SR-35
    async def scene(world: World) -> None:
        before = int(time.time())
        world.due(world.mark(4))
        await world.owner.until(lambda: world.owner.told == [(7, 4)])
        (request,) = world.receiver.got
        text = request.body.decode()
        sent = re.search(r"<sentAt>(.{15})</sentAt>", text)
        ends = re.search(r"<TTrq>(.{15})</TTrq>", text)
        assert sent is not None
        assert ends is not None
        stamps = [time.strptime(f"{m[1]}+0000", "%Y%m%dT%H%M%S%z") for m in (sent, ends)]
        seconds = [int(time.mktime(s) - time.timezone) for s in stamps]
        assert before <= seconds[0] <= time.time()
        assert seconds[1] - seconds[0] == 345_600
        assert text == (
            '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
            'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
            '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
            f"<action>MSMQ:QM Ordering Ack</action><to>{world.receiver.url()}</to>"
            f"<rev><via>{TO}</via></rev><id>uuid:9001@{LOCAL}</id></path>"
            '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
            f"<sentAt>{sent[1]}</sentAt></properties>"
            f"<streamReceipt><streamId>UID:{SENDER}\\7</streamId>"
            "<lastOrdinal>4</lastOrdinal></streamReceipt>"
            '<Msmq xmlns="msmq.namespace.xml"><Class>255</Class><Priority>0</Priority>'
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App>"
            "<BodyType>0</BodyType><HashAlgorithm>0</HashAlgorithm>"
            f"<SourceQmGuid>{LOCAL}</SourceQmGuid><TTrq>{ends[1]}</TTrq></Msmq></se:Header>"
            "<se:Body></se:Body></se:Envelope>"
        )

    play(scene)


def test_one_receipt_for_all(monkeypatch: pytest.MonkeyPatch) -> None:  # SR-34, SR-36
    monkeypatch.setattr(receipt_timers, "DELAY_S", 0.05)

    async def scene(world: World) -> None:
        for number in range(1, 6):
            world.due(world.mark(number))
        world.due(world.mark(5, again=True))
        await world.owner.until(lambda: world.owner.told == [(7, 5)])
        assert [request.last for request in world.receiver.got] == [5]

    play(scene)


def test_a_following_stream_flushes_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_timers, "DELAY_S", 1000.0)  # table 5.1: now, if Pending

    async def scene(world: World) -> None:
        world.due(world.mark(4), world.mark(1, stream=8))
        await world.owner.until(lambda: world.owner.told == [(7, 4)])

    play(scene)


def test_post_wait_next_on_one_connection() -> None:  # SR-70
    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(world.entry(1), world.entry(2), world.entry(3))
        await world.receiver.wait(1)
        assert list(world.postman.waiting.values()) == [3]
        assert len(world.receiver.got) == 1
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.forgotten == [1, 2, 3])
        assert {request.line for request in world.receiver.got} == {1}
        world.take(world.entry(4))  # it is kept for a while
        await world.owner.until(lambda: 4 in world.owner.forgotten)
        assert {request.line for request in world.receiver.got} == {1}

    play(scene)


def test_what_is_known_is_not_taken_twice() -> None:
    """A shard that was opened anew tells all that its outbox has."""

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(world.entry(1), world.entry(1))
        await world.receiver.wait(1)
        world.take(world.entry(1), world.entry(2))
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.forgotten == [1, 2])
        assert len(world.receiver.got) == 2

    play(scene)


# -- when it is not taken -------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 503, 404, 401, 302, CUT])
def test_again_after_the_retransmission_time(status: int) -> None:  # SR-75, SR-76; 1.4 D
    async def scene(world: World) -> None:
        world.receiver.plan.extend([status, status])
        world.take(world.entry(1))
        await world.owner.until(lambda: world.owner.forgotten == [1])
        assert [request.body for request in world.receiver.got] == [b"<receipt 1/>"] * 3

    play(scene)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_any_2xx_is_success(status: int) -> None:  # 1.4 D
    async def scene(world: World) -> None:
        world.receiver.plan.append(status)
        world.due(world.mark(4))
        await world.owner.until(lambda: world.owner.told == [(7, 4)])
        assert len(world.receiver.got) == 1

    play(scene)


def test_it_waits_before_it_tries_again() -> None:  # SR-76
    async def scene(world: World) -> None:
        world.receiver.plan.append(503)
        world.take(world.entry(1))
        await world.receiver.wait(1)
        await world.receiver.until(lambda: world.receiver.open == 0)  # SR-75: close
        assert list(world.postman.waiting.values()) == [1]
        assert world.owner.forgotten == []
        assert world.refused("receipt-not-taken") == 1

    assert len(play(scene, lambda: World(retransmission_s=1000.0)).receiver.got) == 1


def test_nobody_listens() -> None:
    async def scene(world: World) -> None:
        world.receiver._server.close()
        world.take(world.entry(1))
        await world.telemetry.until(lambda: world.refused("receipt-no-answer") >= 3)
        assert world.owner.forgotten == []
        await world.receiver.listen()
        await world.owner.until(lambda: world.owner.forgotten == [1])

    play(scene)


def test_400_ends_a_receipt() -> None:  # 1.4: permanent
    async def scene(world: World) -> None:
        world.receiver.plan.extend([400, 400])
        world.take(world.entry(1), world.entry(2), world.entry(3))
        await world.owner.until(lambda: world.owner.forgotten == [1, 2, 3])
        assert world.refused("receipt-refused") == 2
        assert len(world.receiver.got) == 3

    play(scene)


def test_400_does_not_tell_a_sender_anything() -> None:  # SR-81: the row stays unreceipted
    async def scene(world: World) -> None:
        world.receiver.plan.append(400)
        world.due(world.mark(4))
        await world.receiver.wait(1)
        world.due(world.mark(4, again=True))  # its sender asks again
        await world.owner.until(lambda: world.owner.told == [(7, 4)])
        assert [request.last for request in world.receiver.got] == [4, 4]

    play(scene)


def test_a_receipt_that_nobody_wants_any_more() -> None:
    async def scene(world: World) -> None:
        now = int(time.time())
        world.take(world.entry(1, expires=now - 5), world.entry(2, expires=now + 1000))
        await world.owner.until(lambda: world.owner.forgotten == [1, 2])
        assert [request.body for request in world.receiver.got] == [b"<receipt 2/>"]
        assert world.refused("receipt-expired") == 1

    play(scene)


@pytest.mark.parametrize("url", ["http://192.0.2.1/o", "http://a..b/o", "ftp://a/o", "http://ä/o"])
def test_where_none_may_go(url: str) -> None:  # SR-49
    async def scene(world: World) -> None:
        world.take(world.entry(1, url))
        world.take(world.entry(2, url))
        await world.owner.until(lambda: world.owner.forgotten == [1, 2])
        assert world.refused("receipt-target") == 2
        world.take(world.entry(3))  # others are not touched
        await world.owner.until(lambda: world.owner.forgotten == [1, 2, 3])

    play(scene)


def test_a_host_that_only_the_sender_knows(caplog: pytest.LogCaptureFixture) -> None:
    """Its receipts go to the sender's address, which is logged once."""

    async def scene(world: World) -> None:
        port = world.receiver.port
        urls = [f"http://Sender{n}.invalid:{port}/MSMQ/O{m}" for n in (1, 2) for m in (1, 2)]
        for ordinal, url in enumerate(urls):
            world.take(world.entry(ordinal, url))
        world.due(world.mark(3, url=urls[0]))
        await world.owner.until(lambda: len(world.owner.forgotten) == 4)
        await world.owner.until(lambda: world.owner.told == [(7, 3)])
        assert world.refused("receipt-to-sender-address") == 5
        lines = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
        for host in ("sender1.invalid", "sender2.invalid"):
            (line,) = [one for one in lines if host in one]
            assert "127.0.0.1" in line
            assert "srmp.receipt_targets" in line

    play(scene, lambda: World(allowed=("sender", "loopback")))


def test_final_receipts_come_behind_the_receipt_of_their_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MC-MQSRM 3.1.5.1.8: the stream receipt says that a message has arrived, 3.1.5.1.9: the final
    one what became of it. The first is held back a while (3.1.2.3), the second waits for it."""
    monkeypatch.setattr(receipt_timers, "DELAY_S", 3600.0)

    async def scene(world: World) -> None:
        text = world.mark(1).text
        finals = [world.entry(n, stream=text) for n in (1, 2, 3)]
        world.due(world.mark(1))
        world.take(finals[0])
        world.due(world.mark(3))
        world.take(*finals[1:])
        world.take(world.entry(4, stream="UID:other\\1"), world.entry(5))  # others do not wait
        await world.owner.until(lambda: world.owner.forgotten == [4, 5])
        world.postman.drop(finals[1:2])
        world.due(world.mark(1, stream=8))  # the next stream ends the wait
        await world.owner.until(lambda: world.owner.forgotten == [4, 5, 1, 3])
        assert world.owner.told == [(7, 3)]
        assert world.receiver.got[2].last == 3
        bodies = [request.body for request in world.receiver.got]
        assert bodies[3:] == [b"<receipt 1/>", b"<receipt 3/>"]
        world.take(world.entry(6, stream=text))  # no receipt is due: it goes at once
        await world.owner.until(lambda: world.owner.forgotten[-1] == 6)

    play(scene)


# -- the newest one speaks for all before it ------------------------------------------------


def test_a_newer_receipt_takes_the_place_of_one_that_waits() -> None:  # SR-36
    async def scene(world: World) -> None:
        world.receiver.plan.append(503)
        world.receiver.gate.clear()
        world.due(world.mark(1))
        await world.receiver.wait(1)
        for number in (2, 3, 9):
            world.due(world.mark(number))
        await turn()
        assert list(world.postman.waiting.values()) == [1]
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.told == [(7, 9)])
        assert [request.last for request in world.receiver.got] == [1, 9]

    play(scene)


def test_a_newer_receipt_that_comes_during_the_post_follows() -> None:
    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.due(world.mark(1))
        await world.receiver.wait(1)
        world.due(world.mark(2))
        await turn()
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.told == [(7, 1), (7, 2)])
        ids = [request.id for request in world.receiver.got]
        assert len(set(ids)) == 2  # srmp.md 8.1: Windows drops repeats

    play(scene)


def test_streams_do_not_take_each_other_s_place() -> None:  # SR-36: one receipt names one stream
    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.due(world.mark(1), world.mark(1, stream=8), world.mark(1, stream=9))
        world.receiver.gate.set()
        await world.owner.until(lambda: len(world.owner.told) == 3)
        assert sorted(world.owner.told) == [(7, 1), (8, 1), (9, 1)]

    play(scene)


# -- one does not stop the others -----------------------------------------------------------


def test_a_host_that_hangs_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)

    async def scene(world: World) -> None:
        silent, good = world.receivers
        silent.plan.append(HANG)
        world.take(world.entry(1, silent.url()))
        await silent.wait(1)
        world.take(world.entry(2, good.url()))
        await world.owner.until(lambda: world.owner.forgotten == [2])

    play(scene, lambda: World(hosts=("127.0.0.1", "127.0.0.2")))


def test_a_queue_that_refuses_stops_no_other_of_its_host() -> None:  # SR-75: Inactive is a queue's
    async def scene(world: World) -> None:
        world.receiver.refuses["/msmq/bad"] = 500
        world.take(world.entry(1, world.receiver.url("/msmq/bad")))
        world.due(world.mark(1, stream=9, url=world.receiver.url("/msmq/bad")))
        await world.receiver.wait(2)
        world.take(world.entry(2), world.entry(3))
        await world.owner.until(lambda: world.owner.forgotten == [2, 3])
        world.receiver.refuses.clear()
        await world.owner.until(lambda: 1 in world.owner.forgotten and bool(world.owner.told))

    play(scene)


def test_one_host_in_several_places() -> None:  # SR-18: a redirect may know the path
    def redirects(world: World) -> Sequence[tuple[str, str]]:
        first, second = world.receivers
        return [("http://h/a*", first.url("/")), ("http://h/b*", second.url("/"))]

    async def scene(world: World) -> None:
        paths = ["a", "b", "b", "a"]
        world.take(*(world.entry(n, f"http://h/{path}") for n, path in enumerate(paths)))
        await world.owner.until(lambda: sorted(world.owner.forgotten) == [0, 1, 2, 3])
        found = [[r.body for r in receiver.got] for receiver in world.receivers]
        assert found == [[b"<receipt 0/>", b"<receipt 3/>"], [b"<receipt 1/>", b"<receipt 2/>"]]
        assert world.receiver.got[0].headers["Host"] == "h"  # the message stays unchanged

    play(scene, lambda: World(hosts=("127.0.0.1", "127.0.0.2"), redirects=redirects))


# -- bounds ---------------------------------------------------------------------------------


def test_what_waits_for_one_host_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 2)

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(*(world.entry(n) for n in range(1, 5)))
        assert world.owner.forgotten == [3, 4]  # given up, and said so
        assert world.refused("receipt-too-many-waiting") == 2
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.forgotten == [3, 4, 1, 2])
        world.take(world.entry(5))
        await world.owner.until(lambda: 5 in world.owner.forgotten)

    play(scene)


def test_a_newer_one_of_a_stream_always_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 1)

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.due(world.mark(1))
        await world.receiver.wait(1)
        world.due(world.mark(2))
        await turn()
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.told == [(7, 1), (7, 2)])
        assert world.refused("receipt-too-many-waiting") == 0

    play(scene)


def test_urls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROUTES", 1)

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(world.entry(1), world.entry(2, "http://127.0.0.3/o"))
        assert world.owner.forgotten == [2]
        assert world.refused("receipt-too-many-urls") == 1
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.forgotten == [2, 1])

    play(scene)


def test_a_url_that_nobody_serves_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a stranger who names dead URLs would shut out whoever comes after him."""
    monkeypatch.setattr(module, "MAX_ROUTES", 2)

    async def scene(world: World) -> None:
        world.receiver.refuses["/msmq/dead"] = 500
        world.take(world.entry(1, world.receiver.url("/msmq/dead")))
        await world.receiver.wait(1)
        world.take(world.entry(2))
        await world.owner.until(lambda: world.owner.forgotten == [2])
        world.take(world.entry(3, world.receiver.url("/msmq/b")))  # the idle one goes first
        await world.owner.until(lambda: world.owner.forgotten == [2, 3])
        assert world.refused("receipt-too-many-urls") == 0
        world.receiver.gate.clear()
        world.take(world.entry(4, world.receiver.url("/msmq/b")))
        world.take(world.entry(5, world.receiver.url("/msmq/c")))
        assert world.owner.forgotten == [2, 3, 1]
        assert world.refused("receipt-too-many-urls") == 1
        world.receiver.gate.set()
        await world.owner.until(lambda: sorted(world.owner.forgotten) == [1, 2, 3, 4, 5])

    play(scene)


# -- the end --------------------------------------------------------------------------------


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:  # SR-78
    assert outgoing.CLEANUP_S == 300.0
    monkeypatch.setattr(outgoing, "CLEANUP_S", 0.0)

    async def scene(world: World) -> None:
        for ordinal in (1, 2):
            world.take(world.entry(ordinal))
            await world.owner.until(lambda ordinal=ordinal: ordinal in world.owner.forgotten)  # type: ignore[misc]
            await world.receiver.until(lambda: world.receiver.open == 0)
        assert [request.line for request in world.receiver.got] == [1, 2]

    play(scene)


@pytest.mark.parametrize("turns", range(6))
def test_one_that_comes_in_the_very_moment_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """The time of an idle host is over, and before its task hears of it there is work again."""
    monkeypatch.setattr(outgoing, "CLEANUP_S", 0.0)

    async def scene(world: World) -> None:
        loop = asyncio.get_running_loop()

        def later(left: int) -> None:
            if left:
                loop.call_soon(later, left - 1)
            else:
                world.take(world.entry(2))

        def on_forget() -> None:
            world.owner.on_forget = lambda: None
            later(turns)

        world.owner.on_forget = on_forget
        world.take(world.entry(1))
        await world.owner.until(lambda: world.owner.forgotten == [1, 2])

    play(scene)


def test_stop() -> None:
    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(world.entry(1))
        world.due(world.mark(1))
        await world.receiver.wait(1)
        world.postman.stop()
        world.receiver.gate.set()
        await world.receiver.until(lambda: world.receiver.open == 0)
        assert len(world.receiver.got) == 1
        assert world.owner.forgotten == []  # it is in the outbox, and tried again after the start
        assert world.owner.told == []

    play(scene)


def test_stop_while_it_waits_to_try_again() -> None:
    async def scene(world: World) -> None:
        world.receiver.plan.append(503)
        world.take(world.entry(1))
        await world.receiver.wait(1)
        await world.receiver.until(lambda: world.receiver.open == 0)
        tasks = [route.task for route in world.postman._routes.values()]
        world.postman.stop()
        async with asyncio.timeout(SOON):
            await asyncio.gather(*tasks, return_exceptions=True)
        assert world.postman._routes == {}

    play(scene, lambda: World(retransmission_s=1000.0))


def test_stop_without_work() -> None:
    async def scene(world: World) -> None:
        world.postman.stop()

    play(scene)


# -- bounds by peer -------------------------------------------------------------------------


def test_a_peer_has_only_so_many_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROUTES_BY_PEER", 2)

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(*(world.entry(n, world.receiver.url(f"/msmq/{n}")) for n in range(1, 4)))
        assert world.owner.forgotten == [3]
        world.take(world.entry(4, world.receiver.url("/msmq/4"), host="127.0.0.9"))
        assert world.owner.forgotten == [3]  # another peer has its own
        world.receiver.gate.set()
        await world.owner.until(lambda: len(world.owner.forgotten) == 4)

    play(scene)


def test_hosts_that_never_answer_shut_out_no_other_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """They accept the connection and the request, so none of them has failed yet."""
    monkeypatch.setattr(module, "MAX_ROUTES", 3)

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.take(*(world.entry(n, world.receiver.url(f"/msmq/{n}")) for n in range(1, 4)))
        world.take(world.entry(9, world.receiver.url("/msmq/9"), host="127.0.0.9"))
        assert world.owner.forgotten == [1]  # the oldest of the peer that has most
        world.receiver.gate.set()
        await world.owner.until(lambda: 9 in world.owner.forgotten)

    play(scene)


def test_receipts_of_streams_are_counted_in_bytes_by_peer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty streams of one peer whose host never answers: what does not fit is not kept."""
    monkeypatch.setattr(module, "MOST_OF_PEER", 3 * module.RECEIPT_BYTES + 3_000)

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        for stream in range(20):
            world.due(world.mark(1, stream=stream))
        assert world.postman.stream_receipts == 3
        assert world.refused("receipt-too-many-waiting") == 17
        world.due(world.mark(1, stream=99, peer="127.0.0.9"))  # another peer has its own
        assert world.postman.stream_receipts == 4
        assert 4 * module.RECEIPT_BYTES < world.postman.stream_receipt_bytes < 16_000
        world.receiver.gate.set()
        await world.owner.until(lambda: len(world.owner.told) == 4)
        assert (world.postman.stream_receipts, world.postman.stream_receipt_bytes) == (0, 0)
        world.due(world.mark(2, stream=19))  # its sender sent again
        await world.owner.until(lambda: (19, 2) in world.owner.told)

    play(scene)


def test_a_long_url_counts_as_long_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_PEER", 100_000)

    async def scene(world: World) -> None:
        world.due(world.mark(1, url="http://127.0.0.1/" + "x" * 100_000))
        assert world.postman.stream_receipts == 0
        assert world.refused("receipt-too-many-waiting") == 1

    play(scene)


def test_what_is_counted_is_let_go_however_a_receipt_ends() -> None:
    """Taken, overtaken while it is under way, refused, or with a URL that leads nowhere."""

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.due(world.mark(1))
        await world.receiver.wait(1)
        world.due(world.mark(2))  # the first is under way, this one waits for its time
        world.due(world.mark(1, stream=8, url="http://10.255.255.1/not-allowed"))
        await world.telemetry.until(lambda: world.refused("receipt-target") == 1)
        assert world.postman.stream_receipts == 1
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.told == [(7, 1), (7, 2)])
        world.receiver.plan.append(400)
        world.due(world.mark(1, stream=9))
        await world.telemetry.until(lambda: world.refused("receipt-refused") == 1)
        assert (world.postman.stream_receipts, world.postman.stream_receipt_bytes) == (0, 0)

    play(scene)


def test_an_id_that_comes_back_with_another_url_stops_no_receipts() -> None:
    """A sender may use an id again once it is forgotten, while a receipt for it still waits."""

    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        world.due(world.mark(1))
        await world.receiver.wait(1)
        other = world.receiver.url("/msmq/other")
        world.due(world.mark(2, url=other))
        await world.receiver.wait(2)
        world.take(world.entry(5), world.entry(6, other))  # each waits behind one of them
        world.receiver.gate.set()
        await world.owner.until(lambda: sorted(world.owner.forgotten) == [5, 6])
        assert sorted(world.owner.told) == [(7, 1), (7, 2)]
        assert (world.postman.stream_receipts, world.postman.stream_receipt_bytes) == (0, 0)

    play(scene)


def test_a_receipt_of_a_stream_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FOUR_DAYS", -1)

    async def scene(world: World) -> None:
        world.due(world.mark(1))
        await world.telemetry.until(lambda: world.refused("receipt-expired") == 1)
        assert world.postman.stream_receipts == 0
        assert world.receiver.got == []

    play(scene)


def test_receipts_that_are_dropped_are_not_sent() -> None:
    async def scene(world: World) -> None:
        world.receiver.gate.clear()
        first, second = world.entry(1), world.entry(2)
        world.take(first, second)
        await world.receiver.wait(1)  # the first is under way
        world.postman.drop([second])
        world.receiver.gate.set()
        await world.owner.until(lambda: world.owner.forgotten == [1])
        assert len(world.receiver.got) == 1

    play(scene)
