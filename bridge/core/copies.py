"""Records beside the one that a message becomes: in journals, dead letters and rejects."""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.core.admission import Refusal
from bridge.core.catalogue import Queue
from bridge.core.lane import OTHER_HEADERS
from bridge.core.mapping import headers_of, size_of
from bridge.core.mapping_rules import QueueSettings
from bridge.core.ports import Record
from bridge.model.classes import MessageClass
from bridge.model.message import Message

_REJECT_BYTES: Final = 7 << 20  # the rejects topic takes 8 MiB
OMITTED: Final = "msmq.body-omitted"  # bytes of a body that was not kept
_SMALL: Final = 1024  # bytes of a header that is kept without the body
_WHOLE: Final = ("msmq.wire",)  # has all other headers
_WHOLE_HTTP: Final = ("msmq.soap", "msmq.extension")  # together likewise
_USUAL_HEADERS: Final = QueueSettings().headers


def is_whole(queue: Queue) -> bool:
    """Whether its records have all of their messages."""
    rules = queue.mapping.headers
    is_usual = rules.include == _USUAL_HEADERS.include and rules.prefix == _USUAL_HEADERS.prefix
    is_changed = rules.exclude or rules.rename
    return queue.mapping.value == "body" and is_usual and not is_changed


def journal_record(record: Record, queue: Queue) -> Record:
    """The target journal: a copy of what was received, in the same transaction. DM-30"""
    partition = record.partition
    return msgspec.structs.replace(
        record,
        topic=queue.journal,
        partition=None if partition is None else partition % queue.journal_partitions,
    )


def dead_letter(message: Message, reason: Refusal, topic: str) -> Record:
    """Plain messages that asked for it and ran out of time or room: our DEADLETTER. DM-12, 2.14"""
    return Record(
        topic=topic,
        key=message.id.encode(),
        value=message.body,
        headers=headers_of(message) | {"msmq.outcome": b"%d" % reason.message_class},
        timestamp_ms=message.arrived_ms,
    )


def reject_record(message: Message, queue: Queue | None, reason: Refusal, stage: bytes) -> Record:
    """Kafka Connect's error headers around the message as it came."""
    name = MessageClass(reason.message_class).name
    headers = headers_of(message)
    headers |= {
        "msmq.queue": queue.name.encode("utf-8", "surrogatepass") if queue else b"",
        "msmq.outcome": b"%d" % reason.message_class,
        "__connect.errors.topic": queue.topic.encode() if queue else b"",
        "__connect.errors.connector.name": b"msmq-bridge",
        "__connect.errors.stage": stage,
        "__connect.errors.exception.class.name": name.encode(),
        "__connect.errors.exception.message": _told(reason),
    }
    record = Record(
        topic="",  # the sink's rejects topic
        key=message.id.encode(),
        value=message.body,
        headers=headers,
        timestamp_ms=message.arrived_ms,
    )
    return bounded(record, message)


def diverted(record: Record, reason: Refusal) -> Record:
    """Among the rejects, in place of a copy that its topic does not take."""
    told = {
        "msmq.outcome": b"%d" % reason.message_class,
        "__connect.errors.topic": record.topic.encode(),
        "__connect.errors.connector.name": b"msmq-bridge",
        "__connect.errors.stage": b"COPY",
        "__connect.errors.exception.class.name": MessageClass(reason.message_class).name.encode(),
        "__connect.errors.exception.message": _told(reason),
    }
    headers = record.headers | told
    return _cut(msgspec.structs.replace(record, topic="", partition=None, headers=headers))


def _told(reason: Refusal) -> bytes:
    text = f"{reason.reason}: {reason.detail}" if reason.detail else reason.reason
    return text.encode("utf-8", "replace")


def without_body(record: Record) -> Record:
    """A reject of an address that is above its budget: what identifies the message stays."""
    headers = {name: value for name, value in record.headers.items() if len(value) <= _SMALL}
    headers[OMITTED] = b"%d" % len(record.value)
    return msgspec.structs.replace(record, value=b"", headers=headers)


def bounded(record: Record, message: Message) -> Record:
    """No record may be too large for our topics: it would stop the shard."""
    if size_of(record) > _REJECT_BYTES:
        headers, kept = record.headers, _WHOLE if message.wire else _WHOLE_HTTP
        for large in [key for key, value in headers.items() if len(value) > OTHER_HEADERS]:
            if large not in kept:
                del headers[large]
    return _cut(record)


def _cut(record: Record) -> Record:
    """The last resort: what our topics take of it, and that it was more."""
    if size_of(record) <= _REJECT_BYTES:
        return record
    headers = {k: v for k, v in record.headers.items() if len(v) <= OTHER_HEADERS}
    whole = len(record.value)
    left = msgspec.structs.replace(record, headers=headers | {"msmq.cut": b"%d" % whole})
    room = max(0, _REJECT_BYTES - size_of(left) + whole)
    return msgspec.structs.replace(left, value=record.value[:room])
