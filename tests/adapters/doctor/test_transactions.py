"""Hanging transactions, and the clock of the brokers."""

import time
from pathlib import Path

import pytest

from bridge.adapters.doctor import transactions
from bridge.adapters.doctor.cluster import Partition, TopicState
from bridge.adapters.doctor.finding import Result
from bridge.adapters.doctor.visit import Visit
from tests.adapters.doctor.fake_cluster import FakeCluster, bad, one, topic, visit_to


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    monkeypatch.setattr(transactions, "LOOK_AGAIN_S", 0.0)
    made = FakeCluster()
    made.looks = [{}]
    return made


@pytest.fixture
def visit(cluster: FakeCluster, tmp_path: Path) -> Visit:
    return visit_to(cluster, tmp_path)


def test_none(visit: Visit) -> None:
    assert one(transactions.hanging, visit).found == "none in 12 partitions"


def test_one_that_moves_on(visit: Visit, cluster: FakeCluster) -> None:
    cluster.looks = [{("orders", 0): (5, 9)}, {("orders", 0): (6, 12)}]
    assert one(transactions.hanging, visit).result is Result.OK


def test_one_that_hangs(visit: Visit, cluster: FakeCluster) -> None:
    cluster.looks = [{("orders", 0): (5, 9)}, {("orders", 0): (5, 12)}]
    finding = bad(transactions.hanging, visit)
    assert (finding.result, finding.about) == (Result.FAIL, "orders-0")
    assert "offset 5" in finding.found
    assert "CompleteCommit" in finding.mend  # what was acknowledged must not be aborted
    assert finding.commands[-1] == (
        "kafka-transactions.sh --bootstrap-server broker1:9092 "
        "abort --topic orders --partition 0 --start-offset 5"
    )


def test_whose_it_is(visit: Visit, cluster: FakeCluster) -> None:
    """Only in our own topics does the partition tell the shard, so the transactional id."""
    for topic_name, command in (
        ("own.state", "describe --transactional-id own.shard-1"),
        ("orders", "list"),
    ):
        cluster.looks = [{(topic_name, 1): (5, 9)}, {(topic_name, 1): (5, 9)}]
        finding = bad(transactions.hanging, visit)
        tool = "kafka-transactions.sh --bootstrap-server broker1:9092 "
        assert finding.commands[1] == tool + command


@pytest.mark.parametrize(("since", "result"), [(5, Result.WARN), (6, Result.FAIL)])
def test_how_long_it_hangs(visit: Visit, cluster: FakeCluster, since: int, result: Result) -> None:
    cluster.looks = [{("orders", 0): (5, 9)}, {("orders", 0): (5, 9)}]
    cluster.since = {("orders", 0): since}  # the first that is younger than any of ours may be
    assert bad(transactions.hanging, visit).result is result


def test_a_partition_that_does_not_answer(visit: Visit, cluster: FakeCluster) -> None:
    cluster.silent = {("orders", 1)}
    finding = bad(transactions.hanging, visit)
    assert (finding.result, finding.found) == (Result.WARN, "no answer from orders-1")
    assert "none in 11 partitions" in [one.found for one in transactions.hanging(visit)]
    cluster.looks = [{("orders", 0): (5, 9)}, {("orders", 0): (5, 12)}]
    assert one(transactions.hanging, visit, "orders-0").result is Result.FAIL


def test_partitions_without_a_leader_are_not_well(visit: Visit, cluster: FakeCluster) -> None:
    """Their brokers are dead: nothing was looked at, so nothing was found."""
    for name in list(cluster.states):
        parts = tuple(Partition(number, False, 3, 0) for number in range(2))
        cluster.states[name] = TopicState(partitions=parts)
    found = [finding.found for finding in transactions.hanging(visit)]
    assert found == [
        "not looked at, no leader: own.state-0, own.state-1, own.seen-0, own.seen-1, own.audit-0, "
        "own.audit-1, own.rejects-0, own.rejects-1, own.deadletter-0, own.deadletter-1 and 2 more"
    ]
    cluster.states["orders"] = topic()
    told = list(transactions.hanging(visit))
    assert [finding.result for finding in told] == [Result.WARN, Result.OK]
    assert told[1].found == "none in 2 partitions"


def test_the_clock(visit: Visit, cluster: FakeCluster) -> None:
    assert one(transactions.clock, visit).result is Result.SKIP
    visit.status = {"ready": True}
    cluster.states["own.state"] = topic()
    assert one(transactions.clock, visit).result is Result.SKIP  # nothing there yet
    for ahead, result in ((-5, Result.OK), (1, Result.OK), (60, Result.WARN), (-600, Result.WARN)):
        cluster.newest = int((time.time() + ahead) * 1000)
        finding = one(transactions.clock, visit)
        assert finding.result is result, ahead
