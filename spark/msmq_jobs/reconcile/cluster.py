"""What the cluster says of topics: where they begin and end, and what they do not keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]

from bridge.adapters.kafka.client import admin_client, unavailable
from bridge.adapters.kafka.topics import Offsets, committed_ends, first_offsets, topic_ids
from bridge.model.errors import ConfigError


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """Of topics at one moment: the first record that is there, and the end of what is committed."""

    first: Offsets
    ends: Offsets
    ids: dict[str, str] = {}

    def of(self, topics: Iterable[str]) -> Extent:
        """Those alone."""
        return Extent(
            first={topic: self.first[topic] for topic in topics},
            ends={topic: self.ends[topic] for topic in topics},
            ids={topic: self.ids[topic] for topic in topics},
        )

    def ranges(
        self, starts: Mapping[str, Mapping[int, int]], ids: Mapping[str, str] | None = None
    ) -> Offsets:
        """Where to read from: where the last run stopped, or where the topic begins now. Raises
        ConfigError when it is another topic than the last run, which knew `ids`, has read."""
        for topic, places in self.ends.items():
            is_other = ids is not None and ids.get(topic, self.ids[topic]) != self.ids[topic]
            is_short = any(starts.get(topic, {}).get(n, 0) > end for n, end in places.items())
            if is_other or is_short:
                what = f"{topic} was made anew since it was read"
                raise ConfigError(what, where="--state", mend="name a new folder")
        return {
            topic: {n: max(first, starts.get(topic, {}).get(n, 0)) for n, first in places.items()}
            for topic, places in self.first.items()
        }


def look(settings: Mapping[str, Any], topics: Mapping[str, int]) -> Extent:
    """`topics` says how many partitions each has."""
    ends = committed_ends(settings, topics)
    first = first_offsets(settings, topics)
    return Extent(first=first, ends=ends, ids=topic_ids(settings, topics))


def compacted(settings: Mapping[str, Any], topics: Iterable[str]) -> frozenset[str]:
    """Those that do not keep everything."""
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
    if not resources:
        return frozenset()
    admin = admin_client(settings)
    try:
        return frozenset(
            resource.name
            for resource, future in admin.describe_configs(resources).items()
            if "compact" in str(future.result()["cleanup.policy"].value)
        )
    except KafkaException as error:
        raise unavailable("looking at topics", error) from error
