"""Where a job works: the cluster of an appliance, its topics and its mappings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bridge.adapters.config_files import kafka_properties, load_config, load_mappings
from bridge.adapters.kafka.embedded import running_broker
from bridge.adapters.kafka.reader import read_to_end
from bridge.adapters.kafka.topics import OwnTopics, look_at
from bridge.config import Config
from bridge.core.catalogue import TopicLimits
from bridge.core.identity import known_identity
from bridge.core.mapping_rules import Mappings
from bridge.model.errors import ConfigError, Unavailable
from bridge.model.guid import NULL_GUID, Guid


class Place(msgspec.Struct, frozen=True):
    """An appliance's Kafka, with what its files say."""

    config: Config
    settings: dict[str, Any]
    own: OwnTopics
    mappings: Mappings
    limits: dict[str, TopicLimits]


def look_around(path: Path | None) -> Place:
    """Raises ConfigError or Unavailable."""
    config = load_config(path)
    settings = dict(kafka_properties(config))
    if "bootstrap.servers" not in settings:
        state = running_broker(config.data / "kafka")
        if state is None:
            raise Unavailable("the embedded Kafka is not running; start the appliance first")
        settings["bootstrap.servers"] = state.bootstrap_servers
    own = OwnTopics(config.topic_prefix)
    mappings = load_mappings(config.mappings, reserved=f"{own.prefix}.")
    try:
        limits = _limits(settings, own, mappings)
    except Unavailable as error:
        where = f"kafka.bootstrap.servers {settings['bootstrap.servers']}"
        mend = "is it up, is the address right, may this user look?"
        raise Unavailable(f"{where}: {error}; {mend}") from error
    if own.audit not in limits:
        what = f"the topic {own.audit} is not there"
        raise ConfigError(what, where="topic_prefix", mend="start the appliance once: it makes it")
    return Place(config, settings, own, mappings, limits)


def look_again(place: Place) -> Place:
    """With the topics that are there now."""
    return replace(place, limits=_limits(place.settings, place.own, place.mappings))


def _limits(settings: dict[str, Any], own: OwnTopics, mappings: Mappings) -> dict[str, TopicLimits]:
    names = None if _is_open_ended(mappings) else {own.audit, own.state, *mappings.topics()}
    return look_at(settings, names)


def _is_open_ended(mappings: Mappings) -> bool:
    """A message can name a topic that no file does."""
    dynamic = any(m.is_dynamic or m.queue.has_wildcard for m in mappings.queues)
    return dynamic or mappings.defaults.unknown == "auto-create"


def identity_of(place: Place) -> Guid:
    """Ours: a number on our queue manager is one of our queues."""
    if place.config.queue_manager.id is not None:
        return place.config.queue_manager.id
    limits = place.limits.get(place.own.state)
    for shard in range(limits.partitions if limits else 0):
        kept = {
            (message.key() or b"").decode("utf-8", "replace"): message.value() or b""
            for message in read_to_end(place.settings, place.own.state, shard)
        }
        if (found := known_identity(kept)) is not None:
            return found
    return NULL_GUID
