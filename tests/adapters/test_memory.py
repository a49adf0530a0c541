"""The sink of the unit tests keeps the same promises as the real one."""

import asyncio

import pytest

from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.core.ports import Record, Unit
from bridge.model.errors import SinkUnavailable
from tests.adapters.sink_contract import Cluster, SinkContract, record


class MemoryCluster:
    topic = "orders"
    rejects_topic = ""

    def __init__(self) -> None:
        self.log = MemoryLog()

    def sink(self) -> MemoryShardSink:
        return MemoryShardSink(self.log)

    def records(self) -> list[Record]:
        return sorted(self.log.records, key=lambda r: r.partition or 0)

    def rejects(self) -> list[Record]:
        return self.log.rejects

    def audit(self) -> list[bytes]:
        return self.log.audit


class TestMemoryShardSink(SinkContract):
    @pytest.fixture
    def cluster(self) -> Cluster:
        return MemoryCluster()


@pytest.mark.parametrize(("failure", "committed"), [("before", []), ("after", [b"1"])])
def test_a_publish_can_fail_before_and_after_its_commit(
    failure: str, committed: list[bytes]
) -> None:
    cluster = MemoryCluster()

    async def run() -> None:
        sink = cluster.sink()
        await sink.open()
        sink.fail_next = failure
        with pytest.raises(SinkUnavailable):
            await sink.publish(Unit(records=[record(cluster, b"1")]))
        with pytest.raises(SinkUnavailable):  # closed until it is opened anew
            await sink.publish(Unit(records=[record(cluster, b"2")]))
        await sink.open()
        await sink.publish(Unit(records=[record(cluster, b"3")]))

    asyncio.run(run())
    assert [r.value for r in cluster.records()] == [*committed, b"3"]


def test_a_log_that_is_down_takes_nothing() -> None:
    cluster = MemoryCluster()

    async def run() -> None:
        sink = cluster.sink()
        await sink.open()
        cluster.log.up.clear()
        with pytest.raises(SinkUnavailable):
            await sink.publish(Unit(records=[record(cluster, b"1")]))
        with pytest.raises(SinkUnavailable):
            await sink.open()
        cluster.log.up.set()
        await sink.open()

    asyncio.run(run())
    assert cluster.records() == []
