"""The verdicts of a transaction as entries of the audit topic. Design D6"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

import msgspec

from bridge.model.message import NO_CORRELATION, Message
from bridge.model.verdict import Verdict

PER_RECORD: Final = 500
MAX_BYTES: Final = 900_000  # of one record: below what a broker takes unless told otherwise
MAX_NAME: Final = 1024  # characters of a destination. Labels have 249 at most, by their protocols


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One verdict. An audit record is a JSON array of them."""

    id: str
    verdict: str
    at: int  # Unix milliseconds of arrival
    dest: str
    message_class: int = msgspec.field(default=0, name="class")
    reason: str = ""
    queue: str = ""
    topic: str = ""
    partition: int = -1
    stamp: int = 0  # timestamp of the record, if it is not `at`
    peer: str = ""
    transport: str = ""
    label: str = ""
    correlation: str = ""
    tx_sequence_id: int = 0
    tx_sequence_number: int = 0
    tx_previous_number: int = 0
    crc32: int = -1  # of the body, so that reconcile can tell an altered record; -1: not told


def shown(destination: str) -> str:
    """A destination as entries name it. Senders write it as they like, and it only tells: verdicts
    are found by the message id, and the name of the queue is a field of its own."""
    return destination if len(destination) <= MAX_NAME else f"{destination[: MAX_NAME - 1]}…"


def entry_of(
    message: Message,
    verdict: Verdict,
    queue: str = "",
    topic: str = "",
    partition: int = -1,
    stamp: int = 0,
    text: str | None = None,
) -> AuditEntry:
    """`text` is the message's id, if it is at hand. By position: one for every message."""
    tx = message.transaction
    correlation, at = message.correlation_id, message.arrived_ms
    return AuditEntry(
        text or message.id,
        verdict.outcome,
        at,
        shown(message.destination),
        verdict.message_class,
        verdict.reason,
        queue if topic else shown(queue),  # reconcile compares the queues of records
        topic,
        partition,
        0 if stamp == at else stamp,
        message.peer,
        message.transport,
        message.label,
        "" if correlation == NO_CORRELATION else correlation.hex(),
        tx.sequence_id if tx else 0,
        tx.number if tx else 0,
        tx.previous if tx else 0,
        crc32(message.body),
    )


def encode(entries: Sequence[AuditEntry]) -> Iterator[bytes]:
    """Record values, each small enough for any topic."""
    for start in range(0, len(entries), PER_RECORD):
        yield from _split(entries[start : start + PER_RECORD])


def _split(part: Sequence[AuditEntry]) -> Iterator[bytes]:
    """Names come from outside: one entry may take 200 KB, all of them far too much."""
    data = _json(part)
    if len(data) <= MAX_BYTES or len(part) == 1:
        yield data
    else:
        half = len(part) // 2
        yield from _split(part[:half])
        yield from _split(part[half:])


def _json(part: Sequence[AuditEntry]) -> bytes:
    try:
        return msgspec.json.encode(part)
    except UnicodeEncodeError:  # half a surrogate pair is legal in a label, not in JSON
        return msgspec.json.encode([_readable(entry) for entry in part])


def _readable(entry: AuditEntry) -> AuditEntry:
    label, dest, queue = (
        text.encode("utf-8", "replace").decode() for text in (entry.label, entry.dest, entry.queue)
    )
    return msgspec.structs.replace(entry, label=label, dest=dest, queue=queue)
