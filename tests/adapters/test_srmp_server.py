"""A POST and its status: srmp.md 1.4, SR-1 to SR-8, SR-13 to SR-17; tables 5.1 and 5.3."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import pytest

from bridge.adapters import srmp_server
from bridge.adapters.intake import Intake, ShardPump
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.net.http_server import HttpRequest
from bridge.adapters.own_hosts import Lookups, OwnHosts
from bridge.adapters.srmp_server import SrmpServer, status_of
from bridge.adapters.telemetry import Telemetry
from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import Queue
from bridge.core.mapping_headers import HeaderRules
from bridge.core.ports import Forward, Unit
from bridge.core.redirection import Redirects
from bridge.core.shard import Shard
from bridge.model.classes import MessageClass
from bridge.model.message import Onward
from bridge.model.verdict import Cursor, Outcome, Verdict
from bridge.wire.srmp.request import SrmpRequest, read_request
from tests.core.messages import LOCAL, catalogue, queue, receipts
from tests.vectors.srmp import REQUESTS
from tests.wire.srmp.build import MSMQ, PATH, PROPERTIES, QM, STREAM, TO, good, soap

SOON = 5.0
PLAIN = queue("private$\\q", transactional=False)
ORDERS = queue("private$\\orders")
TO_ORDERS = "http://bridge/msmq/private$/orders"
NAMES = ["bridge", "machine2"]


class Sink(MemoryShardSink):
    """Can be held in the middle of a publish."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.gate = asyncio.Event()
        self.gate.set()
        self.publishing = asyncio.Event()

    async def publish(self, unit: Unit, *, traced: bool = False) -> None:
        self.publishing.set()
        await self.gate.wait()
        await super().publish(unit, traced=traced)


class World:
    def __init__(
        self,
        *queues: Queue,
        redirects: Iterable[tuple[str, str]] = (),
        answer_s: float = SOON,
        **policy: Any,
    ) -> None:
        self.catalogue = catalogue(*(queues or (PLAIN, ORDERS)))
        self.log, self.telemetry = MemoryLog(), Telemetry()
        self.sink = Sink(self.log)
        shard = Shard(self.catalogue, Policy(**policy), receipts())
        self.pump = ShardPump(shard, self.sink, self.telemetry)
        self.intake = Intake([self.pump], lambda _shard, _jammed: None)
        table = Redirects(redirects)
        self.server = SrmpServer(
            self.intake,
            lambda: self.catalogue,
            OwnHosts([*NAMES, *table.hosts()]),
            table,
            self.telemetry,
            answer_s,
        )

    async def post(self, data: bytes, content_type: str = "text/xml", **more: Any) -> int:
        known: dict[str, Any] = {
            "method": "POST",
            "target": "/msmq/private$/q",
            "head": b"POST /msmq/private$/q HTTP/1.1\r\nHost: bridge\r\n\r\n",
            "peer": "10.1.2.3",
            "local": "10.0.0.1",
            "secure": False,
        }
        request = HttpRequest(content_type=content_type, body=data, **{**known, **more})
        return await self.server.handle(request)

    def refused(self, reason: str) -> float:
        found = self.telemetry.registry.get_sample_value(
            "msmq_bridge_refusals_total", {"reason": reason}
        )
        return found or 0.0

    @property
    def values(self) -> list[bytes]:
        return [record.value for record in self.log.records]


def play(
    scene: Callable[[World], Awaitable[None]], make: Callable[[], World] = World, *, up: bool = True
) -> World:
    async def run() -> World:
        async with asyncio.timeout(30):
            world = make()
            if up:
                await world.pump.open()
            task = asyncio.create_task(world.pump.run()) if up else None
            try:
                await scene(world)
            finally:
                if task is not None:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                await world.pump.close()
            return world

    return asyncio.run(run())


def statuses(*requests: bytes, make: Callable[[], World] = World) -> tuple[list[int], World]:
    """One after the other, as a sender does."""
    found: list[int] = []

    async def scene(world: World) -> None:
        for data in requests:
            found.append(await world.post(data))

    return found, play(scene, make)


def to(url: str, *more: str) -> bytes:
    return soap(PATH.replace(TO, url) + PROPERTIES + "".join(more))


def kind(number: int) -> str:
    return MSMQ.replace("<Class>0<", f"<Class>{number}<")


# -- the table of statuses ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        (Verdict(Outcome.ACCEPTED), 200),
        (Verdict(Outcome.ACCEPTED, 0, "", Cursor(1, 1)), 200),
        (Verdict(Outcome.FORWARDED, 0, "waits-for-the-next-hop"), 200),  # SR-15
        (Verdict(Outcome.DUPLICATE, 0, "id-seen"), 200),  # SR-8
        (Verdict(Outcome.OUT_OF_ORDER, 0, "stream-order"), 200),
        (Verdict(Outcome.EXPIRED, MessageClass.NACK_REACH_QUEUE_TIMEOUT), 200),  # SR-61
        (Verdict(Outcome.BUSY, 0, "machine-quota"), 500),  # SR-6, SR-7
        (Verdict(Outcome.REJECTED, MessageClass.NORMAL), 200),  # unknown type
        (Verdict(Outcome.REJECTED, MessageClass.NACK_ACCESS_DENIED), 200),
        (Verdict(Outcome.REJECTED, MessageClass.NACK_BAD_SIGNATURE), 200),
        (Verdict(Outcome.REJECTED, MessageClass.NACK_BAD_DST_Q), 400),  # SR-13, SR-16
        (Verdict(Outcome.REJECTED, MessageClass.NACK_NOT_TRANSACTIONAL_Q), 400),  # SR-17
        (Verdict(Outcome.REJECTED, MessageClass.NACK_NOT_TRANSACTIONAL_MSG), 400),
        (Verdict(Outcome.REJECTED, MessageClass.NACK_Q_EXCEED_QUOTA), 400),  # no topic takes it
    ],
)
def test_the_status_of_a_verdict(verdict: Verdict, status: int) -> None:  # srmp.md 1.4
    assert status_of(verdict) == status


def test_every_outcome_has_one_of_four() -> None:  # srmp.md 1.4 D
    for outcome in Outcome:
        for message_class in MessageClass:
            assert status_of(Verdict(outcome, message_class)) in (200, 400, 500, 503)


# -- the examples of the specification ------------------------------------------------------


def test_the_examples() -> None:  # V1 to V4
    queues = [
        queue("private$\\simpleq", transactional=False),
        queue("private$\\tsimpleq"),
    ]
    found: list[int] = []

    async def scene(world: World) -> None:
        for name in ("V1", "V2", "V3", "V4.1", "V4.2", "V4.3"):
            one = REQUESTS[name]
            found.append(await world.post(one.body, one.content_type))

    world = play(scene, lambda: World(*queues))
    assert found == [200] * 6
    assert len(world.log.records) == 6
    assert world.log.records[0].value == b"First Message"
    assert len(world.pump.shard.outbox) == 2  # V3 asked for both receipts


def test_a_record_of_a_post() -> None:  # srmp.md 7.1
    (status,), world = statuses(good(MSMQ))
    assert status == 200
    (record,) = world.log.records
    assert record.headers["msmq.transport"] == b"http"
    assert record.headers["msmq.peer"] == b"10.1.2.3"
    assert record.headers["msmq.soap"] == good(MSMQ)
    assert record.headers["msmq.dest"] == f"DIRECT={TO}".encode()
    assert record.headers["msmq.id"] == f"{QM}\\7".encode()
    assert "msmq.soap.compound" not in record.headers


def test_over_tls() -> None:  # 1.5 D: what `<to>` says of the scheme is no matter
    async def scene(world: World) -> None:
        assert await world.post(good(MSMQ), secure=True) == 200

    assert play(scene).log.records[0].headers["msmq.transport"] == b"https"


# -- when the answer is given ---------------------------------------------------------------


def test_200_means_that_it_is_committed() -> None:  # SR-3
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        answer = asyncio.create_task(world.post(good(MSMQ)))
        await asyncio.wait_for(world.sink.publishing.wait(), SOON)
        assert not answer.done()
        assert world.values == []
        world.sink.gate.set()
        assert await answer == 200
        assert len(world.values) == 1

    play(scene)


def test_kafka_is_away() -> None:  # design D3
    async def scene(world: World) -> None:
        world.intake.look()
        assert await world.post(good(MSMQ)) == 503
        assert await world.post(b"whatever") == 503  # it may be judged later
        assert world.intake.pending == 0
        assert world.refused("srmp-kafka-away") == 2

    play(scene, up=False)


def test_no_verdict_in_time() -> None:  # SR-4
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        assert await world.post(good(MSMQ)) == 503
        assert world.refused("srmp-no-verdict-in-time") == 1
        world.sink.gate.set()
        await asyncio.wait_for(world.pump.drain(), SOON)
        assert len(world.values) == 1  # it was under way: the repeat is a duplicate

    play(scene, lambda: World(answer_s=0.0))


def test_what_has_no_verdict_in_time_is_withdrawn() -> None:
    """The sender was told to come again: it must not be taken behind its back, out of order."""

    async def scene(world: World) -> None:
        world.intake._jammed = [False]  # nobody has noticed yet
        assert await world.post(good(MSMQ)) == 503
        assert world.intake.pending == 1
        await world.pump.open()
        assert world.intake.pending == 0
        assert world.pump.shard.take_unit(0)[1].records == []

    play(scene, lambda: World(answer_s=0.0), up=False)


def test_a_sender_that_hangs_up() -> None:
    async def scene(world: World) -> None:
        world.intake._jammed = [False]
        task = asyncio.create_task(world.post(good(MSMQ)))
        await asyncio.sleep(0)
        assert world.intake.pending == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.pump.open()
        assert world.pump.shard.take_unit(0)[1].records == []

    play(scene, up=False)


def test_many_senders_share_a_transaction() -> None:
    async def scene(world: World) -> None:
        world.sink.gate.clear()
        several = [good(MSMQ.replace(QM, f"{n:08x}{QM[8:]}")) for n in range(20)]
        answers = [asyncio.create_task(world.post(one)) for one in several]
        await asyncio.wait_for(world.sink.publishing.wait(), SOON)
        world.sink.gate.set()
        assert await asyncio.gather(*answers) == [200] * 20

    assert play(scene).log.units <= 2


# -- what is wrong with it ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b"", "text/xml"),
        (b"<a/>", "text/xml"),
        (good()[:-9], "text/xml"),
        (good(), "text/plain"),
        (good(), ""),
        (good(), 'multipart/related; boundary="B"'),
        (soap(PATH), "text/xml"),
        (good().replace(b"?>", b""), "application/xml"),
        (b"<!DOCTYPE a>" + good(), "text/xml"),
        (good().decode().encode("utf-16"), "text/xml"),
        (good(STREAM), "text/xml"),  # a stream needs Msmq
    ],
)
def test_malformed(data: bytes, content_type: str) -> None:  # SR-5: 400, no state change
    async def scene(world: World) -> None:
        assert await world.post(data, content_type) == 400
        assert world.refused("srmp-malformed") == 1
        assert world.intake.pending == 0

    assert play(scene).log.units == 0


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (to("http://stranger/msmq/private$/q", MSMQ), 400),  # SR-13
        (to("http://BRIDGE:8080/MSMQ/Private$/Q", MSMQ), 200),
        (to("https://bridge./msmq/private$/q", MSMQ), 200),
        (to("http://127.0.0.1/msmq/private$/q", MSMQ), 200),
        (to("http://localhost\\msmq\\private$\\q", MSMQ), 200),
        (to("http://bridge/msmq/private$/nobody", MSMQ), 400),  # SR-16
        (to("http://bridge/msmq/q", MSMQ), 400),  # a public queue is another one
        (to("http://bridge/private$/q", MSMQ), 400),
        (to("http://bridge/msmq/private%24/q?a=b", MSMQ), 200),
        (to("MSMQ:MULTICAST=234.1.1.1:8001", MSMQ), 400),
        (to(TO_ORDERS, MSMQ), 400),  # SR-17
        (good(STREAM, MSMQ), 400),
        (to(TO_ORDERS, STREAM, MSMQ), 200),
        (to(TO_ORDERS, STREAM.replace(">1<", ">2<"), MSMQ), 200),  # 5.1: dropped
        (good(kind(1)), 200),  # 3.3: ignored
        (good(kind(1 << 63)), 200),
        (to("http://bridge/msmq/private$/nobody", kind(1)), 400),  # SR-1: routing comes first
    ],
)
def test_statuses(data: bytes, status: int) -> None:
    assert statuses(data)[0] == [status]


def test_a_host_that_is_not_ours_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """MC-MQSRM 3.1.5.1.3: 400; 3.1.7.2.5: the sender deletes the message. The log has the name."""
    other = good().replace(b"http://bridge/", b"http://Old-Name:8080/")

    async def scene(world: World) -> None:
        assert [await world.post(other) for _ in range(2)] == [400, 400]
        assert await world.post(good()) == 200
        assert world.refused("srmp-unknown-host") == 2
        (row,) = world.server.rejected_hosts.rows()
        assert (row["host"], row["messages"]) == ("old-name", 2)

    play(scene)
    (line, _) = [one for one in caplog.records if "refused" in one.getMessage()]
    assert line.levelname == "WARNING"
    assert "'old-name'" in str(line.__dict__)
    assert "queue_manager.names" in str(line.__dict__)


class Told(Lookups):
    """A name service that knows three names."""

    def __init__(self) -> None:
        self.answers: dict[str, bool | None] = {"alias": True, "other": False, "away": None}

    async def lead_here(self, host: str) -> bool | None:
        return self.answers[host]


@pytest.mark.parametrize(("host", "status"), [(b"alias", 200), (b"other", 400), (b"away", 503)])
def test_names_by_the_name_service(host: bytes, status: int) -> None:
    """While it does not answer the sender keeps its message."""

    async def scene(world: World) -> None:
        world.server._hosts = OwnHosts(NAMES, Told())
        assert await world.post(good().replace(b"http://bridge/", b"http://%s/" % host)) == status
        assert world.refused("srmp-name-service-away") == (status == 503)
        assert len(world.values) == (status == 200)

    play(scene)


def test_the_request_target_is_no_matter() -> None:  # SR-2
    async def scene(world: World) -> None:
        assert await world.post(good(MSMQ), target="/msmq/private$/nobody") == 200

    play(scene)


def test_the_same_again() -> None:  # 5.3: duplicate -> 200; without Msmq none is
    found, world = statuses(good(MSMQ), good(MSMQ), good(), good())
    assert found == [200] * 4
    assert len(world.values) == 3


def test_no_room() -> None:  # SR-6, SR-7: 500, it may pass later
    full = queue("private$\\q", transactional=False, quota_kb=1)
    large = good(MSMQ, f"<x>{'x' * 2000}</x>")
    assert statuses(large, make=lambda: World(full))[0] == [500]
    assert statuses(large, make=lambda: World(quota_kb=1))[0] == [500]


def test_no_right() -> None:  # SR-26, SR-8: 200, dropped, and traced
    shut = queue("private$\\q", transactional=False, access=AccessList([]))
    found, world = statuses(good(MSMQ), make=lambda: World(shut))
    assert (found, world.values, len(world.log.rejects)) == ([200], [], 1)


def test_a_bad_signature() -> None:  # SR-40, SR-8
    ds = "http://www.w3.org/2000/02/xmldsig#"
    found, world = statuses(good(MSMQ, f'<Signature xmlns="{ds}"/>'))
    assert (found, world.values, len(world.log.rejects)) == ([200], [], 1)


# -- redirection ----------------------------------------------------------------------------

TABLE = [
    ("http://nat/msmq/ext/*", TO_ORDERS),
    ("http://nat/msmq/away", "http://stranger/msmq/private$/q"),
]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (to("http://nat:81/msmq/ext/a", STREAM, MSMQ), 200),  # SR-14
        (to("http://nat/msmq/ext/a", MSMQ), 400),  # SR-17 looks at where it goes
        (to("http://nat/msmq/private$/q", MSMQ), 200),  # SR-13: hosts of From are ours
        (to("http://nat/msmq/away", MSMQ), 200),  # SR-15: it goes on
        (to("http://stranger/msmq/private$/q", MSMQ), 400),  # SR-13: but only so
        (to("http://other/msmq/ext/a", STREAM, MSMQ), 400),
    ],
)
def test_redirects(data: bytes, status: int) -> None:
    assert statuses(data, make=lambda: World(redirects=TABLE))[0] == [status]


AWAY = "http://nat/msmq/away"
THERE = "http://stranger/msmq/private$/q"


def forwarded(world: World) -> list[Forward]:
    """What waits in Kafka."""
    rows = [value for key, value in world.log.state.items() if key.startswith("forward/")]
    return [msgspec.msgpack.decode(row, type=Forward) for row in rows]


def test_for_another_host() -> None:  # SR-15: stored, and nothing of ours is done with it
    data = to(AWAY, STREAM, MSMQ)
    _, world = statuses(data, to(AWAY, MSMQ), make=lambda: World(redirects=TABLE))
    first, second = forwarded(world)
    assert first.onward == Onward(
        url=THERE,
        content_type="text/xml",
        packet=to(THERE, STREAM, MSMQ),
        was=AWAY.encode(),
        via=(f"1.1 {LOCAL}",),
    )
    assert second.onward.packet == to(THERE, MSMQ)
    assert world.log.records == world.log.rejects == []
    assert len(world.pump.shard.posted) == 0
    assert world.log.seen == {}


@pytest.mark.parametrize(
    "receipt",
    [
        "<deliveryReceipt><receivedAt>20070719T032454</receivedAt><id>x</id></deliveryReceipt>",
        f"<streamReceipt><streamId>uid:{QM}\\7</streamId><lastOrdinal>1</lastOrdinal></streamReceipt>",
        "",
    ],
)
def test_routing_comes_before_the_type(receipt: str) -> None:  # SR-1; MC-MQSRM 3.1.5.1.3
    kinds = (MSMQ, kind(2), kind(255), kind(9))
    requests = [to(AWAY, receipt, one) for one in kinds]
    found, world = statuses(*requests, make=lambda: World(redirects=TABLE))
    assert found == [200] * 4
    assert len(forwarded(world)) == 4


def test_a_malformed_one_is_not_stored() -> None:  # SR-5
    found, world = statuses(to(AWAY)[:-1], make=lambda: World(redirects=TABLE))
    assert (found, forwarded(world)) == ([400], [])


def test_one_that_we_have_handed_on_before() -> None:
    async def scene(world: World) -> None:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nVia: 1.1 a, 1.1 %s\r\n\r\n"
        assert await world.post(to(AWAY), head=head % str(LOCAL).encode()) == 400
        assert await world.post(to(AWAY), head=head % b"b") == 200
        (forward,) = forwarded(world)
        assert forward.onward.via == ("1.1 a", "1.1 b", f"1.1 {LOCAL}")
        assert len(world.log.rejects) == 1

    play(scene, lambda: World(redirects=TABLE))


def test_too_much_waits() -> None:  # SR-6: 500, and the sender keeps it
    data = to(AWAY)
    kilobytes = (2 * (len(data) + 1100)) // 1024 + 1
    found, world = statuses(*[data] * 4, make=lambda: World(redirects=TABLE, quota_kb=kilobytes))
    assert found[0] == 200
    assert found[-1] == 500
    assert len(forwarded(world)) == found.count(200)


def test_the_key_of_a_redirected_stream_is_what_was_written() -> None:  # srmp.md 3.5
    url = "http://nat/msmq/ext/a"
    _, world = statuses(to(url, STREAM, MSMQ), make=lambda: World(redirects=TABLE))
    ((guid, destination),) = world.pump.shard.posted
    assert (str(guid), destination) == (QM, f"DIRECT={url}")
    assert world.log.records[0].headers["msmq.dest"] == f"DIRECT={TO_ORDERS}".encode()


# -- the whole request ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        HeaderRules(include=("msmq.soap.compound",)),
        HeaderRules(rename={"msmq.soap.compound": "request"}),
    ],
)
def test_the_request_as_it_came(rules: HeaderRules) -> None:  # SR-9; design D7: if asked for
    place = queue("private$\\q", transactional=False, headers=rules)

    async def scene(world: World) -> None:
        head = b"POST /msmq/private$/q HTTP/1.1\r\nHost: bridge\r\nX: \xff\r\n\r\n"
        assert await world.post(good(MSMQ), head=head) == 200
        (record,) = world.log.records
        assert record.headers[rules.name_of("msmq.soap.compound")] == head + good(MSMQ)

    play(scene, lambda: World(place))


# -- receipts that come to us ---------------------------------------------------------------

ORDER_QUEUE = "http://bridge/msmq/private$/order_queue$"
STREAM_RECEIPT = (
    f"<streamReceipt><streamId>uid:{QM}\\77</streamId><lastOrdinal>3</lastOrdinal></streamReceipt>"
)
COMMITMENT = (
    "<commitmentReceipt><decidedAt>20070608T023719</decidedAt><decision>positive</decision>"
    "<id>x</id></commitmentReceipt>"
)
DELIVERY = "<deliveryReceipt><receivedAt>20070608T023719</receivedAt><id>x</id></deliveryReceipt>"


def ordering(url: str, *more: str) -> bytes:
    return to(url, *more).replace(b"MSMQ:a<", b"MSMQ:QM Ordering Ack<")


@pytest.mark.parametrize(
    "data",
    [
        ordering(ORDER_QUEUE, STREAM_RECEIPT, kind(255)),
        ordering(ORDER_QUEUE, STREAM_RECEIPT, COMMITMENT, kind(16384)),
        ordering("http://BRIDGE:81/MSMQ/Private%24\\Order_Queue$?x", STREAM_RECEIPT, kind(255)),
    ],
)
def test_receipts_of_streams_that_we_do_not_have(data: bytes) -> None:  # SR-51: ignore; SR-17
    async def scene(world: World) -> None:
        assert await world.post(data) == 200
        assert world.refused("srmp-receipt-of-unknown-stream") == 1

    assert play(scene).log.units == 0


@pytest.mark.parametrize(
    "data",
    [
        to(ORDER_QUEUE, MSMQ),  # no receipt: nobody sends there
        to(ORDER_QUEUE, DELIVERY, kind(2)),
        ordering("http://stranger/msmq/private$/order_queue$", STREAM_RECEIPT, kind(255)),  # SR-13
    ],
)
def test_what_is_not_for_the_order_queue(data: bytes) -> None:
    found, world = statuses(data)
    assert (found, world.values) == ([400], [])


@pytest.mark.parametrize("more", [(kind(255),), (COMMITMENT, kind(16384))])
def test_a_receipt_of_a_stream_is_not_for_an_application(more: tuple[str, ...]) -> None:  # SR-51
    found, world = statuses(
        ordering(TO, STREAM_RECEIPT, *more),
        ordering("http://bridge/msmq/private$/nobody", STREAM_RECEIPT, *more),  # SR-16
        ordering(TO_ORDERS, STREAM_RECEIPT, *more),  # SR-17: exempt at order_queue$ only
    )
    assert (found, world.values) == ([200, 400, 400], [])
    assert len(world.log.rejects) == 3


@pytest.mark.parametrize("receipt", [(DELIVERY, kind(2)), (COMMITMENT, kind(16384))])
def test_receipts_for_an_application(receipt: tuple[str, str]) -> None:  # SR-50
    """Into the queue that they are addressed to; twice the same is once."""
    found, world = statuses(good(*receipt), good(*receipt), to(TO_ORDERS, *receipt))
    assert found == [200, 200, 400]
    assert len(world.log.records) == 1


# -- large requests -------------------------------------------------------------------------


def test_a_large_request_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a small one of another connection is answered meanwhile."""
    begun, go_on = threading.Event(), threading.Event()

    def held(content_type: str, data: bytes) -> SrmpRequest:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert go_on.wait(30)
        return read_request(content_type, data)

    monkeypatch.setattr(srmp_server, "read_request", held)
    padding = "<x xmlns='urn:a'>" + " " * srmp_server.INLINE + "</x>"

    async def scene(world: World) -> None:
        large = asyncio.create_task(world.post(to(TO, padding)))
        assert await asyncio.to_thread(begun.wait, 30)  # the loop goes on
        assert await world.post(to(TO)) == 200
        assert not large.done()
        go_on.set()
        assert await large == 200
        assert await world.post(to(TO, padding + "<")) == 400

    play(scene)
