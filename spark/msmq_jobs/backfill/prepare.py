"""A message as data becomes all that is written for it: the records that live traffic would have
made of it (`bridge.core.mapper`, `chunks`), marked, and its entry in the audit. Pure.

The mark is the header `msmq.backfill`, JSON with `run` and `source`; where the mapping leaves out
`msmq.id` or `msmq.queue`, it has `id` and `queue` too, so that a repeated run finds every copy.
Like the headers of chunks it is added last, and no rule of the mapping renames it. When the
message arrived is in `msmq.arrived`: the record's own time is that of the backfill, or an old one
would fall to the topic's retention (design D7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from bridge.core import audit, chunks
from bridge.core.admission import ENCRYPTED, TOO_LARGE, UNKNOWN_QUEUE, fits_journal, wrong_kind
from bridge.core.admission import is_identified as has_identity
from bridge.core.catalogue import Catalogue, Queue, TopicLimits
from bridge.core.mapper import Mapper
from bridge.core.mapping_rules import Mappings
from bridge.core.message_data import MessageData, message_of
from bridge.core.ports import Claim, Headers, Record
from bridge.core.shard import shard_of
from bridge.core.streams import stream_key
from bridge.model.errors import ConfigError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict

MARK: Final = "msmq.backfill"
NO_IDENTITY: Final = "no-identity"
NO_TOPIC: Final = "topic-missing"
RETAINED: Final = "retained-queue"
UNREADABLE: Final = "unreadable"
_NEGATIVE: Final = 0x8000  # MS-MQMQ 2.2.18.1.6
_PRIVATE: Final = "private$\\"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages go: what the driver found out, for every task."""

    run: str
    mappings: Mappings
    limits: Mapping[str, TopicLimits]
    reserved: str = ""
    local: Guid = NULL_GUID
    audit_partitions: int = 1

    def catalogue(self) -> Catalogue:
        return Catalogue.of(self.local, self.mappings, self.limits, self.reserved)


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """`msmq.backfill`"""

    run: str
    source: str
    id: str = ""
    queue: str = ""


class Prepared(msgspec.Struct, frozen=True, array_like=True):
    """All that one message is in Kafka; written in one transaction."""

    records: list[Record]  # with those of the target journal
    entry: bytes  # JSON of its audit entry, in an array
    shard: int  # partition of the audit topic
    claims: list[Claim] = []
    keeps_time: bool = False  # the mapping asks for `timestamp: sent`

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message goes, or why it does not."""

    queue: str
    topic: str = ""
    partition: int = -1
    stream: str = ""
    reason: str = ""
    detail: str = ""
    prepared: Prepared | None = None


def decode_prepared(data: bytes) -> Prepared:
    return msgspec.msgpack.decode(data, type=Prepared)


class Preparer:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._catalogue = target.catalogue()
        self._mapper = Mapper(self._catalogue)

    def route(self, data: MessageData, origin: str) -> Route:
        try:
            message = message_of(data)
        except ConfigError as error:
            return Route(queue=data.queue, reason=UNREADABLE, detail=str(error))
        queue = self._queue(message, data.queue)
        if reason := _refusal(message, queue):
            return Route(queue=queue.name if queue else data.queue, reason=reason)
        assert queue is not None
        limits = self._catalogue.limits_for(queue, message)
        if limits is None:
            topic = queue.topic_of(message.label, message.source)
            return Route(queue=queue.name, topic=topic, reason=NO_TOPIC)
        return self._prepare(message, data, queue, limits.max_bytes, origin)

    def _queue(self, message: Message, held_in: str) -> Queue | None:
        """As live traffic finds it; else by the queue, or the journal, that it was read from."""
        found = self._catalogue.find(message.destination)
        path = bare_path(held_in)
        return found or (self._catalogue.by_path(path) if path else None)

    def _prepare(
        self, message: Message, data: MessageData, queue: Queue, max_bytes: int, origin: str
    ) -> Route:
        text = message.id
        record = self._mapper.record(message, queue, text)
        record.headers.update(self._marks(message, data, queue, origin))
        made, claims = chunks.fit(record, max_bytes, queue.mapping, text)
        if not made:
            return Route(queue=queue.name, topic=record.topic, reason=TOO_LARGE.reason)
        partition = record.partition or 0
        if queue.journal and fits_journal(message, queue):
            where = partition % queue.journal_partitions
            made += [replace(r, topic=queue.journal, partition=where) for r in made]
        source, destination = stream_key(message)
        return Route(
            queue=queue.name,
            topic=record.topic,
            partition=partition,
            stream=f"{source}/{destination}",
            prepared=Prepared(
                made,
                self._entry(message, data, queue, record),
                shard_of(message.source, self._target.audit_partitions),
                claims,
                queue.mapping.timestamp == "sent" and message.sent_time > 0,
            ),
        )

    def _marks(self, message: Message, data: MessageData, queue: Queue, origin: str) -> Headers:
        rules = queue.mapping.headers
        headers: Headers = {}
        facts = {"msmq.arrived": message.arrived_ms, "msmq.outcome": failure_of(data)}
        for name, number in facts.items():
            if number and rules.includes(name):
                headers[rules.name_of(name)] = b"%d" % number
        mark = Mark(
            self._target.run,
            origin,
            "" if rules.includes("msmq.id") else message.id,
            "" if rules.includes("msmq.queue") else queue.name,
        )
        return headers | {MARK: msgspec.json.encode(mark)}

    def _entry(self, message: Message, data: MessageData, queue: Queue, record: Record) -> bytes:
        verdict = Verdict(Outcome.BACKFILLED, failure_of(data), self._target.run)
        partition = record.partition or 0
        entry = audit.entry_of(message, verdict, queue.name, record.topic, partition)
        (encoded,) = audit.encode([replace(entry, stamp=record.timestamp_ms)])
        return encoded


def _refusal(message: Message, queue: Queue | None) -> str:
    """Rows 3 to 7 of data-model.md 2.4. Who may send was judged where the message was taken, and
    how long it may last is for the options of a run to say."""
    if not has_identity(message):
        return NO_IDENTITY
    if queue is None:
        return UNKNOWN_QUEUE.reason
    if queue.retains:  # its lookup ids are the running appliance's to give
        return RETAINED
    if wrong := wrong_kind(message, queue):
        return wrong.reason
    return ENCRYPTED.reason if message.encrypted else ""


def failure_of(data: MessageData) -> int:
    """The class by which a dead letter died (data-model.md 2.14); 0: it is none."""
    told = data.headers.get("msmq.outcome", "")
    if told.isdigit() and int(told) & _NEGATIVE:
        return int(told) & 0xFFFF
    return data.message_class if data.message_class & _NEGATIVE else 0


def bare_path(queue: str) -> str:
    r"""`host\private$\orders;journal` -> `private$\orders`; empty for a machine's own queues."""
    path = queue.partition(";")[0]
    if path.lower().startswith(_PRIVATE):
        return path
    host, _, rest = path.partition("\\")
    path = rest or host
    return "" if path.lower() == "system$" else path
