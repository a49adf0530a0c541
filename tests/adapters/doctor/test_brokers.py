"""Whether the brokers answer, their version and their limits."""

from pathlib import Path

import pytest

from bridge.adapters.doctor import brokers
from bridge.adapters.doctor.finding import Result
from bridge.adapters.kafka.folder import BrokerState
from bridge.model.errors import Unavailable
from tests.adapters.doctor.fake_cluster import FakeCluster, bad, found, one, visit_to


def test_brokers_that_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    visit = visit_to(cluster, tmp_path)
    visit.cluster = None
    monkeypatch.setattr(brokers, "connect", lambda settings: cluster)
    assert one(brokers.reachable, visit).found == "broker1:9092 answers (3 brokers)"
    assert visit.kafka is cluster


@pytest.mark.parametrize(
    ("reason", "mend"),
    [
        ("Connect to ipv4#10.0.0.1:9092 failed: Connection refused", "start the brokers"),
        ("Failed to resolve 'b:9092'", "host names"),
        ("SASL authentication error: Authentication failed", "sasl.password"),
        ("SSL handshake failed: certificate verify failed", "ssl.ca.location"),
        ("Local: Timed out", "firewalls"),
    ],
)
def test_brokers_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, mend: str
) -> None:
    def refuse(_: object) -> None:
        raise Unavailable(f"no broker answers at b:9092 ({reason})")

    monkeypatch.setattr(brokers, "connect", refuse)
    finding = bad(brokers.reachable, visit_to(FakeCluster(), tmp_path))
    assert finding.result is Result.FAIL
    assert reason in finding.found
    assert mend in finding.mend


def test_the_embedded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visit = visit_to(FakeCluster(), tmp_path, kafka={})
    assert one(brokers.reachable, visit).result is Result.SKIP
    state = BrokerState(pid=1, bootstrap_servers="127.0.0.1:5", cluster_id="c", detached=False)
    monkeypatch.setattr(brokers, "running_broker", lambda _: state)
    asked: list[object] = []

    def answer(settings: dict[str, object]) -> FakeCluster:
        asked.append(settings["bootstrap.servers"])
        return FakeCluster()

    monkeypatch.setattr(brokers, "connect", answer)
    assert "embedded" in one(brokers.reachable, visit).found
    assert asked == ["127.0.0.1:5"]


@pytest.mark.parametrize(
    ("versions", "result", "word"),
    [
        ({22: 5, 26: 5, 66: 2}, Result.OK, "4.0"),
        ({22: 4, 26: 3, 66: 0, 60: 0}, Result.OK, "3.0"),
        ({22: 4, 60: 0}, Result.WARN, "2.8"),
        ({22: 3}, Result.WARN, "2.5"),
        ({22: 1}, Result.FAIL, "0.11"),
        ({0: 2}, Result.FAIL, "no transactions"),
        ({}, Result.SKIP, "does not tell"),
    ],
)
def test_versions(tmp_path: Path, versions: dict[int, int], result: Result, word: str) -> None:
    cluster = FakeCluster()
    cluster.versions = versions
    finding = one(brokers.version, visit_to(cluster, tmp_path))
    assert finding.result is result
    assert word in finding.found


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("transaction.max.timeout.ms", "30000", Result.FAIL),
        ("socket.request.max.bytes", "1000000", Result.FAIL),
        ("default.replication.factor", "1", Result.FAIL),  # less than min.insync.replicas
        ("default.replication.factor", "4", Result.FAIL),  # more than brokers
        ("default.replication.factor", "2", Result.WARN),
    ],
)
def test_limits(tmp_path: Path, name: str, value: str, result: Result) -> None:
    cluster = FakeCluster()
    visit = visit_to(cluster, tmp_path)
    assert cluster.config is not None
    assert {f.result for f in found(brokers.limits, visit)} == {Result.OK}
    cluster.config[name] = value
    finding = bad(brokers.limits, visit)
    assert (finding.about, finding.result) == (name, result)
    assert value in finding.found


def test_our_own_transaction_timeout_counts(tmp_path: Path) -> None:
    kafka = {"bootstrap.servers": "b:1", "transaction.timeout.ms": 1_000_000}
    finding = bad(brokers.limits, visit_to(FakeCluster(), tmp_path, kafka=kafka))
    assert "1000000" in finding.found


def test_one_copy_of_everything(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.brokers = {1: "b:1"}
    assert cluster.config is not None
    cluster.config |= {"default.replication.factor": "1", "min.insync.replicas": "1"}
    assert bad(brokers.limits, visit_to(cluster, tmp_path)).result is Result.WARN
    embedded = visit_to(cluster, tmp_path, kafka={})  # it cannot be otherwise there
    assert {f.result for f in found(brokers.limits, embedded)} == {Result.OK}


def test_limits_that_may_not_be_seen(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.config = None
    assert one(brokers.limits, visit_to(cluster, tmp_path)).result is Result.SKIP
