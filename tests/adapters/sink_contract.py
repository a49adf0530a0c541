"""What every ShardSink promises (bridge/core/ports.py); the memory and the Kafka one pass it."""

import asyncio
import time
from typing import Protocol

import pytest

from bridge.core.ports import Record, ShardSink, Unit
from bridge.model.errors import SinkUnavailable

TIME = int(time.time() * 1000) - 60_000  # what is older than the retention would be deleted


class Cluster(Protocol):
    """Where the sinks of one shard write, and what a reader of committed records finds there."""

    topic: str  # with PARTITIONS partitions
    rejects_topic: str  # what the sink makes of a reject's topic

    def sink(self) -> ShardSink: ...

    def records(self) -> list[Record]: ...

    def rejects(self) -> list[Record]: ...

    def audit(self) -> list[bytes]: ...


PARTITIONS = 3


def unit(cluster: Cluster, number: int, partition: int = 0) -> Unit:
    """One with everything in it."""
    text = b"%d" % number
    return Unit(
        records=[record(cluster, text, partition)],
        state={"unit": text, f"state-{number}": text},
        seen={f"seen-{number}": text},
        audit=[text],
        rejects=[Record(topic="", value=text, key=text, timestamp_ms=TIME)],
    )


def record(cluster: Cluster, value: bytes, partition: int = 0) -> Record:
    return Record(
        topic=cluster.topic, value=value, key=b"key", partition=partition, timestamp_ms=TIME
    )


def own_state(state: object) -> dict[str, bytes]:
    """Without what a sink keeps for itself."""
    assert isinstance(state, dict)
    return {key: value for key, value in state.items() if key != "owner"}


class SinkContract:
    @pytest.fixture
    def cluster(self) -> Cluster:
        raise NotImplementedError

    def test_it_opens_on_nothing(self, cluster: Cluster) -> None:
        async def run() -> None:
            sink = cluster.sink()
            snapshot = await sink.open()
            assert own_state(snapshot.state) == {}
            assert list(snapshot.seen) == []
            again = await sink.open()  # harmless
            assert own_state(again.state) == {}
            await sink.close()

        asyncio.run(run())
        assert cluster.records() == []

    def test_the_next_owner_sees_what_was_committed(self, cluster: Cluster) -> None:  # design D2
        async def run() -> None:
            first = cluster.sink()
            await first.open()
            await first.publish(unit(cluster, 1))
            await first.publish(unit(cluster, 2))
            await first.close()
            second = cluster.sink()
            snapshot = await second.open()
            assert own_state(snapshot.state) == {"unit": b"2", "state-1": b"1", "state-2": b"2"}
            assert list(snapshot.seen) == [b"1", b"2"]
            # In the order they were last written.
            assert list(own_state(snapshot.state)) == ["state-1", "unit", "state-2"]
            await second.close()

        asyncio.run(run())
        assert [r.value for r in cluster.records()] == [b"1", b"2"]
        assert [r.value for r in cluster.rejects()] == [b"1", b"2"]
        assert cluster.audit() == [b"1", b"2"]

    def test_none_removes_a_state_entry(self, cluster: Cluster) -> None:
        async def run() -> None:
            sink = cluster.sink()
            await sink.open()
            await sink.publish(Unit(state={"a": b"1", "b": b"1"}))
            await sink.publish(Unit(state={"a": None, "never-there": None}))
            assert own_state((await sink.open()).state) == {"b": b"1"}
            await sink.publish(Unit(state={"a": b"2"}))
            assert own_state((await sink.open()).state) == {"b": b"1", "a": b"2"}
            await sink.close()

        asyncio.run(run())

    def test_a_new_owner_fences_the_old_one(self, cluster: Cluster) -> None:  # design D2
        async def run() -> None:
            old, new = cluster.sink(), cluster.sink()
            await old.open()
            await old.publish(unit(cluster, 1))
            await new.open()
            with pytest.raises(SinkUnavailable):
                await old.publish(unit(cluster, 2))
            with pytest.raises(SinkUnavailable):  # it stays closed
                await old.publish(unit(cluster, 3))
            await new.publish(unit(cluster, 4))
            third = cluster.sink()
            snapshot = await third.open()
            assert set(own_state(snapshot.state)) == {"unit", "state-1", "state-4"}
            assert list(snapshot.seen) == [b"1", b"4"]
            for sink in (old, new, third):
                await sink.close()

        asyncio.run(run())
        # Nothing of what was fenced can be seen: units are atomic.
        assert [r.value for r in cluster.records()] == [b"1", b"4"]
        assert [r.value for r in cluster.rejects()] == [b"1", b"4"]
        assert cluster.audit() == [b"1", b"4"]

    def test_it_takes_nothing_unless_it_is_open(self, cluster: Cluster) -> None:
        async def run() -> None:
            sink = cluster.sink()
            with pytest.raises(SinkUnavailable):
                await sink.publish(unit(cluster, 1))
            await sink.open()
            await sink.close()
            with pytest.raises(SinkUnavailable):
                await sink.publish(unit(cluster, 2))

        asyncio.run(run())
        assert cluster.records() == []

    def test_records_keep_their_order_in_a_partition(self, cluster: Cluster) -> None:  # DM-36
        async def run() -> None:
            sink = cluster.sink()
            await sink.open()
            for start in range(0, 300, 100):
                numbers = range(start, start + 100)
                await sink.publish(
                    Unit(records=[record(cluster, b"%d" % n, n % PARTITIONS) for n in numbers])
                )
            await sink.close()

        asyncio.run(run())
        found = cluster.records()
        for partition in range(PARTITIONS):
            values = [int(r.value) for r in found if r.partition == partition]
            assert values == list(range(partition, 300, PARTITIONS))

    def test_everything_arrives_unaltered(self, cluster: Cluster) -> None:  # DM-3, design D7
        sent = [
            Record(
                topic=cluster.topic,
                value=bytes(range(256)),
                key=b"\x00\xff key",
                headers={"msmq.label": b"\xed\xa0\x80", "empty": b"", "zero": b"\x00"},
                partition=1,
                timestamp_ms=TIME + 1,
            ),
            Record(topic=cluster.topic, value=b"", key=None, partition=1, timestamp_ms=TIME - 1),
            Record(topic=cluster.topic, value=b"", key=b"", partition=1, timestamp_ms=TIME),
            Record(
                topic=cluster.topic,
                value=b"v",
                headers={f"h{n}": b"%d" % n for n in range(60)},
                partition=2,
                timestamp_ms=TIME,
            ),
        ]
        reject = Record(
            topic="", value=b"body", key=b"k", headers={"a": b"1"}, timestamp_ms=TIME + 2
        )

        async def run() -> None:
            sink = cluster.sink()
            await sink.open()
            await sink.publish(Unit(records=sent, rejects=[reject]))
            await sink.close()

        asyncio.run(run())
        assert cluster.records() == sent
        (found,) = cluster.rejects()
        assert (found.value, found.key, found.headers) == (b"body", b"k", {"a": b"1"})
        assert found.timestamp_ms == TIME + 2

    def test_state_keys_may_hold_any_text(self, cluster: Cluster) -> None:  # DM-8: byte for byte
        keys = ["stream/\ufffd", "stream/\ufffe/Größe", "stream/\x00", "stream/\U0001f600", " "]

        async def run() -> None:
            sink = cluster.sink()
            await sink.open()
            await sink.publish(Unit(state=dict.fromkeys(keys, b"1")))
            await sink.publish(Unit(state={keys[0]: None}))
            snapshot = await sink.open()
            assert own_state(snapshot.state) == dict.fromkeys(keys[1:], b"1")
            await sink.close()

        asyncio.run(run())

    def test_closing_twice_is_harmless(self, cluster: Cluster) -> None:
        async def run() -> None:
            never_opened = cluster.sink()
            await never_opened.close()
            sink = cluster.sink()
            await sink.open()
            await sink.close()
            await sink.close()

        asyncio.run(run())
