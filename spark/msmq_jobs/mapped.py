"""What the mappings say of a queue, as columns."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath, QueueSettings
from bridge.core.patterns import PRIVATE

T = TypeVar("T", str, bool)


def per_queue(mappings: Mappings, of: Callable[[QueueSettings], T]) -> Column:
    """A setting by `queue` (in lower case), as a queue finds its mapping."""
    rest: T = of(mappings.defaults)
    if all(of(settings) == rest for settings in mappings.queues):
        return F.lit(rest)
    chosen: Column | None = None
    for mapping in mappings.ranked():
        fits = _fits(mapping)
        value = F.lit(of(mapping))
        chosen = F.when(fits, value) if chosen is None else chosen.when(fits, value)
    return F.lit(rest) if chosen is None else chosen.otherwise(rest)


def _fits(mapping: QueueMapping) -> Column:
    name = mapping.queue.lower()
    if not mapping.queue.has_wildcard:
        return F.col("queue") == name
    is_private = F.col("queue").startswith(PRIVATE)  # no wildcard reaches over that
    kind = is_private if name.startswith(PRIVATE) else ~is_private
    return kind & like(F.col("queue"), name)


def like(column: Column, pattern: str) -> Column:
    """* and ? stand for what they do in mappings."""
    escaped = "".join(f"\\{char}" if char in "%_\\" else char for char in pattern)
    return column.like(escaped.replace("*", "%").replace("?", "_"))


def lone_topics(mappings: Mappings) -> dict[str, str]:
    """Topics with one queue, which is known even if their records do not tell it. None, if messages
    can name a topic that no file does: it may be one of these."""
    if mappings.defaults.unknown == "auto-create" or any(m.is_dynamic for m in mappings.queues):
        return {}
    found: dict[str, list[QueuePath]] = {}
    for m in mappings.queues:
        found.setdefault(m.topic_name, []).append(m.queue)
    only = {topic: names[0] for topic, names in found.items() if len(names) == 1}
    return {topic: str(name) for topic, name in only.items() if not name.has_wildcard}


def hides_ids(settings: QueueSettings, alone: Collection[str]) -> bool:
    """Whether its records do not say which message they are of. `alone` are the queues that have a
    topic of their own."""
    rules = settings.headers
    is_alone = isinstance(settings, QueueMapping) and str(settings.queue) in alone
    return not (rules.includes("msmq.id") and (is_alone or rules.includes("msmq.queue")))


def hidden(mappings: Mappings) -> Column:
    """Of a queue: only the audit knows its messages."""
    alone = frozenset(lone_topics(mappings).values())
    return per_queue(mappings, lambda settings: hides_ids(settings, alone))


def hides_some(mappings: Mappings) -> bool:
    alone = frozenset(lone_topics(mappings).values())
    return any(hides_ids(settings, alone) for settings in mappings.every())
