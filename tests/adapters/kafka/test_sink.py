"""The sink on a real broker: its contract, and what happens when the broker does not keep up."""

import asyncio
import itertools
import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient

from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka import reader
from bridge.adapters.kafka import sink as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.reader import read_to_end
from bridge.adapters.kafka.sink import KafkaShardSink, OwnershipLost
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.adapters.telemetry import Telemetry
from bridge.core.history import History
from bridge.core.ports import Record, RefusedRecord, Snapshot, Unit, UnitRefused
from bridge.core.shard import Shard
from bridge.model.errors import SinkUnavailable
from bridge.model.verdict import Outcome
from tests.adapters.sink_contract import (
    PARTITIONS,
    TIME,
    Cluster,
    SinkContract,
    own_state,
    record,
    unit,
)
from tests.core.messages import plain, queue, shard, step
from tests.support.kafka import create_topic, read_topic, transactional_producer, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
MIB = 1 << 20
SHARDS = 32


class KafkaCluster:
    """One shard of our topics and a data topic."""

    def __init__(self, broker: EmbeddedKafka, own: OwnTopics, shard: int) -> None:
        self.bootstrap, self.own, self.shard = broker.bootstrap_servers, own, shard
        self.topic = create_topic(
            self.bootstrap, unique("data"), PARTITIONS, max_message_bytes=str(8 * MIB)
        )
        self.rejects_topic = own.rejects

    def sink(self) -> KafkaShardSink:
        return KafkaShardSink({"bootstrap.servers": self.bootstrap}, self.own, self.shard)

    def records(self) -> list[Record]:
        return [as_record(message) for message in read_topic(self.bootstrap, self.topic)]

    def rejects(self) -> list[Record]:
        return self._own(self.own.rejects)

    def audit(self) -> list[bytes]:
        return [r.value for r in self._own(self.own.audit)]

    def wait_for_markers(self) -> None:
        self.records()
        for topic in (self.own.state, self.own.seen, self.own.audit, self.own.rejects):
            self._own(topic)

    def _own(self, topic: str) -> list[Record]:
        settings = {"bootstrap.servers": self.bootstrap}
        return [as_record(message) for message in read_to_end(settings, topic, self.shard)]


def as_record(message: Message) -> Record:
    return Record(
        topic=message.topic() or "",
        value=message.value() or b"",
        key=message.key(),
        headers=dict(message.headers() or []),  # type: ignore[arg-type]
        partition=message.partition(),
        timestamp_ms=message.timestamp()[1],
    )


numbers = itertools.count()


@pytest.fixture(scope="module")
def own(kafka: EmbeddedKafka) -> OwnTopics:
    made = OwnTopics(unique("own"))
    ensure_topics({"bootstrap.servers": kafka.bootstrap_servers}, made, SHARDS, [])
    return made


@pytest.fixture
def shared(kafka: EmbeddedKafka, own: OwnTopics) -> KafkaCluster:
    """A shard that no other test uses."""
    return KafkaCluster(kafka, own, next(numbers))


@pytest.fixture
def doomed(mortal: EmbeddedKafka) -> KafkaCluster:
    """On the broker that may be killed."""
    made = OwnTopics(unique("own"))
    ensure_topics({"bootstrap.servers": mortal.bootstrap_servers}, made, 1, [])
    return KafkaCluster(mortal, made, 0)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_S", 0.0)


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))


class TestKafkaShardSink(SinkContract):
    @pytest.fixture
    def cluster(self, shared: KafkaCluster) -> Cluster:
        return shared


# -- one transaction ------------------------------------------------------------------------


def test_state_of_an_earlier_version_is_found_under_the_name_of_today(
    shared: KafkaCluster,
) -> None:
    """It kept halves of surrogate pairs, which are U+FFFD now; a later entry still counts."""

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(Unit(state={"stream/a/q\ud800": b"1", "stream/a/r\udfff": b"1"}))
        await sink.publish(Unit(state={"stream/a/r\ufffd": b"2"}))
        await sink.close()
        snapshot = await shared.sink().open()
        assert own_state(snapshot.state) == {"stream/a/q\ufffd": b"1", "stream/a/r\ufffd": b"2"}

    play(scene())


def test_a_record_without_a_partition_goes_where_its_key_says(shared: KafkaCluster) -> None:
    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        same = [Record(topic=shared.topic, value=b"%d" % n, key=b"same") for n in range(5)]
        await sink.publish(Unit(records=same))
        await sink.close()

    before = int(time.time() * 1000)
    play(scene())
    found = shared.records()
    assert [r.value for r in found] == [b"%d" % n for n in range(5)]
    assert len({r.partition for r in found}) == 1
    assert all(r.timestamp_ms >= before - 1000 for r in found)  # 0 means now


def test_the_largest_message(shared: KafkaCluster) -> None:
    """Packet limit 4 MiB: a body, or headers that come twice (`msmq.wire`)."""
    body = bytes(range(256)) * (4 * MIB // 256)
    header = bytes(4 * MIB - 4096)

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        whole = Record(topic=shared.topic, value=body, partition=0, timestamp_ms=TIME)
        headers = {"msmq.extension": header, "msmq.wire": header}
        twice = Record(
            topic=shared.topic, value=b"", headers=headers, partition=1, timestamp_ms=TIME
        )
        await sink.publish(Unit(records=[whole, twice], rejects=[whole]))
        await sink.close()

    play(scene())
    first, second = shared.records()
    assert first.value == body
    assert second.headers == {"msmq.extension": header, "msmq.wire": header}
    assert shared.rejects()[0].value == body


def test_a_record_that_is_too_large_spoils_its_whole_unit(shared: KafkaCluster) -> None:
    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        large = unit(shared, 1)
        large.records.append(record(shared, bytes(9 * MIB)))
        with pytest.raises(SinkUnavailable):
            await sink.publish(large)
        snapshot = await sink.open()
        assert own_state(snapshot.state) == {}
        await sink.publish(unit(shared, 2))
        await sink.close()

    play(scene())
    assert [r.value for r in shared.records()] == [b"2"]


def test_a_unit_of_many_records_is_one_transaction(shared: KafkaCluster) -> None:
    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(
            Unit(records=[record(shared, b"%d" % n, n % PARTITIONS) for n in range(20_000)])
        )
        await sink.close()

    play(scene())
    assert len(shared.records()) == 20_000


# -- owners ---------------------------------------------------------------------------------


def part(unit: int, number: int, *, first: bool = False, last: bool = False) -> Unit:
    """With an entry of its own, and a part of the snapshot that began with `unit`."""
    key = f"{unit}.s{number}"
    return Unit(
        seen={f"{unit + number}": b"entry", key: key.encode()},
        snapshot_begins=key if first else "",
        snapshot_ends=last,
    )


async def seen_by_a_start(cluster: KafkaCluster) -> list[bytes]:
    sink = cluster.sink()
    try:
        return list((await sink.open()).seen)
    finally:
        await sink.close()


@pytest.mark.parametrize("is_traced", [False, True])
def test_a_start_reads_from_the_newest_whole_snapshot(
    shared: KafkaCluster, is_traced: bool
) -> None:
    """A flood of ids neither makes the next start slow nor hides what a snapshot has."""

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(Unit(seen={"1": b"old"}))
        for one in (
            part(10, 0, first=True),
            Unit(seen={"a": b"between"}),
            part(10, 1, last=True),
            Unit(seen={"b": b"after"}),  # it notes the place
            part(20, 0, first=True),  # and one that is not finished
        ):
            await sink.publish(one, traced=is_traced and bool(one.snapshot_begins))
        await sink.close()
        expected = [b"10.s0", b"between", b"entry", b"10.s1", b"after", b"entry", b"20.s0"]
        assert await seen_by_a_start(shared) == expected
        assert await seen_by_a_start(shared) == expected  # a start itself changes nothing

    play(scene())


def test_a_snapshot_whose_last_part_is_not_committed_does_not_count(shared: KafkaCluster) -> None:
    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(Unit(seen={"1": b"old"}))
        await sink.publish(part(2, 0, first=True))
        spoiled = part(2, 1, last=True)
        spoiled.records.append(record(shared, bytes(9 * MIB)))
        with pytest.raises(SinkUnavailable):
            await sink.publish(spoiled)
        await sink.open()
        await sink.publish(Unit(seen={"9": b"later"}))
        await sink.close()
        assert await seen_by_a_start(shared) == [b"old", b"entry", b"2.s0", b"later"]

    play(scene())


def test_a_victim_s_ids_outlast_a_flood_and_restarts_of_the_shard(shared: KafkaCluster) -> None:
    """GUARANTEES.md E3, with the whole way: shard, pump, sink, broker, and back."""

    def small() -> Shard:
        made = shard(
            queue("private$\\plain", transactional=False, topic=shared.topic, partitions=PARTITIONS)
        )
        made.new_history = partial(History, 20, 200, 5_000, 30)
        return made

    async def run_with(messages: Sequence[Sequence[Any]]) -> list[Outcome]:
        pump = ShardPump(small(), shared.sink(), Telemetry())
        told: list[Outcome] = []
        await pump.open()
        running = asyncio.create_task(pump.run())
        for some in messages:
            pump.submit(some, lambda verdicts: told.extend(v.outcome for v in verdicts))
            await pump.drain()
        running.cancel()
        await pump.close()
        return told

    async def scene() -> None:
        victim = [plain(number) for number in range(20)]
        await run_with([victim])
        for start in (1000, 5000):
            flood = [
                [plain(start + 50 * unit + n, peer="10.6.6.6") for n in range(50)]
                for unit in range(60)
            ]
            await run_with(flood)
        seen = await seen_by_a_start(shared)
        assert sum(map(len, seen)) < 20_000
        assert set(await run_with([victim])) == {Outcome.DUPLICATE}

    play(scene())


def test_an_owner_that_was_replaced_gives_up(shared: KafkaCluster) -> None:  # design D2
    async def scene() -> None:
        old, new = shared.sink(), shared.sink()
        await old.open()
        await new.open()
        with pytest.raises(SinkUnavailable):
            await old.publish(unit(shared, 1))
        with pytest.raises(OwnershipLost) as caught:
            await old.open()
        assert "\n" not in str(caught.value)
        assert shared.own.prefix in str(caught.value)
        await new.publish(unit(shared, 2))  # nobody fenced it meanwhile
        await old.close()
        await new.close()

    play(scene())
    assert [r.value for r in shared.records()] == [b"2"]


def test_an_owner_that_was_replaced_while_it_was_cut_off_gives_up(shared: KafkaCluster) -> None:
    """It was not fenced, it heard nothing at all. It must not take the other one's unit numbers
    for its own: it would acknowledge messages that are nowhere."""

    async def scene() -> None:
        old, new = shared.sink(), shared.sink()
        await old.open()
        await new.open()
        await new.publish(unit(shared, 7))
        with pytest.raises(OwnershipLost):
            await old.open()
        with pytest.raises(SinkUnavailable):
            await old.publish(unit(shared, 8))
        # The rightful owner comes back, at worst after one failure.
        with pytest.raises(SinkUnavailable):
            await new.publish(unit(shared, 9))
        snapshot = await new.open()
        assert own_state(snapshot.state)["unit"] == b"7"
        await new.publish(unit(shared, 9))
        await old.close()
        await new.close()

    play(scene())
    assert [r.value for r in shared.records()] == [b"7", b"9"]


def test_a_pump_does_not_acknowledge_what_another_owner_committed(shared: KafkaCluster) -> None:
    async def scene() -> None:
        old, new = shared.sink(), shared.sink()
        pump = ShardPump(shard(), old, Telemetry())
        told: list[object] = []
        await pump.open()
        await new.open()
        await new.publish(Unit(state={"unit": b"100"}))
        pump.submit([step(1)], told.append)
        with pytest.raises(OwnershipLost):
            await pump.run()
        assert told == []
        await pump.close()
        await new.close()

    play(scene())


def test_a_fenced_owner_whose_successor_died_early_goes_on(shared: KafkaCluster) -> None:
    """The other one only initialised its transactions and never claimed the shard."""

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(unit(shared, 1))
        transactional_producer(shared.bootstrap, f"{shared.own.prefix}.shard-{shared.shard}")
        with pytest.raises(SinkUnavailable):
            await sink.publish(unit(shared, 2))
        snapshot = await sink.open()
        assert own_state(snapshot.state)["unit"] == b"1"
        await sink.publish(unit(shared, 3))
        await sink.close()

    play(scene())
    assert [r.value for r in shared.records()] == [b"1", b"3"]


def test_being_fenced_is_not_forgotten_by_another_failure(
    shared: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    async def scene() -> None:
        old, new = shared.sink(), shared.sink()
        await old.open()
        await new.open()
        with pytest.raises(SinkUnavailable):
            await old.publish(unit(shared, 1))
        with monkeypatch.context() as away:
            away.setattr(module, "read_to_end", unanswered)
            with pytest.raises(SinkUnavailable):
                await old.open()
        with pytest.raises(OwnershipLost):
            await old.open()
        await new.publish(unit(shared, 2))  # nobody fenced it meanwhile
        await old.close()
        await new.close()

    play(scene())


# -- what hangs and what is missing ---------------------------------------------------------


def test_a_hanging_transaction_of_somebody_else_is_told(
    shared: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # section 6, condition 2
    monkeypatch.setattr(reader, "STUCK_AFTER_S", 0.5)

    async def scene() -> None:
        stranger = transactional_producer(shared.bootstrap, unique("stranger"))
        stranger.begin_transaction()
        stranger.produce(shared.own.state, b"x", "x", partition=shared.shard)
        stranger.flush(30)
        sink = shared.sink()
        with pytest.raises(SinkUnavailable, match=r"Hanging transactions") as caught:
            await sink.open()
        assert "\n" not in str(caught.value)
        with pytest.raises(SinkUnavailable):  # it did not open, so it takes nothing
            await sink.publish(unit(shared, 1))
        stranger.abort_transaction(30)
        snapshot = await sink.open()
        assert own_state(snapshot.state) == {}
        await sink.close()

    play(scene())
    assert shared.records() == []


def test_a_topic_that_was_deleted_fails_in_time(
    shared: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 2.0)

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(unit(shared, 1))
        admin = AdminClient({"bootstrap.servers": shared.bootstrap})
        admin.delete_topics([shared.topic])[shared.topic].result(30)
        eventually(lambda: admin.list_topics(shared.topic, timeout=10).topics[shared.topic].error)
        started = time.monotonic()
        with pytest.raises(SinkUnavailable):
            await sink.publish(unit(shared, 2))
        assert time.monotonic() - started < 10
        snapshot = await sink.open()
        assert own_state(snapshot.state)["unit"] == b"1"  # nothing of the unit was committed
        assert list(snapshot.seen) == [b"1"]
        await sink.publish(Unit(state={"unit": b"3"}))  # the shard itself is well
        await sink.close()

    play(scene())


@pytest.mark.parametrize(
    ("is_of_pair", "hint"),
    [(False, "run only one"), (True, "start this one again, and it waits as the standby")],
)
def test_what_to_do_when_another_has_taken_over(is_of_pair: bool, hint: str) -> None:
    """In a pair that is what should happen."""
    settings = {"bootstrap.servers": "127.0.0.1:1"}
    sink = KafkaShardSink(settings, OwnTopics("own"), 0, is_of_pair=is_of_pair)
    sink._claimed = True
    with pytest.raises(OwnershipLost, match=hint):
        sink._stop_if_replaced({"owner": b"another"})


def test_no_broker_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.5)

    async def scene() -> None:
        sink = KafkaShardSink({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("own"), 0)
        for _ in range(2):
            with pytest.raises(SinkUnavailable, match=r"^Kafka: shard 0: taking over"):
                await sink.open()
        await sink.close()

    play(scene())


# -- a broker that dies ---------------------------------------------------------------------


def test_a_broker_that_is_killed_between_units(
    mortal: EmbeddedKafka, doomed: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:  # design D3
    async def scene() -> None:
        sink = doomed.sink()
        await sink.open()
        await sink.publish(unit(doomed, 1))
        # A commit returns before its markers are written, and a single broker that is killed
        # then may never write them, though its transaction log says CompleteCommit: readers are
        # stuck for ever. That is Kafka's; here the broker dies between units, markers written.
        doomed.wait_for_markers()
        mortal.kill()
        with monkeypatch.context() as patch:
            patch.setattr(module, "CALL_TIMEOUT_S", 2.0)
            started = time.monotonic()
            with pytest.raises(SinkUnavailable):
                await sink.publish(unit(doomed, 2))
            with pytest.raises(SinkUnavailable):
                await sink.open()
            assert time.monotonic() - started < 15
        mortal.start()
        snapshot = await _open(sink)
        assert own_state(snapshot.state) == {"unit": b"1", "state-1": b"1"}
        assert list(snapshot.seen) == [b"1"]
        await sink.publish(unit(doomed, 3))
        await sink.close()

    play(scene())
    assert [r.value for r in doomed.records()] == [b"1", b"3"]
    assert doomed.audit() == [b"1", b"3"]


def test_a_broker_that_falls_silent_in_a_commit(
    mortal: EmbeddedKafka, doomed: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can tell whether it was committed; what is read back and what readers see agree."""

    async def scene() -> None:
        sink = doomed.sink()
        await sink.open()
        for number in (1, 2):
            with monkeypatch.context() as patch:
                patch.setattr(module, "CALL_TIMEOUT_S", 0.3)
                publishing = asyncio.create_task(sink.publish(unit(doomed, number)))
                await asyncio.sleep(number * 0.005)
                mortal.suspend()
                outcome = (await asyncio.gather(publishing, return_exceptions=True))[0]
                mortal.resume()
            assert outcome is None or isinstance(outcome, SinkUnavailable)
            state = own_state((await _open(sink)).state)
            values = [r.value for r in doomed.records()]
            assert (b"%d" % number in values) == (state.get("unit") == b"%d" % number)
            assert outcome is not None or state["unit"] == b"%d" % number
            assert doomed.audit() == values
        await sink.close()

    play(scene())


async def _open(sink: KafkaShardSink) -> Snapshot:
    """As the pump does: again until it works."""
    while True:
        try:
            return await sink.open()
        except SinkUnavailable:
            await asyncio.sleep(0.1)


# -- what Kafka refuses for good ------------------------------------------------------------


def refusing(shared: KafkaCluster, cause: str) -> tuple[Record, str, bool]:
    """A record that Kafka never takes, the error, and whether it is the topic's fault."""
    good = record(shared, b"poison")
    if cause == "key":
        topic = create_topic(shared.bootstrap, unique("compacted"), 1, cleanup_policy="compact")
        bad = msgspec.structs.replace(good, topic=topic, partition=0, key=None)
        return bad, "INVALID_RECORD", False
    if cause == "time":
        limit = {"message_timestamp_before_max_ms": "1000"}
        topic = create_topic(shared.bootstrap, unique("timed"), 1, **limit)
        bad = msgspec.structs.replace(good, topic=topic, partition=0, timestamp_ms=1000)
        return bad, "INVALID_TIMESTAMP", False
    if cause == "partition":
        return msgspec.structs.replace(good, partition=99), "_UNKNOWN_PARTITION", False
    size = 9 * MIB if cause == "size here" else 5000
    topic = create_topic(shared.bootstrap, unique("small"), 1, max_message_bytes="1000")
    bad = msgspec.structs.replace(good, topic=topic, partition=0, value=b"x" * size)
    return bad, "MSG_SIZE_TOO_LARGE", False


@pytest.mark.parametrize("cause", ["key", "time", "partition", "size", "size here"])
def test_a_traced_unit_names_the_records_that_are_refused(shared: KafkaCluster, cause: str) -> None:
    bad, error, _ = refusing(shared, cause)
    good = [record(shared, b"%d" % number) for number in range(4)]
    poisoned = Unit(records=[*good[:2], bad, *good[2:]], state={"unit": b"1"})

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        with pytest.raises(UnitRefused) as failed:  # nobody asked which
            await sink.publish(poisoned)
        assert not failed.value.refused
        refused: Sequence[RefusedRecord] = ()
        for _ in range(2):  # of a size, the second time: until then it may be the batch
            await sink.open()
            with pytest.raises(UnitRefused) as failed:
                await sink.publish(poisoned, traced=True)
            refused = refused or failed.value.refused
        assert [(r.position, r.topic, r.error) for r in refused] == [(2, bad.topic, error)]
        before = own_state((await sink.open()).state)
        rest = Unit(
            records=good,
            state={"unit": b"2", "a": b"b"},
            rejects=[record(shared, b"rejected")],
            audit=[b"[]"],
            seen={"s": b"n"},
        )
        await sink.publish(rest, traced=True)
        snapshot = await sink.open()
        assert own_state(snapshot.state) == {**before, "unit": b"2", "a": b"b"}
        assert b"n" in snapshot.seen
        await sink.close()

    play(scene())
    values = [r.value for r in shared.records()]
    assert values[-4:] == [r.value for r in good]
    assert b"poison" not in values
    assert shared.rejects()[-1].value == b"rejected"


def test_a_unit_for_a_topic_that_is_gone_can_be_let_go(shared: KafkaCluster) -> None:
    topic = create_topic(shared.bootstrap, unique("gone"), 1)
    lost = msgspec.structs.replace(record(shared, b"lost"), topic=topic, partition=0)

    async def scene() -> None:
        sink = shared.sink()
        await sink.open()
        await sink.publish(Unit(records=[lost], state={"unit": b"1"}))
        admin = AdminClient({"bootstrap.servers": shared.bootstrap})
        admin.delete_topics([topic])[topic].result(30)
        publishing = asyncio.create_task(sink.publish(Unit(records=[lost], state={"unit": b"2"})))
        await asyncio.sleep(0)  # it is queued; some brokers say no at once, others never do
        sink.let_go()
        with pytest.raises(SinkUnavailable):
            await asyncio.wait_for(publishing, 10)
        assert own_state((await sink.open()).state)["unit"] == b"1"
        await sink.close()

    play(scene())
