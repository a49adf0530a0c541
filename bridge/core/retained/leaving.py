"""Messages that leave a retained queue, or move: all that one Kafka transaction says of it. DM-17

The fate of each record, a copy for its journal or the dead letters, what senders must hear, and a
verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from bridge.core import audit
from bridge.core.http_receipts import HttpReceipts
from bridge.core.ports import OutboxEntry, Record
from bridge.core.receipts import Receipts
from bridge.core.retained.effects import Copy, Effect, Removal
from bridge.core.retained.fates import Fated, fates_of
from bridge.core.retained.keeping import MARKS, OUTCOME, marked, message_in
from bridge.core.retained.letterhead import Letterhead, read_letterhead
from bridge.core.retained.rows import RecordAt
from bridge.model.classes import MessageClass
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict

_VERDICTS: Final = {
    MessageClass.ACK_RECEIVE: Verdict(Outcome.RECEIVED),
    MessageClass.NACK_RECEIVE_TIMEOUT: Verdict(
        Outcome.EXPIRED, MessageClass.NACK_RECEIVE_TIMEOUT, "time-to-be-received-over"
    ),
    MessageClass.NACK_Q_PURGED: Verdict(
        Outcome.REMOVED, MessageClass.NACK_Q_PURGED, "queue-was-purged"
    ),
    MessageClass.NACK_Q_DELETED: Verdict(
        Outcome.REMOVED, MessageClass.NACK_Q_DELETED, "queue-was-deleted"
    ),
    MessageClass.NACK_RECEIVE_REJECTED: Verdict(
        Outcome.REMOVED, MessageClass.NACK_RECEIVE_REJECTED, "reader-rejected-it"
    ),
}
_LOST: Final = Verdict(Outcome.REMOVED, MessageClass.NACK_Q_PURGED, "record-is-gone-from-kafka")
Where = Callable[[str], tuple[str, int | None]]  # a queue -> its topic, and a partition of it


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """For the unit of a shard."""

    fates: list[Fated]
    records: list[Record]
    acks: list[OutboxEntry]
    entries: list[audit.AuditEntry]


def leave(
    effects: Iterable[Effect],
    records: Mapping[RecordAt, Record],
    receipts: Receipts,
    where: Where,
    now_ms: int,
) -> Leaving:
    """`records` has those of removals that need them (`Removal.needs_record`)."""
    effects = tuple(effects)
    found = Leaving(fates=list(fates_of(effects)), records=[], acks=[], entries=[])
    for effect in effects:
        if isinstance(effect, Removal):
            record = records.get(effect.row.at)
            if effect.copy is not None and record is not None:
                found.records.append(_copy(record, effect.copy, receipts.local, where))
            found.acks.extend(_owed(effect, record, receipts, now_ms))
            found.entries.append(_entry(effect, now_ms))
    return found


def _copy(record: Record, copy: Copy, local: Guid, where: Where) -> Record:
    topic, partition = where(copy.queue)
    headers = {name: value for name, value in record.headers.items() if name not in MARKS}
    if copy.message_class != MessageClass.NORMAL:
        headers[OUTCOME] = b"%d" % copy.message_class
    headers.pop("msmq.arrived", None)  # the copy arrives when its original leaves
    bare = msgspec.structs.replace(
        record, topic=topic, partition=partition, headers=headers, timestamp_ms=copy.arrived_ms
    )
    return marked(bare, local, copy.queue, copy.lookup_id)


def _owed(
    removal: Removal, record: Record | None, receipts: Receipts, now_ms: int
) -> Iterator[OutboxEntry]:
    owed, row = removal.owed, removal.row
    if not (owed.admin or owed.final or owed.receipt) or not row.letterhead:
        return
    letterhead = read_letterhead(row.letterhead, now_ms)
    message = _with_body(letterhead, record)
    if message.srmp is not None:
        yield from HttpReceipts(message, message.srmp, receipts.local, receipts.ordinals).left(
            removal.reason, letterhead.stream
        )
    else:
        yield from receipts.left(
            message, removal.reason, letterhead.via, admin=owed.admin, final=owed.final
        )


def _with_body(letterhead: Letterhead, record: Record | None) -> Message:
    """A negative ack repeats the body. DM-19"""
    if record is None:
        return letterhead.message
    whole = message_in(record)
    return msgspec.structs.replace(
        letterhead.message, body=whole.body, body_type=whole.body_type, encrypted=whole.encrypted
    )


def _entry(removal: Removal, now_ms: int) -> audit.AuditEntry:
    row = removal.row
    verdict = _LOST if removal.is_lost else _VERDICTS[removal.reason]
    return audit.AuditEntry(
        id=row.id,
        verdict=verdict.outcome,
        at=now_ms,
        dest=row.queue,
        message_class=verdict.message_class,
        reason=verdict.reason,
        queue=row.queue,
        topic=row.at.topic,
        partition=row.at.partition,
        stamp=row.arrived_ms,
    )
