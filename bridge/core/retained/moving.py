"""From a queue to its subqueue, back, or between two of them. MS-MQRR 3.1.4.10"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.core.retained.effects import Change, Command
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.flights import Flights, Ids
from bridge.core.retained.handles import Handles
from bridge.core.retained.locks import Operation, Transaction, TransactionId
from bridge.core.retained.naming import is_system, parent_of
from bridge.core.retained.queues import Access, Queue
from bridge.core.retained.rows import Row, moved
from bridge.core.retained.stock import Stock
from bridge.protocol.events import Instant


class Moving:
    def __init__(
        self,
        stock: Stock,
        handles: Handles,
        flights: Flights,
        transactions: Mapping[TransactionId, Transaction],
        ids: Ids,
    ) -> None:
        self._stock, self._handles, self._flights = stock, handles, flights
        self._transactions, self._ids = transactions, ids

    def move(
        self,
        source: int,
        target: int,
        lookup_id: int,
        now: Instant,
        *,
        transaction: TransactionId | None = None,
    ) -> list[Command]:
        """`target` is a handle that was opened to move. In a transaction: once it commits."""
        here, there = self._queues(source, target)
        if transaction is not None and not there.traits.transactional:
            raise Refused(Status.TRANSACTION_USAGE, "the queue is not transactional")
        row = self._stock.find(here, lookup_id)
        if row is None:
            raise Refused(Status.MESSAGE_NOT_FOUND)
        if row.lookup_id in self._stock.locks:
            raise Refused(Status.MESSAGE_LOCKED_UNDER_TRANSACTION)
        if row.is_over(now.unix):
            raise Refused(Status.MESSAGE_NOT_FOUND, "its time is over")
        if transaction is not None:
            self._join(row, there, transaction)
            return []
        self._stock.lock(row)
        to = moved(row, queue=there.name, sequential_id=self._ids(), unix=now.unix)
        return [self._flights.launch((Change(row, to),))]

    def _queues(self, source: int, target: int) -> tuple[Queue, Queue]:
        from_, to = self._handles.get(source), self._handles.get(target)
        if to.access is not Access.MOVE:
            raise Refused(Status.INVALID_HANDLE, "the target is not open for moves")
        from_.demand(Access.RECEIVE)
        here, there = from_.live_queue, to.live_queue
        are_related = parent_of(here.name) == parent_of(there.name)
        if not are_related or here is there or is_system(here.name):
            raise Refused(Status.NT_INVALID_PARAMETER, "the two queues are not of one family")
        return here, there

    def _join(self, row: Row, there: Queue, uow: TransactionId) -> None:
        transaction = self._transactions.get(uow)
        if transaction is None:
            raise Refused(Status.TRANSACTION_SEQUENCE, "no such transaction")
        lock = self._stock.lock(row, transaction)
        transaction.operations[row.lookup_id] = Operation(lock, there.name)
