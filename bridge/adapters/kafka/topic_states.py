"""What is wrong with topics, as the cluster tells it: gone, closed to us, without a leader."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
)

from bridge.adapters.kafka.client import Settings, admin_client, unavailable
from bridge.adapters.kafka.topics import limits_of
from bridge.core.catalogue import TopicLimits

PATIENCE_S: Final = 5.0
AT_ONCE: Final = 500  # topics of one request
_GONE: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)


class TopicState(msgspec.Struct, frozen=True):
    """`why` it takes no record; `is_short`: brokers are missing, which may pass by itself."""

    why: str = ""
    is_short: bool = False
    limits: TopicLimits | None = None  # None: they could not be asked for


class TopicStates:
    """Asks with one client; every call blocks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin: AdminClient | None = None

    def look(self, names: Collection[str]) -> dict[str, TopicState]:
        """Raises SinkUnavailable when Kafka does not answer."""
        if self._admin is None:
            self._admin = admin_client(self._settings)
        asked, found = sorted(names), dict[str, TopicState]()
        try:
            for start in range(0, len(asked), AT_ONCE):
                found |= self._ask(self._admin, asked[start : start + AT_ONCE])
        except KafkaException as error:
            raise unavailable("looking at topics", error) from error
        return found

    def _ask(self, admin: AdminClient, names: list[str]) -> dict[str, TopicState]:
        described = admin.describe_topics(
            TopicCollection(names),
            include_authorized_operations=True,
            request_timeout=PATIENCE_S,
        )
        found, there = dict[str, TopicState](), dict[str, Any]()
        for name, future in described.items():
            try:
                there[name] = future.result()
            except KafkaException as error:
                if (why := _trouble(error.args[0])) is None:
                    raise
                found[name] = TopicState(why)
        configs = self._configs(admin, list(there))
        for name, topic in there.items():
            found[name] = _state(topic, configs.get(name))
        return found

    def _configs(self, admin: AdminClient, names: list[str]) -> dict[str, Mapping[str, str]]:
        """Without the right to read them a topic is as it was."""
        if not names:
            return {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        found = dict[str, Mapping[str, str]]()
        asked = admin.describe_configs(resources, request_timeout=PATIENCE_S)
        for resource, future in asked.items():
            try:
                entries = future.result()
            except KafkaException as error:
                if _trouble(error.args[0]) is None:
                    raise
                continue
            found[resource.name] = {key: entry.value for key, entry in entries.items()}
        return found


def _trouble(error: KafkaError) -> str | None:
    if error.code() in _GONE:
        return "is gone: make it again (a reload of the mappings makes topics that are missing)"
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return "may not be seen by us: give us the rights Describe and Write on it"
    if error.code() == KafkaError.TOPIC_EXCEPTION:
        return "has a name that Kafka does not take"
    return None


def _state(topic: Any, config: Mapping[str, str] | None) -> TopicState:
    limits = None if config is None else limits_of(len(topic.partitions), config)
    allowed = topic.authorized_operations
    if allowed is not None and allowed and AclOperation.WRITE not in allowed:
        return TopicState("may not be written by us: give us the right Write on it", limits=limits)
    least = 1 if config is None else int(config.get("min.insync.replicas") or 1)
    for partition in topic.partitions:
        if partition.leader is None or partition.leader.id < 0:
            why = f"partition {partition.id} has no leader: start its brokers"
            return TopicState(why, is_short=True, limits=limits)
        if len(partition.isr) < least:
            why = (
                f"partition {partition.id} has {len(partition.isr)} replicas in sync and "
                f"min.insync.replicas is {least}: start its brokers, or lower the setting"
            )
            return TopicState(why, is_short=True, limits=limits)
    return TopicState(limits=limits)
