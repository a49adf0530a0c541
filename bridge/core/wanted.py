"""Which topics the mappings need, and what each of them must be able to hold (design 3.3, D7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bridge.core.mapping_rules import Mappings, QueueMapping
from bridge.core.patterns import QUEUE

LARGE_BYTES: Final = 5 << 20  # an MSMQ message of 4 MiB and its headers
FOREVER: Final = -1
DAY_MS: Final = 86_400_000
SENDER_KEEPS_MS: Final = 4 * DAY_MS  # 345600 s: a sender's time-to-reach-queue by default
KEPT_MS: Final = 7 * DAY_MS  # of a topic that we make


class Wanted(Struct, frozen=True, kw_only=True):
    """One topic as the mappings, or the appliance for its own, want it."""

    name: str
    why: tuple[str, ...]
    """Who writes to it, for people."""
    max_bytes: int = LARGE_BYTES
    """The record that must fit; 0 = any size will do."""
    least_ms: int = SENDER_KEEPS_MS
    """The shortest retention that is good enough."""
    kept_ms: int = KEPT_MS
    """The retention of a new topic."""
    policy: str = "delete"
    own_partitions: int = 0
    """Of the appliance's own topics: one for each shard; 0 = a topic of the user."""
    config: Mapping[str, str] = {}
    """What else a new topic is made with."""


def wanted_topics(mappings: Mappings) -> list[Wanted]:
    """Each topic that can be named before a message comes, by name; the strictest queue counts."""
    topics: dict[str, Wanted] = {}
    for mapping in mappings.queues:
        for wanted in _of_queue(mapping):
            first = topics.get(wanted.name)
            topics[wanted.name] = wanted if first is None else _both(first, wanted)
    return [topics[name] for name in sorted(topics)]


def dynamic_topics(mappings: Mappings) -> list[str]:
    """In words: the topics that only a message can name."""
    notes = []
    for mapping in mappings.queues:
        patterns = [mapping.template] if mapping.is_dynamic else []
        if mapping.journal is not None and _has_dynamic_journal(mapping):
            patterns.append(mapping.journal)
        for pattern in patterns:
            what = f"topic {pattern} of queue {mapping.queue}"
            notes.append(f"{what} is made when the first message comes")
    if mappings.defaults.unknown == "auto-create":
        notes.append("the topic of a queue that is not listed is made when its first message comes")
    return notes


def _has_dynamic_journal(mapping: QueueMapping) -> bool:
    return mapping.queue.has_wildcard and QUEUE in (mapping.journal or "")


def wanted_topic(name: str, mapping: QueueMapping, why: str) -> Wanted:
    """What a queue asks of its topic, also of one that is named by a message."""
    retain = mapping.mode == "retain"  # D5: the topic is the queue's storage
    return Wanted(
        name=name,
        why=(why,),
        max_bytes=LARGE_BYTES if mapping.oversize == "reject" else 0,
        least_ms=FOREVER if retain else SENDER_KEEPS_MS,
        kept_ms=FOREVER if retain else KEPT_MS,
    )


def _of_queue(mapping: QueueMapping) -> Iterator[Wanted]:
    if not mapping.is_dynamic:
        yield wanted_topic(mapping.topic_name, mapping, f"queue {mapping.queue}")
    if mapping.journal is not None and not _has_dynamic_journal(mapping):
        name = mapping.journal_for(mapping.queue)
        journal = wanted_topic(name, mapping, f"the journal of queue {mapping.queue}")
        yield replace(journal, least_ms=SENDER_KEEPS_MS, kept_ms=KEPT_MS)


def _both(one: Wanted, two: Wanted) -> Wanted:
    return replace(
        one,
        why=one.why + two.why,
        max_bytes=max(one.max_bytes, two.max_bytes),
        least_ms=longer(one.least_ms, two.least_ms),
        kept_ms=longer(one.kept_ms, two.kept_ms),
    )


def longer(one: int, two: int) -> int:
    return FOREVER if FOREVER in (one, two) else max(one, two)
