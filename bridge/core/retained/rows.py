"""What is known of a waiting message without reading it."""

from __future__ import annotations

from enum import IntFlag
from typing import Final

import msgspec

from bridge.core.admission import size_on_wire
from bridge.core.retained.letterhead import Letterhead
from bridge.core.retained.naming import is_system
from bridge.core.retained.place import lookup_id, renewed
from bridge.model.classes import MessageClass
from bridge.model.guid import Guid
from bridge.model.message import (
    ACK_RECEIVE,
    INFINITE,
    JOURNAL_NEGATIVE,
    NACK_RECEIVE,
    Message,
    Srmp,
)

_ACKS: Final = (MessageClass.REPORT, MessageClass.ACK_REACH_QUEUE, MessageClass.ORDER_ACK)
_ACK_BITS: Final = 0xC000  # a class with one of these is an ack, too


class RecordAt(msgspec.Struct, frozen=True, gc=False):
    """The record that holds a message: who it is, whatever queue it is in."""

    topic: str
    partition: int
    offset: int


class Wants(IntFlag):
    """What becomes due when a message leaves its queue; fixed when it arrives."""

    NOTHING = 0
    ACK = 0x01  # PR: to the administration queue, once it is received
    NACK = 0x02  # NR: the same, when it leaves in any other way
    FINAL = 0x04  # a final ack (SRMP: a final stream receipt), whatever the outcome
    RECEIPT = 0x08  # SRMP: a commitment receipt, once it is received
    NEGATIVE_RECEIPT = 0x10  # SRMP: the same, when it leaves in any other way
    DEAD_LETTER = 0x20  # a copy in DEADLETTER when its time is over
    DEAD_WHEN_PURGED = 0x40  # SRMP: when it is purged, too


_UNHEARD: Final = Wants.DEAD_LETTER | Wants.DEAD_WHEN_PURGED  # no ack comes of these


class Row(msgspec.Struct, frozen=True, gc=False):
    """One message in one queue. `lookup_id` is its place; see `place.py`."""

    queue: str
    lookup_id: int
    at: RecordAt
    source: Guid
    ordinal: int
    size: int  # headers and body, in bytes
    arrived_ms: int  # in this queue, Unix milliseconds
    expires: int | None = None  # Unix second from which on it is too old; None: never
    wants: Wants = Wants.NOTHING
    letterhead: bytes = b""  # what acks of it need; empty if it wants none
    aborts: int = 0  # transactions that gave it back. MS-MQRR 2.2.5.3
    moves: int = 0
    moved_at: int = 0  # Unix seconds of the last move. T-22

    @property
    def id(self) -> str:
        return f"{self.source}\\{self.ordinal}"

    def is_over(self, unix: float) -> bool:
        """Strictly later than SentTime + TTBR. DM-28, QB-100"""
        return self.expires is not None and unix >= self.expires


def row_of(
    message: Message,
    *,
    queue: str,
    sequential_id: int,
    at: RecordAt,
    letterhead: bytes | None = None,
    clock_skew_s: int = 0,
) -> Row:
    """A message that has arrived. Its letterhead (empty: it wants nothing; None: it is made from
    the message) is kept only if an ack may need it.

    A copy in a system queue owes nobody anything and never grows too old."""
    name, is_transactional = queue.lower(), message.transaction is not None
    is_copy = is_system(name)
    wants = Wants.NOTHING if is_copy or letterhead == b"" else wants_of(message)
    is_heard_of = wants is not Wants.NOTHING and wants & ~_UNHEARD
    return Row(
        queue=name,
        lookup_id=lookup_id(message.priority, sequential_id, transactional=is_transactional),
        at=at,
        source=message.source,
        ordinal=message.ordinal,
        size=size_on_wire(message),
        arrived_ms=message.arrived_ms,
        expires=None if is_copy else _expiry(message, clock_skew_s),
        wants=wants,
        letterhead=(letterhead or Letterhead(message).encode()) if is_heard_of else b"",
    )


def moved(row: Row, *, queue: str, sequential_id: int, unix: float) -> Row:
    """DM-29"""
    return msgspec.structs.replace(
        row,
        queue=queue,
        lookup_id=renewed(row.lookup_id, sequential_id),
        aborts=0,
        moves=row.moves + 1,
        moved_at=int(unix),
    )


def aborted(row: Row) -> Row:
    return msgspec.structs.replace(row, aborts=row.aborts + 1)


def wants_of(message: Message) -> Wants:
    """Table 2.12 of data-model.md, its part for messages that are in their queue."""
    if message.srmp is not None:
        return _receipts(message, message.srmp)
    wants, tx = Wants.NOTHING, message.transaction
    if message.admin_queue and not _is_ack(message):  # DM-19
        wants |= Wants.ACK if message.ack & ACK_RECEIVE else Wants.NOTHING
        wants |= Wants.NACK if message.ack & NACK_RECEIVE else Wants.NOTHING
    if tx is not None and (tx.final_ack or message.journal):  # DM-18
        wants |= Wants.FINAL
    if tx is None and message.journal & JOURNAL_NEGATIVE:
        wants |= Wants.DEAD_LETTER
    return wants


def _receipts(message: Message, srmp: Srmp) -> Wants:
    """SR-44, SR-45; MC-MQSRM 3.1.7.3.2"""
    wants = Wants.NOTHING
    if srmp.commitment_to:
        wants |= Wants.RECEIPT if srmp.positive else Wants.NOTHING
        wants |= Wants.NEGATIVE_RECEIPT if srmp.negative else Wants.NOTHING
    if message.journal & JOURNAL_NEGATIVE:
        is_plain = message.transaction is None
        wants |= Wants.DEAD_LETTER | Wants.DEAD_WHEN_PURGED if is_plain else Wants.FINAL
    return wants


def _is_ack(message: Message) -> bool:
    return bool(message.message_class & _ACK_BITS) or message.message_class in _ACKS


def _expiry(message: Message, clock_skew_s: int) -> int | None:
    lasts = message.time_to_be_received
    if lasts == INFINITE:
        return _expires_at(message, clock_skew_s)
    if lasts == 0:  # at once. MS-MQDMPR 3.1.2.4
        return message.arrived_ms // 1000
    return message.sent_time + lasts + clock_skew_s + 1


def _expires_at(message: Message, clock_skew_s: int) -> int | None:
    """MC-MQSRM 2.2.5.1.1: beyond it the message "MUST be discarded". What was over when it arrived
    and was taken nevertheless (`srmp.expired: deliver`) has a wrong clock behind it: it stays."""
    if not message.expires or message.arrived_ms // 1000 > message.expires + clock_skew_s:
        return None
    return message.expires + clock_skew_s + 1
