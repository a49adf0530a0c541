"""Topics: ours as a start would want them, the mapped ones as the mappings do."""

from pathlib import Path

import pytest

from bridge.adapters.doctor import topics
from bridge.adapters.doctor.cluster import Partition, TopicState
from bridge.adapters.doctor.finding import Result
from bridge.adapters.doctor.visit import Visit
from tests.adapters.doctor.fake_cluster import ALL, FakeCluster, bad, found, one, topic, visit_to


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def visit(cluster: FakeCluster, tmp_path: Path) -> Visit:
    return visit_to(cluster, tmp_path)


def test_all_is_well(visit: Visit) -> None:
    assert one(topics.own_topics, visit).result is Result.OK
    assert one(topics.mapped_topics, visit).found == "orders can be written"


def test_nothing_is_there_yet(visit: Visit, cluster: FakeCluster) -> None:
    cluster.states.clear()
    assert one(topics.own_topics, visit).result is Result.OK
    assert bad(topics.mapped_topics, visit).result is Result.WARN


def test_a_topic_that_is_gone(visit: Visit, cluster: FakeCluster) -> None:
    del cluster.states["own.state"]
    assert bad(topics.own_topics, visit).result is Result.FAIL
    cluster.states["own.state"] = topic()
    del cluster.states["own.audit"]
    finding = bad(topics.own_topics, visit)
    assert (finding.result, finding.about) == (Result.WARN, "own.audit")
    visit.status = {"ready": True}
    del cluster.states["orders"]
    assert bad(topics.mapped_topics, visit).result is Result.FAIL


def test_partitions(visit: Visit, cluster: FakeCluster) -> None:
    cluster.states["own.seen"] = topic(5)
    finding = bad(topics.own_topics, visit)
    assert (finding.result, finding.about) == (Result.FAIL, "own.seen")
    for name in topics.own_names(visit):
        cluster.states[name] = topic(5)
    finding = bad(topics.own_topics, visit)
    assert (finding.result, finding.about) == (Result.WARN, "own.state")
    assert "set 'shards' to 5" in finding.mend


@pytest.mark.parametrize(
    ("name", "setting", "value", "result"),
    [
        ("own.state", "cleanup.policy", "delete", Result.FAIL),
        ("own.audit", "max.message.bytes", "1000", Result.FAIL),
        ("own.seen", "retention.ms", "1000", Result.FAIL),
        ("own.seen", "retention.ms", "3600000", Result.WARN),
        ("own.seen", "retention.bytes", "1000000", Result.FAIL),
        ("own.audit", "retention.ms", "3600000", Result.WARN),
        ("own.deadletter", "retention.ms", "3600000", Result.WARN),
    ],
)
def test_own_settings(
    visit: Visit, cluster: FakeCluster, name: str, setting: str, value: str, result: Result
) -> None:
    cluster.configs[name] = cluster.configs[name] | {setting: value}
    finding = bad(topics.own_topics, visit)
    assert (finding.about, finding.result) == (name, result)
    assert f"{setting} is {value}" in finding.found
    (command,) = finding.commands
    assert command.startswith("kafka-configs.sh --bootstrap-server broker1:9092 --alter")
    assert f"--entity-name {name} --add-config {setting}=" in command


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("own.rejects", "retention.bytes", "-1"),
        ("own.audit", "retention.bytes", "-1"),
        ("own.seen", "retention.bytes", "-1"),
        ("own.state", "max.compaction.lag.ms", "9223372036854775807"),
        ("own.state", "max.compaction.lag.ms", "3600000"),
        ("own.state", "delete.retention.ms", "3600000"),
    ],
)
def test_topics_of_older_versions_without_a_bound(
    visit: Visit, cluster: FakeCluster, name: str, setting: str, value: str
) -> None:
    cluster.configs[name] = cluster.configs[name] | {setting: value}
    finding = bad(topics.own_topics, visit)
    assert (finding.about, finding.result) == (name, Result.WARN)
    assert f"{setting} not bounded" in finding.found
    (command,) = finding.commands
    assert f"--entity-name {name} --add-config {setting}=" in command


def test_another_bound_is_fine(visit: Visit, cluster: FakeCluster) -> None:
    cluster.configs["own.rejects"] = cluster.configs["own.rejects"] | {"retention.bytes": "1000"}
    assert one(topics.own_topics, visit).result is Result.OK


def test_a_longer_retention_is_fine(visit: Visit, cluster: FakeCluster) -> None:
    cluster.configs["own.audit"] = cluster.configs["own.audit"] | {"retention.ms": "-1"}
    assert one(topics.own_topics, visit).result is Result.OK


@pytest.mark.parametrize(
    ("setting", "value"),
    [("max.message.bytes", "1000"), ("cleanup.policy", "compact"), ("retention.ms", "1000")],
)
def test_mapped_settings(visit: Visit, cluster: FakeCluster, setting: str, value: str) -> None:
    cluster.configs["orders"] = cluster.configs["orders"] | {setting: value}
    finding = bad(topics.mapped_topics, visit)
    assert (finding.result, finding.about) == (Result.WARN, "orders")
    assert f"{setting} is {value}" in finding.found
    assert "map plan" in finding.mend


@pytest.mark.parametrize(
    ("partition", "result", "word"),
    [
        (Partition(1, False, 3, 0), Result.FAIL, "no leader for partition 1"),
        (Partition(1, True, 3, 1), Result.FAIL, "fewer than 2 replicas"),
        (Partition(1, True, 3, 2), Result.WARN, "behind in partition 1"),
    ],
)
def test_replicas(
    visit: Visit, cluster: FakeCluster, partition: Partition, result: Result, word: str
) -> None:
    parts = (Partition(0, True, 3, 3), partition)
    for name, check in (("orders", topics.mapped_topics), ("own.state", topics.own_topics)):
        cluster.states[name] = TopicState(partitions=parts, operations=ALL)
        finding = bad(check, visit)
        assert (finding.result, finding.about) == (result, name)
        assert word in finding.found
    assert ("orders", 0) in topics.places(cluster.states)
    assert (("orders", 1) in topics.places(cluster.states)) == partition.has_leader


def test_settings_that_may_not_be_seen(visit: Visit, cluster: FakeCluster) -> None:
    cluster.configs.clear()
    assert one(topics.own_topics, visit).result is Result.OK
    assert len(found(topics.mapped_topics, visit)) == 1
