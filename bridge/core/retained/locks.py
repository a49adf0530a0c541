"""Who holds a message. A locked one keeps its place but nobody else sees it. DM-21"""

from __future__ import annotations

from bridge.core.retained.rows import Row
from bridge.model.classes import MessageClass

TransactionId = bytes  # a unit of work: 16 bytes that the reader made up


class Operation:
    """What a transaction will do to a message: dequeue it for a reason, or move it."""

    __slots__ = ("lock", "reason", "target")

    def __init__(self, lock: Lock, target: str = "") -> None:
        self.lock, self.target = lock, target
        self.reason = MessageClass.ACK_RECEIVE


class Transaction:
    """Its operations by lookup id, first in, first out. MS-MQDMPR 3.1.1.14"""

    __slots__ = ("id", "operations", "waits")

    def __init__(self, identifier: TransactionId) -> None:
        self.id = identifier
        self.operations: dict[int, Operation] = {}
        self.waits: set[tuple[int, int]] = set()  # reads in it that wait: (handle, tag)


class Lock:
    """Given to a reader who has not confirmed it, part of a transaction, or in flight to Kafka."""

    __slots__ = ("in_flight", "is_purged", "row", "transaction")

    def __init__(self, row: Row, transaction: Transaction | None = None) -> None:
        self.row, self.transaction = row, transaction
        self.in_flight = False
        self.is_purged = False  # PurgePending: once it is given back it is gone. DM-27
