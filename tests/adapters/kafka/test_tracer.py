"""Where is my message? The index follows the audit topic, an answer reads little. Design D6"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka import tracer as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.sink import KafkaShardSink
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.adapters.kafka.tracer import Follower, Tracer
from bridge.adapters.store.audit_index import ID, LABEL, AuditIndex, Place
from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue
from bridge.core.ports import Snapshot
from bridge.core.shard import Shard
from bridge.model.errors import SinkUnavailable
from bridge.model.message import Message
from tests.core.messages import LOCAL, NOW, SENDER, plain, queue
from tests.support.kafka import read_topic, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
SOON = int(time.time()) + 600


class Index(AuditIndex):
    """Remembers what it was given."""

    def __init__(self, file: Path) -> None:
        self.given: list[Place] = []
        super().__init__(file)

    def add(self, records: Iterable[tuple[Place, bytes]]) -> None:
        taken = list(records)
        super().add(taken)
        self.given += [place for place, _ in taken]


class Frugal:
    """A consumer that counts the records it gave."""

    def __init__(self, inner: Consumer) -> None:
        self._inner = inner
        self.read = 0

    def poll(self, timeout: float) -> Any:
        message = self._inner.poll(timeout)
        self.read += message is not None and message.error() is None
        return message

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def _opened(sink: KafkaShardSink) -> Snapshot:
    """Topics that were made just now may not have their leaders yet."""
    async with asyncio.timeout(30):
        while True:
            with suppress(SinkUnavailable):
                return await sink.open()
            await asyncio.sleep(0.05)


class World:
    def __init__(self, kafka: EmbeddedKafka, folder: Path, **mapping: Any) -> None:
        self.settings = {"bootstrap.servers": kafka.bootstrap_servers}
        self.bootstrap, self.file = kafka.bootstrap_servers, folder / "index.sqlite"
        self.own, self.topic = OwnTopics(unique("own")), unique("plain")
        facts = ensure_topics(self.settings, self.own, 2, [self.topic])
        place = queue(
            "private$\\plain",
            transactional=False,
            topic=self.topic,
            partitions=facts[self.topic].partitions,
            **mapping,
        )
        self._catalogue = Catalogue(LOCAL, [place])

    def deliver(self, *units: list[Message], shard: int = 0) -> None:
        async def publish() -> None:
            sink = KafkaShardSink(self.settings, self.own, shard)
            one = Shard(self._catalogue, Policy())
            one.restore(await _opened(sink))
            for unit in units:
                one.admit(unit)
                await sink.publish(one.take_unit(NOW)[1])
            await sink.close()

        asyncio.run(publish())

    @contextmanager
    def index(self) -> Iterator[Index]:
        made = Index(self.file)
        try:
            yield made
        finally:
            made.close()

    def follow(self, index: AuditIndex, found: Callable[[], object]) -> None:
        follower = Follower(self.settings, self.own.audit, 2, index)
        follower.start()
        try:
            eventually(found)
        finally:
            follower.stop()

    @contextmanager
    def tracer(self, index: AuditIndex) -> Iterator[tuple[Tracer, Frugal]]:
        made = Tracer(self.settings, self.own.audit, index)
        source = Frugal(made._source)
        made._source = cast(Consumer, source)
        try:
            yield made, source
        finally:
            made.close()

    def offsets(self) -> dict[str, tuple[int, int]]:
        """Message id -> partition and offset, by reading all there is."""
        return {
            dict(m.headers() or ())["msmq.id"].decode(): (m.partition() or 0, m.offset() or 0)  # type: ignore[union-attr]
            for m in read_topic(self.bootstrap, self.topic)
        }


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this test: a long run gets past what the import took for soon."""
    monkeypatch.setitem(globals(), "SOON", int(time.time()) + 600)


@pytest.fixture
def world(kafka: EmbeddedKafka, tmp_path: Path) -> World:
    return World(kafka, tmp_path)


def name(ordinal: int) -> str:
    return f"{SENDER}\\{ordinal}"


def at(ordinal: int, **fields: Any) -> Message:
    """Each arrives a second after the one before, and after all that was committed: Kafka's
    markers have their own time."""
    known = {"arrived_ms": (SOON + ordinal) * 1000, "sent_time": SOON}
    return plain(ordinal, **{**known, **fields})


# -- the follower ---------------------------------------------------------------------------


def test_it_catches_up_with_all_partitions_and_stays_there(world: World) -> None:
    world.deliver([at(1)])
    world.deliver([at(2)], shard=1)
    with world.index() as index:
        follower = Follower(world.settings, world.own.audit, 2, index)
        follower.start()
        eventually(lambda: index.find(ID, name(1), 1) and index.find(ID, name(2), 1))
        assert {place.partition for place in index.given} == {0, 1}
        world.deliver([at(3)])  # while it runs
        eventually(lambda: index.find(ID, name(3), 1))
        follower.stop()


def test_it_resumes_where_it_was(world: World) -> None:
    world.deliver([at(1)], [at(2)])
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(2), 1))
    world.deliver([at(3)])
    with world.index() as again:
        world.follow(again, lambda: again.find(ID, name(3), 1))
        assert len(again.given) == 1  # only what it had not seen
        assert again.find(ID, name(1), 1)


def test_a_lost_file_is_made_anew(world: World) -> None:
    world.deliver([at(1)], [at(2)], [at(3)])
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(3), 1))
    for left in world.file.parent.glob(world.file.name + "*"):
        left.unlink()
    with world.index() as again:
        assert again.positions() == {}
        world.follow(again, lambda: again.find(ID, name(3), 1))
        assert all(again.find(ID, name(n), 1) for n in (1, 2, 3))


# -- answers --------------------------------------------------------------------------------


def test_an_answer_has_every_verdict_and_the_record(world: World) -> None:
    world.deliver(
        [at(n, label="Order") for n in range(1, 10)],
        [at(5, label="Order"), at(10, destination="DIRECT=OS:bridge01\\private$\\nobody")],
    )
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(10), 1))
        with world.tracer(index) as (tracer, _):
            accepted, duplicate = tracer.trace(ID, name(5).upper())
            (rejected,) = tracer.trace(ID, name(10))
            by_label = tracer.trace(LABEL, "order")
            assert tracer.trace(ID, name(99)) == []
    partition, offset = world.offsets()[name(5)]
    assert (accepted["verdict"], accepted["topic"]) == ("accepted", world.topic)
    assert (accepted["partition"], accepted["offset"]) == (partition, offset)
    assert accepted["at"] == (SOON + 5) * 1000
    assert duplicate["verdict"] == "duplicate"
    assert "offset" not in duplicate
    assert (rejected["verdict"], rejected["class"]) == ("rejected", 0x8000)
    assert "offset" not in rejected
    assert [v["at"] for v in by_label] == sorted(v["at"] for v in by_label)
    assert len(by_label) == 10  # nine and the duplicate


def test_a_trace_reads_little_however_long_the_topics_are(world: World) -> None:
    world.deliver(*([at(n) for n in range(first, first + 50)] for first in range(1, 1000, 50)))
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(1000), 1))
        with world.tracer(index) as (tracer, source):
            for ordinal in (1, 500, 1000):
                source.read = 0
                (found,) = tracer.trace(ID, name(ordinal))
                assert (found["partition"], found["offset"]) == world.offsets()[name(ordinal)]
                assert source.read == 2  # one record of the audit, one of the data


def test_a_scan_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrived in one millisecond, so the time index does not tell them apart."""
    monkeypatch.setattr(module, "MAX_SCAN", 5)
    world.deliver([plain(n) for n in range(1, 101)])
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(100), 1))
        with world.tracer(index) as (tracer, source):
            (found,) = tracer.trace(ID, name(100))
            assert found["offset"] is None
            assert source.read <= 1 + 6
            (first,) = tracer.trace(ID, name(1))
            assert (first["partition"], first["offset"]) == world.offsets()[name(1)]


def test_no_more_records_of_the_audit_than_agreed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RECORDS", 3)
    world.deliver(*([at(n, label="same", destination="DIRECT=OS:x\\y")] for n in range(1, 9)))
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(8), 1))
        with world.tracer(index) as (tracer, source):
            found = tracer.trace(LABEL, "same")
            assert [v["id"] for v in found] == [name(6), name(7), name(8)]  # the newest
            assert source.read == 3


def test_records_that_carry_the_time_they_were_sent(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    world = World(kafka, tmp_path, timestamp="sent")
    world.deliver([at(n, sent_time=SOON - 100 - n % 3) for n in range(1, 20)])
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(19), 1))
        with world.tracer(index) as (tracer, _):
            (found,) = tracer.trace(ID, name(7))
    assert (found["partition"], found["offset"]) == world.offsets()[name(7)]


def test_a_topic_that_is_gone(world: World) -> None:
    """The verdict is still known."""
    world.deliver([at(1)])
    admin = AdminClient({"bootstrap.servers": world.bootstrap})
    admin.delete_topics([world.topic])[world.topic].result(30)
    eventually(lambda: world.topic not in admin.list_topics(timeout=30).topics)
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(1), 1))
        with world.tracer(index) as (tracer, _):
            (found,) = tracer.trace(ID, name(1))
    assert (found["verdict"], found["offset"]) == ("accepted", None)


def test_records_of_the_audit_that_are_gone(world: World) -> None:
    """The index may know more than the topic keeps."""
    world.deliver([at(1)])
    with world.index() as index:
        world.follow(index, lambda: index.find(ID, name(1), 1))
        value = b'[{"id": "x\\\\1", "verdict": "accepted", "at": 1, "dest": "d"}]'
        index.add([(Place(0, 9999), value)])
        with world.tracer(index) as (tracer, _):
            assert tracer.trace(ID, "x\\1") == []


def test_kafka_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the same as `never seen`."""
    monkeypatch.setattr(module, "READ_S", 0.2)
    index = AuditIndex(tmp_path / "index.sqlite")
    index.add([(Place(0, 0), b'[{"id": "x\\\\1"}]')])
    tracer = Tracer({"bootstrap.servers": "127.0.0.1:1"}, "audit", index)
    with pytest.raises(SinkUnavailable, match="Kafka: "):
        tracer.trace(ID, "x\\1")
    tracer.close()
    index.close()
