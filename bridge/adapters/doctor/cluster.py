"""What the doctor asks a Kafka cluster. Nothing here writes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    OffsetSpec,
)
from msgspec import Struct

from bridge.adapters.kafka.client import Settings
from bridge.model.errors import ConfigError, Unavailable

Place = tuple[str, int]  # topic and partition
Answer = TypeVar("Answer")

CALL_S: Final = 4.0
_API: Final = re.compile(r"ApiKey .*\((\d+)\) Versions (\d+)\.\.(\d+)")
_STATE: Final = re.compile(r" \(after \d+ms in state \w+.*")
_NOT_THE_CAUSE: Final = (KafkaError._ALL_BROKERS_DOWN,)


class Partition(Struct, frozen=True):
    number: int
    has_leader: bool
    replicas: int
    in_sync: int


class TopicState(Struct, frozen=True, kw_only=True):
    partitions: tuple[Partition, ...] = ()
    operations: frozenset[str] | None = None  # None: the broker does not say
    error: str = ""  # e.g. TOPIC_AUTHORIZATION_FAILED

    @property
    def is_missing(self) -> bool:
        return self.error == "UNKNOWN_TOPIC_OR_PART"


class Cluster(Protocol):
    bootstrap: str
    brokers: Mapping[int, str]

    def api_versions(self) -> Mapping[int, int]:
        """API key -> highest version, as the brokers say."""

    def broker_config(self, broker: int) -> Mapping[str, str] | None:
        """None if we may not see it."""

    def topic_config(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Of those that exist and that we may see."""

    def topics(self, names: Sequence[str]) -> Mapping[str, TopicState]: ...

    def operations(self) -> frozenset[str] | None:
        """What we may do with the cluster itself."""

    def ends(self, places: Iterable[Place], *, committed: bool) -> Mapping[Place, int]:
        """Without the partitions that do not answer, here and below."""

    def first_since(self, places: Iterable[Place], unix_ms: int) -> Mapping[Place, int]:
        """The first offset with this time or a later one; -1 if there is none."""

    def newest_ms(self, places: Iterable[Place]) -> int:
        """The latest timestamp in any of them, markers too; -1 if they are empty."""


class _ApiVersions(logging.Handler):
    """The client tells the brokers' API versions in its log, and nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: dict[int, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if found := _API.search(record.getMessage()):
            self.heard[int(found[1])] = int(found[3])


def connect(settings: Settings) -> Cluster:
    """ConfigError for settings that make no client, Unavailable if no broker answers."""
    versions = _ApiVersions()
    logger = logging.Logger("librdkafka", logging.DEBUG)  # on its own: nothing goes to stderr
    logger.addHandler(versions)
    errors: list[KafkaError] = []
    properties = {
        "client.id": "msmq-bridge-doctor",
        **settings,
        "allow.auto.create.topics": False,
        "debug": "feature",
        "error_cb": errors.append,
    }
    try:
        admin = AdminClient(properties, logger=logger)
    except (KafkaException, TypeError, ValueError) as error:
        mend = "see librdkafka's list of configuration properties"
        raise ConfigError(_text(error), where="kafka", mend=mend) from error
    bootstrap = str(settings.get("bootstrap.servers", ""))
    try:
        metadata = admin.list_topics(timeout=CALL_S)
    except KafkaException as error:
        admin.poll(0)
        causes = [e for e in errors if e.code() not in _NOT_THE_CAUSE]
        why = _STATE.sub("", causes[0].str()) if causes else _text(error)
        raise Unavailable(f"no broker answers at {bootstrap} ({why})") from error
    admin.poll(0)  # hands over what is in the log
    brokers = {number: f"{b.host}:{b.port}" for number, b in metadata.brokers.items()}
    return _KafkaCluster(admin, bootstrap, brokers, versions.heard)


class _KafkaCluster:
    def __init__(
        self,
        admin: AdminClient,
        bootstrap: str,
        brokers: Mapping[int, str],
        versions: Mapping[int, int],
    ) -> None:
        self._admin, self._versions = admin, versions
        self.bootstrap, self.brokers = bootstrap, brokers

    def api_versions(self) -> Mapping[int, int]:
        return self._versions

    def broker_config(self, broker: int) -> Mapping[str, str] | None:
        return self._configs(ConfigResource.Type.BROKER, [str(broker)]).get(str(broker))

    def topic_config(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        return self._configs(ConfigResource.Type.TOPIC, topics)

    def _configs(self, kind: Any, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
        if not names:
            return {}
        resources = [ConfigResource(kind, name) for name in names]
        asked = self._admin.describe_configs(resources, request_timeout=CALL_S)
        found: dict[str, Mapping[str, str]] = {}
        for resource, future in asked.items():
            try:
                entries = _result(future)
            except KafkaException as error:
                if not _is_denied(error) and not _is_missing(error):
                    raise
            else:
                found[resource.name] = {name: entry.value for name, entry in entries.items()}
        return found

    def topics(self, names: Sequence[str]) -> Mapping[str, TopicState]:
        if not names:
            return {}
        asked = self._admin.describe_topics(
            TopicCollection(list(names)),
            include_authorized_operations=True,
            request_timeout=CALL_S,
        )
        return {name: _topic_state(future) for name, future in asked.items()}

    def operations(self) -> frozenset[str] | None:
        asked = self._admin.describe_cluster(
            include_authorized_operations=True, request_timeout=CALL_S
        )
        try:
            return _operations(_result(asked).authorized_operations)
        except KafkaException as error:
            if _is_denied(error):
                return frozenset()
            raise

    def ends(self, places: Iterable[Place], *, committed: bool) -> Mapping[Place, int]:
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found = self._offsets(places, OffsetSpec.latest(), isolation)  # type: ignore[no-untyped-call]
        return {place: info.offset for place, info in found.items()}

    def first_since(self, places: Iterable[Place], unix_ms: int) -> Mapping[Place, int]:
        spec = OffsetSpec.for_timestamp(unix_ms)
        found = self._offsets(places, spec, IsolationLevel.READ_UNCOMMITTED)
        return {place: info.offset for place, info in found.items()}

    def newest_ms(self, places: Iterable[Place]) -> int:
        spec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        found = self._offsets(places, spec, IsolationLevel.READ_UNCOMMITTED)
        return max((info.timestamp for info in found.values()), default=-1)

    def _offsets(self, places: Iterable[Place], spec: Any, isolation: Any) -> dict[Place, Any]:
        wanted = {TopicPartition(*place): spec for place in places}
        if not wanted:
            return {}
        asked = self._admin.list_offsets(wanted, isolation_level=isolation, request_timeout=CALL_S)
        found: dict[Place, Any] = {}
        silent: KafkaException | None = None
        for at, future in asked.items():
            try:
                found[at.topic, at.partition] = _result(future)
            except KafkaException as error:  # its leader moves, or we may not see it
                silent = error
        if silent is not None and not found:
            raise silent
        return found


def _result(future: Future[Answer]) -> Answer:
    # Longer than the request: its own time-out tells more than a bare TimeoutError.
    return future.result(CALL_S + 1.0)


def _topic_state(future: Future[Any]) -> TopicState:
    try:
        found = _result(future)
    except KafkaException as error:
        return TopicState(error=error.args[0].name())
    partitions = tuple(
        Partition(p.id, p.leader is not None and p.leader.id >= 0, len(p.replicas), len(p.isr))
        for p in found.partitions
    )
    return TopicState(partitions=partitions, operations=_operations(found.authorized_operations))


def _operations(told: Iterable[Any] | None) -> frozenset[str] | None:
    return None if told is None else frozenset(operation.name for operation in told)


def _is_denied(error: KafkaException) -> bool:
    return str(error.args[0].name()).endswith("AUTHORIZATION_FAILED")


def _is_missing(error: KafkaException) -> bool:
    return bool(error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART)


def _text(error: Exception) -> str:
    return error.args[0].str() if isinstance(error, KafkaException) else str(error)
