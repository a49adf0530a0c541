"""Reads: peek, receive, look up. MS-MQDMPR 3.1.7.1.10 to 3.1.7.1.15

A read is named by its handle and a tag that the caller chooses. It is answered by `Delivered`, in
the commands of the call or of a later one, or by `Ended`. How it ends: `answering.py`. A call that
cannot be answered raises `Refused` and has done nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from bridge.core.retained.effects import Command
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.handles import Handles
from bridge.core.retained.locks import Transaction, TransactionId
from bridge.core.retained.place import END, START
from bridge.core.retained.queues import Access, Descriptor, Read
from bridge.core.retained.rows import Row
from bridge.core.retained.serving import Service
from bridge.core.retained.stock import Stock, Window
from bridge.protocol.events import Instant


class Seek(Enum):
    """Which message a lookup id leads to. MS-MQDMPR 3.1.7.3.3"""

    CURRENT = auto()
    NEXT = auto()
    PREVIOUS = auto()
    FIRST = auto()  # whatever the id is (T-4)
    LAST = auto()


class Reading:
    def __init__(
        self,
        stock: Stock,
        handles: Handles,
        service: Service,
        transactions: Mapping[TransactionId, Transaction],
    ) -> None:
        self._stock, self._handles = stock, handles
        self._service, self._transactions = service, transactions

    def peek(
        self, handle: int, tag: int, now: Instant, *, wait_s: float | None = 0.0, cursor: int = 0
    ) -> list[Command]:
        """`wait_s` None is for ever."""
        read = self._peek(handle, tag, cursor)
        window = self._window(read, now)
        row = read.cursor.peek(window) if read.cursor else window.after(START)
        return self._answer(read, row, now, wait_s)

    def peek_next(
        self, handle: int, tag: int, now: Instant, *, wait_s: float | None = 0.0, cursor: int
    ) -> list[Command]:
        read = self._peek(handle, tag, cursor)
        if read.cursor is None:  # MP-77
            raise Refused(Status.ILLEGAL_CURSOR_ACTION, "there is no next one without a cursor")
        row = read.cursor.peek_next(self._window(read, now))
        return self._answer(read, row, now, wait_s)

    def receive(
        self,
        handle: int,
        tag: int,
        now: Instant,
        *,
        wait_s: float | None = 0.0,
        cursor: int = 0,
        transaction: TransactionId | None = None,
    ) -> list[Command]:
        """Locks the message until `end`, or until the end of its transaction."""
        read = self._receive(handle, tag, cursor, transaction)
        window = self._window(read, now)
        row = read.cursor.receive(window) if read.cursor else window.after(START)
        return self._answer(read, row, now, wait_s)

    def peek_at(
        self, handle: int, tag: int, now: Instant, seek: Seek, lookup_id: int = 0
    ) -> list[Command]:
        """By lookup id: never waits."""
        read = self._peek(handle, tag, 0)
        row = self._look_up(read, seek, lookup_id, now)
        return [self._service.hand_out(read, row, now)]

    def receive_at(
        self,
        handle: int,
        tag: int,
        now: Instant,
        seek: Seek,
        lookup_id: int = 0,
        *,
        transaction: TransactionId | None = None,
    ) -> list[Command]:
        read = self._receive(handle, tag, 0, transaction)
        row = self._look_up(read, seek, lookup_id, now)
        return [self._service.hand_out(read, row, now)]

    # -- before the read --------------------------------------------------------------------

    def _peek(self, handle: int, tag: int, cursor: int) -> Read:
        descriptor = self._free_tag(handle, tag)
        its = descriptor.cursor(cursor) if cursor else None
        descriptor.demand(Access.PEEK)
        return Read(descriptor, tag, is_receive=False, cursor=its)

    def _receive(self, handle: int, tag: int, cursor: int, uow: TransactionId | None) -> Read:
        descriptor = self._free_tag(handle, tag)
        its = descriptor.cursor(cursor) if cursor else None
        descriptor.demand(Access.RECEIVE)
        transaction = None
        if uow is not None:
            if not descriptor.live_queue.traits.transactional:
                raise Refused(Status.TRANSACTION_USAGE, "the queue is not transactional")
            transaction = self._transactions.get(uow)
            if transaction is None:  # D-9: never a read without one instead
                raise Refused(Status.TRANSACTION_SEQUENCE, "no such transaction")
        return Read(descriptor, tag, is_receive=True, cursor=its, transaction=transaction)

    def _free_tag(self, handle: int, tag: int) -> Descriptor:
        descriptor = self._handles.get(handle)
        _ = descriptor.live_queue
        if tag in descriptor.waits or tag in descriptor.receives:
            raise Refused(Status.INVALID_PARAMETER, "a read with this tag is not over yet")
        return descriptor

    # -- the read ---------------------------------------------------------------------------

    def _window(self, read: Read, now: Instant) -> Window:
        return self._stock.window(read.descriptor.live_queue, now.unix)

    def _answer(
        self, read: Read, row: Row | None, now: Instant, wait_s: float | None
    ) -> list[Command]:
        if row is not None:
            return [self._service.hand_out(read, row, now)]
        if wait_s is None or wait_s > 0:
            self._service.wait(read, now, wait_s)
            return []
        if read.is_receive and read.cursor is not None:
            raise Refused(Status.MESSAGE_NOT_FOUND)
        raise Refused(Status.IO_TIMEOUT)

    def _look_up(self, read: Read, seek: Seek, number: int, now: Instant) -> Row:
        window = self._window(read, now)
        if seek is Seek.FIRST:
            row = window.after(START)
        elif seek is Seek.LAST:
            row = window.before(END)
        else:
            anchor = self._stock.find(read.descriptor.live_queue, number)  # may be locked
            row = anchor and self._from(anchor, seek, window, is_peek=not read.is_receive)
        if row is None:
            raise Refused(Status.MESSAGE_NOT_FOUND)
        return row

    def _from(self, anchor: Row, seek: Seek, window: Window, *, is_peek: bool) -> Row | None:
        if seek is Seek.NEXT:
            return window.after(anchor.lookup_id)
        if seek is Seek.PREVIOUS:
            return window.before(anchor.lookup_id)
        lock = self._stock.locks.get(anchor.lookup_id)
        if lock is not None and not lock.is_purged and is_peek:
            raise Refused(Status.TRANSACTION_USAGE, "another reader holds the message")
        return anchor if window.has(anchor) else None
