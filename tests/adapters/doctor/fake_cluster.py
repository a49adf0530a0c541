"""A cluster that says what a test wants, and a visit to it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.adapters.config_files import load_config, load_mappings
from bridge.adapters.doctor.cluster import Partition, Place, TopicState
from bridge.adapters.doctor.finding import Finding, Result
from bridge.adapters.doctor.topics import own_names
from bridge.adapters.doctor.visit import Visit
from bridge.adapters.kafka.topics import OwnTopics, own_configs

ALL = frozenset(("READ", "WRITE", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"))
MISSING = TopicState(error="UNKNOWN_TOPIC_OR_PART")
BROKER = {
    "transaction.max.timeout.ms": "900000",
    "socket.request.max.bytes": "104857600",
    "message.max.bytes": "1048588",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
MAPPED = {
    "cleanup.policy": "delete",
    "max.message.bytes": "8388608",
    "retention.ms": "604800000",
    "min.insync.replicas": "2",
}


def topic(partitions: int = 2, operations: frozenset[str] | None = ALL) -> TopicState:
    parts = tuple(Partition(number, True, 3, 3) for number in range(partitions))
    return TopicState(partitions=parts, operations=operations)


class FakeCluster:
    """Everything is well until a test changes it."""

    def __init__(self) -> None:
        self.bootstrap = "broker1:9092"
        self.brokers: Mapping[int, str] = {number: f"broker{number}:9092" for number in (1, 2, 3)}
        self.versions = {22: 5, 26: 5, 66: 2, 60: 2}
        self.config: dict[str, str] | None = dict(BROKER)
        self.states: dict[str, TopicState] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.may: frozenset[str] | None = ALL
        self.looks: list[dict[Place, tuple[int, int]]] = []  # committed end and end, one per look
        self.since: dict[Place, int] = {}
        self.newest = -1
        self.silent: set[Place] = set()

    def api_versions(self) -> Mapping[int, int]:
        return self.versions

    def broker_config(self, broker: int) -> Mapping[str, str] | None:
        assert broker in self.brokers
        return self.config

    def topic_config(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        return {name: self.configs[name] for name in topics if name in self.configs}

    def topics(self, names: Sequence[str]) -> Mapping[str, TopicState]:
        return {name: self.states.get(name, MISSING) for name in names}

    def operations(self) -> frozenset[str] | None:
        return self.may

    def ends(self, places: Iterable[Place], *, committed: bool) -> Mapping[Place, int]:
        look = self.looks[0] if committed or len(self.looks) == 1 else self.looks.pop(0)
        side = 0 if committed else 1
        return {at: look.get(at, (7, 7))[side] for at in places if at not in self.silent}

    def first_since(self, places: Iterable[Place], unix_ms: int) -> Mapping[Place, int]:
        return {place: self.since.get(place, -1) for place in places}

    def newest_ms(self, places: Iterable[Place]) -> int:
        return self.newest


def visit_to(cluster: FakeCluster, folder: Path, **settings: Any) -> Visit:
    """With one queue, its topic `orders`, and every topic as it should be."""
    (folder / "mappings.yaml").write_text('queues: [{queue: "private$\\\\orders", topic: orders}]')
    settings = {"mappings": "mappings.yaml", "data": "data", "topic_prefix": "own"} | settings
    settings.setdefault("kafka", {"bootstrap.servers": "broker1:9092"})
    path = folder / "bridge.yaml"
    path.write_text(json.dumps(settings))
    visit = Visit(path)
    visit.config = load_config(path)
    visit.mappings = load_mappings(visit.config.mappings)
    visit.cluster = cluster
    for name in (*own_names(visit), "orders"):
        cluster.states[name] = topic()
        wanted = own_configs(OwnTopics("own")).get(name, {})
        cluster.configs[name] = MAPPED | wanted
    return visit


def found(check: Callable[[Visit], Iterable[Finding]], visit: Visit) -> list[Finding]:
    """What a check found; what is not well says how to mend it."""
    findings = list(check(visit))
    assert findings
    for finding in findings:
        assert finding.mend or finding.result in (Result.OK, Result.SKIP), finding
        assert len(finding.found.splitlines()) == 1
    return findings


def one(check: Callable[[Visit], Iterable[Finding]], visit: Visit, about: str = "") -> Finding:
    (finding,) = [finding for finding in found(check, visit) if finding.about == about]
    return finding


def bad(check: Callable[[Visit], Iterable[Finding]], visit: Visit) -> Finding:
    """The only one that is not well."""
    (finding,) = [f for f in found(check, visit) if f.result in (Result.WARN, Result.FAIL)]
    return finding
