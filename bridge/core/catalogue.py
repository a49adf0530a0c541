"""The queues of this queue manager, found under every name a sender may use (DM-33).

Exact names first, then patterns (`bridge.core.patterns`), then, when `defaults` says so, a queue
that is made for the name. Queues that were found in the last two ways are remembered within
bounds, under their name in lower case: senders may spell it as they like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

import msgspec

from bridge.core.access import AccessList
from bridge.core.mapping_rules import CLOSED, PRIVATE, Defaults, Mappings, QueueMapping
from bridge.core.patterns import PatternTable
from bridge.core.readings import reads_body
from bridge.model.cache import FRAME, Cache, text_size
from bridge.model.errors import IllegalName
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.names import Direct, Private, parse_format_name

_CACHE: Final = 10_000  # names come from outside: bounded, in bytes too
_CACHE_BYTES: Final = 16 << 20
_LONGEST: Final = 1024  # characters of a name whose queue is remembered
FOREVER_MS: Final = 1 << 62
UNKNOWN: Final = 0  # partitions of a topic that nobody has looked at


class TopicLimits(msgspec.Struct, frozen=True, gc=False):
    """What the cluster says of a topic."""

    partitions: int
    max_bytes: int = 5 << 20
    wants_key: bool = False  # it is compacted
    before_ms: int = FOREVER_MS  # how much older than its arrival a record may say it is


_UNSEEN: Final = TopicLimits(UNKNOWN)


class Queue(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A mapped queue and what is known of its topic."""

    mapping: QueueMapping
    name: str  # path name on this queue manager
    topic: str  # empty: depends on the message, ask `topic_of`
    partitions: int = 1  # UNKNOWN: nobody has looked yet, see Catalogue.learn
    max_bytes: int = 5 << 20
    access: AccessList | None = None  # None: everybody may send
    journal: str = ""  # topic of the target journal
    journal_partitions: int = 1
    journal_bytes: int = 0xFFFFFFFF  # its topic takes the same records
    wants_key: bool = False
    before_ms: int = FOREVER_MS
    any_kind: bool = False  # takes transactional and plain messages, whatever the mapping says
    reserved: str = ""  # no message may name a topic that begins so

    @property
    def is_settled(self) -> bool:
        """Its topic is one for all messages, and somebody has looked at it (and its journal)."""
        return (
            self.partitions != UNKNOWN
            and self.topic != ""
            and (not self.journal or self.journal_partitions != UNKNOWN)
        )

    @property
    def retains(self) -> bool:
        """Its messages wait for readers."""
        return self.mapping.mode == "retain"

    def topic_of(self, label: str, source: object) -> str:
        """The topic of one message."""
        return self.topic or _apart(self.mapping.topic_for(self.name, label, source), self.reserved)


def _apart(topic: str, reserved: str) -> str:
    """The bridge's own topics are not for senders to name."""
    return f"-{topic[1:]}" if reserved and topic.startswith(reserved) else topic


def private_number(name: str) -> int:
    """The number by which a private queue is addressed: h = 33h + c over its name. T-25"""
    number = 0
    for char in name.lower():
        number = (33 * number + ord(char)) & 0xFFFFFFFF
    return number


class Catalogue:
    """`queues` has one per mapping, those with wildcards too: they are the models of what is found
    by them. `limits` is what is known of topics; `reserved` begins the names of our own ones."""

    def __init__(
        self,
        local: Guid,
        queues: Iterable[Queue],
        *,
        defaults: Defaults | None = None,
        limits: Mapping[str, TopicLimits] | None = None,
        reserved: str = "",
    ) -> None:
        self.local = local
        self.queues = tuple(
            msgspec.structs.replace(queue, reserved=reserved) if reserved else queue
            for queue in queues
        )
        self._limits = dict(limits or {})
        self._by_name = {
            name: queue
            for queue in self.queues
            if (name := queue.name.lower()) not in CLOSED and not queue.mapping.queue.has_wildcard
        }
        self._by_number = {
            private_number(name.removeprefix(PRIVATE)): queue
            for name, queue in reversed(self._by_name.items())  # the first of two keeps its number
            if name.startswith(PRIVATE)
        }
        self._patterns = PatternTable(
            (queue.name, queue) for queue in self.queues if queue.mapping.queue.has_wildcard
        )
        self._unlisted = None if defaults is None else _model(defaults, reserved)
        # Whether a message can need a topic that nobody has looked at.
        self.is_open_ended = (
            bool(self._patterns)
            or self._unlisted is not None
            or any(queue.mapping.depends_on_message for queue in self.queues)
        )
        models = self.queues if self._unlisted is None else (*self.queues, self._unlisted)
        self.reads_bodies = any(reads_body(queue.mapping) for queue in models)
        self._made: dict[str, Queue] = {}  # by name in lower case
        self._numbers: dict[int, str] = {}  # of the private names in `_made`
        self._cache: Cache[str, Queue | None] = Cache(_CACHE, _CACHE_BYTES)
        self.closed: dict[str, str] = {}  # topics that take nothing now, and why

    @classmethod
    def of(
        cls, local: Guid, mappings: Mappings, limits: Mapping[str, TopicLimits], reserved: str
    ) -> Self:
        """For all mapping files together; `limits` has every topic that they name."""
        queues = [_queue(mapping, limits) for mapping in mappings.queues]
        return cls(local, queues, defaults=mappings.defaults, limits=limits, reserved=reserved)

    def remember(self, other: Self) -> None:
        """The names that another catalogue has seen: their numbers lead to their queues here."""
        self.closed = dict(other.closed)
        for path in other._made:
            self._by_path(path)

    def known(self) -> Iterator[Queue]:
        """Queues that have a name: listed, or found by a pattern since the start."""
        yield from self._by_name.values()
        yield from self._made.values()

    def by_name(self, path: str) -> Queue | None:
        """One that is listed under this very name."""
        return self._by_name.get(path.lower())

    def by_path(self, path: str) -> Queue | None:
        """By its path name on this queue manager."""
        return self._by_path(path.lower())

    def would_be(self, path: str) -> Queue | None:
        """The queue of this path name, or the model that it would be made from: asking makes no
        queue."""
        path = path.lower()
        known = self._by_name.get(path) or self._made.get(path)
        return known if known is not None or path in CLOSED else self._model_of(path)

    def is_local(self, queue_manager: Guid) -> bool:
        """Zero is local: direct names carry no GUID (CONFLICT-3)."""
        return queue_manager in (NULL_GUID, self.local)

    def limits_of(self, topic: str) -> TopicLimits | None:
        """None: nobody has looked at it yet, it may not even exist."""
        return self._limits.get(topic)

    def limits_for(self, queue: Queue, message: Message) -> TopicLimits | None:
        """Of the topic that the message goes to; None if it could not be made."""
        limits = self._limits.get(queue.topic_of(message.label, message.source))
        if queue.journal and queue.journal_partitions == UNKNOWN:
            return None
        if limits is None or limits.partitions == UNKNOWN:
            return None
        kept = self._limits.get(queue.journal) if queue.journal else None
        both = _both(limits, kept)
        return msgspec.structs.replace(both, max_bytes=min(both.max_bytes, queue.journal_bytes))

    def unknown_topics(self, queue: Queue, message: Message) -> Iterator[str]:
        """Topics of the message that nobody has looked at."""
        if not queue.is_settled:
            topic = queue.topic_of(message.label, message.source)
            if topic not in self._limits:
                yield topic
            if queue.journal and queue.journal not in self._limits:
                yield queue.journal

    def learn(self, topic: str, limits: TopicLimits) -> None:
        """The topic is there; queues that were found before that know it from now on.

        One that has more partitions than before keeps to those it had: its streams are in them."""
        before = self._limits.get(topic)
        if before is not None and UNKNOWN < before.partitions < limits.partitions:
            limits = msgspec.structs.replace(limits, partitions=before.partitions)
        if topic not in self._limits and len(self._limits) >= _CACHE:
            del self._limits[next(iter(self._limits))]
        self._limits[topic] = limits
        for path, queue in self._made.items():
            model = self._model_of(path)
            if model is not None and topic in (queue.topic, queue.journal):
                self._made[path] = self._from(model, path)
        self._learn_listed(topic)
        self._cache.clear()

    def _learn_listed(self, topic: str) -> None:
        """Queues that are listed, and models of those that patterns find."""
        changed = {
            id(queue): _seen(queue, self._limits)
            for queue in self.queues
            if topic and topic in (queue.topic, queue.journal)
        }
        if not changed:
            return
        self.queues = tuple(changed.get(id(queue), queue) for queue in self.queues)
        self._by_name = {name: changed.get(id(q), q) for name, q in self._by_name.items()}
        self._by_number = {number: changed.get(id(q), q) for number, q in self._by_number.items()}
        self._patterns = PatternTable(
            (queue.name, queue) for queue in self.queues if queue.mapping.queue.has_wildcard
        )

    def topics(self) -> set[str]:
        """Those that records go to, as far as they are known."""
        named = {topic for queue in self.queues for topic in (queue.topic, queue.journal) if topic}
        return named | {t for t, known in self._limits.items() if known.partitions != UNKNOWN}

    def is_closed(self, queue: Queue, message: Message) -> bool:
        """Whether a topic that the message needs takes nothing now."""
        return (
            queue.topic_of(message.label, message.source) in self.closed
            or queue.journal in self.closed
        )

    def find(self, destination: str) -> Queue | None:
        """The queue behind a destination as a sender wrote it.

        The host in a direct name is not judged: MS-MQQB 3.1.5.8.2 takes a packet as local by its
        QueueManagerAddress, and the sender's name service led it here.
        """
        try:
            return self._cache[destination]
        except KeyError:
            pass
        queue, is_final = self._look_up(destination)
        if is_final:
            self._cache.keep(destination, queue, text_size(destination))
        return queue

    def _look_up(self, destination: str) -> tuple[Queue | None, bool]:
        """The queue, and whether the answer stays as it is."""
        try:
            name = parse_format_name(destination)
        except IllegalName:
            return None, True
        if not name.sendable:  # journals, dead-letter and subqueues take no sends (DM-14)
            return None, True
        if isinstance(name, Direct):
            path = f"{PRIVATE}{name.queue}" if name.private else name.queue
            return self._by_path(path.lower()), True
        if isinstance(name, Private) and self.is_local(name.guid):
            queue = self._of_number(name.number)
            return queue, queue is not None  # its name may be seen later
        return None, True

    def _of_number(self, number: int) -> Queue | None:
        """A number is a hash: only a name that is listed, or was seen, can have it."""
        return self._by_number.get(number) or self._made.get(self._numbers.get(number, ""))

    def _by_path(self, path: str) -> Queue | None:
        known = self._by_name.get(path) or self._made.get(path)
        if known is not None or path in CLOSED:
            return known
        model = self._model_of(path)
        return None if model is None else self._make(model, path)

    def _model_of(self, path: str) -> Queue | None:
        return self._patterns.find(path) or self._unlisted

    @property
    def cached_bytes(self) -> int:
        """Bytes of names that peers made us remember, about."""
        return self._cache.size + len(self._made) * FRAME

    def _make(self, model: Queue, path: str) -> Queue:
        if len(path) > _LONGEST:  # no queue has such a name: it is made again when it comes again
            return self._from(model, path)
        if len(self._made) >= _CACHE:
            self._forget(next(iter(self._made)))
        if path.startswith(PRIVATE):
            self._numbers.setdefault(private_number(path.removeprefix(PRIVATE)), path)
        made = self._made[path] = self._from(model, path)
        return made

    def _forget(self, path: str) -> None:
        del self._made[path]
        number = private_number(path.removeprefix(PRIVATE))
        if self._numbers.get(number) == path:
            del self._numbers[number]

    def _from(self, model: Queue, path: str) -> Queue:
        mapping, topic = model.mapping, model.topic
        if not topic and not mapping.depends_on_message:
            topic = _apart(mapping.topic_for(path, "", ""), model.reserved)
        known = TopicLimits(model.partitions, model.max_bytes) if model.topic else _UNSEEN
        limits = self._limits.get(topic, known)
        journal = _apart(mapping.journal_for(path), model.reserved)
        known = _UNSEEN
        if journal == model.journal:
            known = TopicLimits(model.journal_partitions, model.journal_bytes)
        kept = self._limits.get(journal, known)
        return msgspec.structs.replace(
            model,
            name=path,
            topic=topic,
            partitions=limits.partitions,
            max_bytes=min(limits.max_bytes, kept.max_bytes) if journal else limits.max_bytes,
            wants_key=limits.wants_key or (bool(journal) and kept.wants_key),
            before_ms=min(limits.before_ms, kept.before_ms) if journal else limits.before_ms,
            journal=journal,
            journal_partitions=kept.partitions,
            journal_bytes=kept.max_bytes if journal else 0xFFFFFFFF,
        )


def _queue(mapping: QueueMapping, limits: Mapping[str, TopicLimits]) -> Queue:
    queue = Queue(
        mapping=mapping,
        name=str(mapping.queue),
        topic=mapping.topic_name,
        access=None if mapping.allow is None else AccessList(mapping.allow),
        journal=mapping.journal_for(mapping.queue),
    )
    return _seen(queue, limits)


def _seen(queue: Queue, limits: Mapping[str, TopicLimits]) -> Queue:
    """With what is known of its topic and its journal."""
    kept = limits.get(queue.journal)
    known = limits.get(queue.topic, _UNSEEN)
    both = _both(known, kept)
    return msgspec.structs.replace(
        queue,
        partitions=both.partitions,
        max_bytes=both.max_bytes,
        wants_key=both.wants_key,
        before_ms=both.before_ms,
        journal_partitions=_UNSEEN.partitions if kept is None else kept.partitions,
        journal_bytes=0xFFFFFFFF if kept is None else kept.max_bytes,
    )


def _both(limits: TopicLimits, journal: TopicLimits | None) -> TopicLimits:
    """The journal takes the same records."""
    if journal is None:
        return limits
    return TopicLimits(
        limits.partitions,
        min(limits.max_bytes, journal.max_bytes),
        limits.wants_key or journal.wants_key,
        min(limits.before_ms, journal.before_ms),
    )


def _model(defaults: Defaults, reserved: str) -> Queue | None:
    """Of a queue that nobody listed."""
    if defaults.unknown == "reject":
        return None
    return Queue(
        mapping=defaults.mapping(),
        name="*",
        topic="",
        access=None if defaults.allow is None else AccessList(defaults.allow),
        any_kind=not defaults.transactional,
        reserved=reserved,
    )
