"""What a removal brings about: its reason decides, and every removal has one reason. DM-17"""

from __future__ import annotations

from typing import Final

from bridge.core.retained.effects import Owed
from bridge.core.retained.naming import DEADLETTER, is_system
from bridge.core.retained.rows import Row, Wants
from bridge.model.classes import MessageClass

NOTHING: Final = Owed()


def owed(row: Row, reason: MessageClass) -> Owed:
    """Table 2.12 of data-model.md. Copies in system queues owe nothing: they want nothing."""
    if not row.wants:
        return NOTHING
    is_received = reason is MessageClass.ACK_RECEIVE
    admin = Wants.ACK if is_received else Wants.NACK
    receipt = Wants.RECEIPT if is_received else Wants.NEGATIVE_RECEIPT
    return Owed(
        admin=bool(row.wants & admin),
        final=bool(row.wants & Wants.FINAL),
        receipt=bool(row.wants & receipt),
    )


def copy_goes_to(row: Row, reason: MessageClass, journal: str) -> str:
    """The queue that gets a copy, or none. DM-30

    `journal` is that of the queue, if it keeps one. A dead letter of a transactional message lies
    at its source, which learns from our final ack that it needs one (data-model.md 2.14).
    """
    if reason is MessageClass.ACK_RECEIVE:
        return "" if is_system(row.queue) else journal
    if reason is MessageClass.NACK_RECEIVE_TIMEOUT and row.wants & Wants.DEAD_LETTER:
        return DEADLETTER
    if reason is MessageClass.NACK_Q_PURGED and row.wants & Wants.DEAD_WHEN_PURGED:
        return DEADLETTER
    return ""
