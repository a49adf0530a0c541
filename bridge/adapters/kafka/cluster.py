"""The cluster as `map plan` sees it and `map apply` changes it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from msgspec import Struct

from bridge.adapters.config_files import kafka_properties
from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, admin_client
from bridge.adapters.kafka.embedded import running_broker
from bridge.adapters.kafka.topics import OwnTopics, own_configs
from bridge.config import Config
from bridge.core import plan
from bridge.core.plan import Change, ClusterState, TopicState
from bridge.core.wanted import FOREVER, SENDER_KEEPS_MS, Wanted
from bridge.model.errors import ConfigError, SinkUnavailable

Result = TypeVar("Result")
Asked = tuple[Change, Future[Any]]

GIVE_UP_S: Final = 3.0  # no broker could be reached for that long
_POLL_S: Final = 0.05
_SEEN_LEAST_MS: Final = 3_600_000  # what a start insists on
_BROKER_DEFAULT: Final = -1
_DEADLINES: Final = {"operation_timeout": CALL_TIMEOUT_S, "request_timeout": CALL_TIMEOUT_S}
_TIMING: Final = re.compile(r" \(after \d+ms in state .*")
_HOPELESS: Final = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
)


class Outcome(Struct, frozen=True):
    """One change, and why it could not be made."""

    change: Change
    error: str = ""


def cluster_settings(config: Config) -> dict[str, Any]:
    """The configured cluster, or the embedded Kafka that runs on the data folder."""
    settings: dict[str, Any] = dict(kafka_properties(config))
    if "bootstrap.servers" not in settings:
        broker = running_broker(config.data / "kafka")
        if broker is None:
            raise ConfigError(
                f"no Kafka: none is configured and none runs in {config.data / 'kafka'}",
                where="kafka.bootstrap.servers",
                mend="set it, or start the embedded one with 'msmq-bridge serve'",
            )
        settings["bootstrap.servers"] = broker.bootstrap_servers
    return settings


def own_topics(own: OwnTopics, shards: int) -> list[Wanted]:
    """What the appliance owns (design 3.4), as its start makes and checks it."""
    least = {own.seen: _SEEN_LEAST_MS, own.deadletter: FOREVER}
    wanted = []
    for name, config in own_configs(own).items():
        rest = dict(config)
        wanted.append(
            Wanted(
                name=name,
                why=("the appliance itself",),
                policy=rest.pop("cleanup.policy"),
                max_bytes=int(rest.pop("max.message.bytes")),
                kept_ms=int(rest.pop("retention.ms", FOREVER)),
                least_ms=least.get(name, SENDER_KEEPS_MS),
                own_partitions=shards,
                config=rest,
            )
        )
    return wanted


class Cluster:
    """One admin client; every call has a deadline and says in one line what went wrong."""

    def __init__(self, settings: Settings) -> None:
        self._bootstrap = settings.get("bootstrap.servers", "")
        self._complaints: list[KafkaError] = []
        quiet = {"log_level": 0, **settings, "error_cb": self._complaints.append}
        try:
            self._admin = admin_client(quiet)
        except KafkaException as error:
            raise ConfigError(
                _reason(error), where="kafka", mend="see librdkafka's list of properties"
            ) from error

    # -- reading ----------------------------------------------------------------------------

    def read(self, names: Iterable[str]) -> ClusterState:
        """The facts about these topics; those that are not there are left out."""
        nodes = self._reach(self._admin.describe_cluster(request_timeout=CALL_TIMEOUT_S)).nodes
        defaults = self._broker_config(nodes[0].id)
        return ClusterState(
            brokers=len(nodes),
            topics=self._topics(sorted(set(names))),
            partitions=_number(defaults, "num.partitions"),
            replication=_number(defaults, "default.replication.factor"),
            min_insync=_number(defaults, "min.insync.replicas"),
            retention_ms=_default_retention_ms(defaults),
        )

    def _broker_config(self, node: int) -> dict[str, str]:
        """Empty where we may not ask: managed clusters keep it to themselves."""
        resource = ConfigResource(ConfigResource.Type.BROKER, str(node))
        try:
            return self._configs([resource])[str(node)]
        except SinkUnavailable as error:
            if _is(error, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
                return {}
            raise

    def _topics(self, names: list[str]) -> dict[str, TopicState]:
        if not names:
            return {}
        found = {}
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=CALL_TIMEOUT_S)
        for name, future in asked.items():
            try:
                found[name] = self._wait(future, f"reading topic {name}").partitions
            except SinkUnavailable as error:
                if not _is(error, KafkaError.UNKNOWN_TOPIC_OR_PART):
                    raise
        if not found:
            return {}
        configs = self._configs([ConfigResource(ConfigResource.Type.TOPIC, name) for name in found])
        written = self._written({name: len(parts) for name, parts in found.items()})
        return {
            name: TopicState(
                partitions=len(parts),
                replication=min(len(part.replicas) for part in parts),
                config=configs[name],
                empty=name not in written,
            )
            for name, parts in found.items()
        }

    def _configs(self, resources: list[ConfigResource]) -> dict[str, dict[str, str]]:
        asked = self._admin.describe_configs(resources, request_timeout=CALL_TIMEOUT_S)
        return {
            resource.name: {
                name: entry.value
                for name, entry in self._wait(future, f"settings of {resource.name}").items()
                if entry.value is not None
            }
            for resource, future in asked.items()
        }

    def _written(self, partitions: Mapping[str, int]) -> set[str]:
        """Topics that hold, or once held, a record; one that does not tell counts as such."""
        asked = {
            TopicPartition(name, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
            for name, count in partitions.items()
            for number in range(count)
        }
        written = set()
        answers = self._admin.list_offsets(asked, request_timeout=CALL_TIMEOUT_S)
        for partition, future in answers.items():
            try:
                if self._wait(future, "reading offsets").offset == 0:
                    continue
            except SinkUnavailable:
                pass
            written.add(partition.topic)
        return written

    # -- changing ---------------------------------------------------------------------------

    def execute(self, changes: Iterable[Change]) -> list[Outcome]:
        """Everything that can be done is done; the outcomes say what was not, and why."""
        todo = [change for change in changes if change.action != "warn"]
        new = [change for change in todo if change.action == "create"]
        grown = [c for c in todo if c.action == "alter" and c.setting == "partitions"]
        altered = [c for c in todo if c.action == "alter" and c.setting != "partitions"]
        asked = [*self._create(new), *self._alter(altered), *self._grow(grown)]
        return [Outcome(change, self._error(future)) for change, future in asked]

    def _error(self, future: Future[Any]) -> str:
        try:
            self._wait(future, "changing topics")
        except SinkUnavailable as error:
            return _reason(error.__cause__ or error)
        return ""

    def _create(self, changes: list[Change]) -> Iterator[Asked]:
        topics = []
        for change in changes:
            made = change.after
            assert isinstance(made, plan.NewTopic)
            topics.append(
                NewTopic(
                    change.topic,
                    made.partitions or _BROKER_DEFAULT,
                    made.replication or _BROKER_DEFAULT,
                    config=dict(made.config),
                )
            )
        asked = self._admin.create_topics(topics, **_DEADLINES) if topics else {}
        yield from ((change, asked[change.topic]) for change in changes)

    def _alter(self, changes: list[Change]) -> Iterator[Asked]:
        """All settings of a topic in one request: they change together or not at all."""
        entries: dict[str, list[ConfigEntry]] = {}
        for change in changes:
            entries.setdefault(change.topic, []).append(_set(change))
        resources = [
            ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=mine)
            for name, mine in entries.items()
        ]
        if resources:
            answers = self._admin.incremental_alter_configs(
                resources, request_timeout=CALL_TIMEOUT_S
            )
            asked = {resource.name: future for resource, future in answers.items()}
            yield from ((change, asked[change.topic]) for change in changes)

    def _grow(self, changes: list[Change]) -> Iterator[Asked]:
        wanted = [NewPartitions(c.topic, c.after) for c in changes if isinstance(c.after, int)]
        asked = self._admin.create_partitions(wanted, **_DEADLINES) if wanted else {}
        yield from ((change, asked[change.topic]) for change in changes)

    # -- waiting ----------------------------------------------------------------------------

    def _reach(self, future: Future[Result]) -> Result:
        """The first answer. Gives up early when there is no broker: an operator is waiting."""
        patience = time.monotonic() + GIVE_UP_S
        while not future.done():
            self._admin.poll(_POLL_S)
            if time.monotonic() > patience and (hopeless := self._hopeless()):
                raise SinkUnavailable(
                    f"Kafka at {self._bootstrap} cannot be reached: {hopeless}; "
                    "check kafka.bootstrap.servers"
                )
        return self._wait(future, "reading the cluster")

    def _wait(self, future: Future[Result], doing: str) -> Result:
        """Every request has its deadline."""
        try:
            return future.result()
        except KafkaException as error:
            raise SinkUnavailable(
                f"Kafka at {self._bootstrap}: {doing}: {_reason(error)}"
            ) from error

    def _hopeless(self) -> str:
        if not any(error.code() in _HOPELESS for error in self._complaints):
            return ""
        told = [e for e in self._complaints if e.code() != KafkaError._ALL_BROKERS_DOWN]
        return _TIMING.sub("", (told or self._complaints)[-1].str())


def _set(change: Change) -> ConfigEntry:
    return ConfigEntry(
        change.setting, str(change.after), incremental_operation=AlterConfigOpType.SET
    )


def _is(error: SinkUnavailable, code: int) -> bool:
    cause = error.__cause__
    return isinstance(cause, KafkaException) and cause.args[0].code() == code


def _reason(error: BaseException) -> str:
    text = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return " ".join(text.split()).rstrip(".")


def _number(config: Mapping[str, str], name: str) -> int | None:
    return int(config[name]) if name in config else None


def _default_retention_ms(config: Mapping[str, str]) -> int | None:
    """The finest unit that is set wins."""
    for unit, ms in (("ms", 1), ("minutes", 60_000), ("hours", 3_600_000)):
        value = _number(config, f"log.retention.{unit}")
        if value is not None:
            return FOREVER if value < 0 else value * ms
    return None
