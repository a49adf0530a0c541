"""Internal transactions: several reads and moves, all or none. MS-MQDMPR 3.1.4.4, 3.1.4.5

Until the end they are locks and nothing else, so a restart aborts them (DM-26). What they do is one
`Commit`. Aborting is one, too, because it counts: a message that is aborted again and again can be
told by its counter, even after a restart. Those that a crash aborts are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bridge.core.retained.effects import Change, Command, Effect
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.flights import Flights, Ids
from bridge.core.retained.handles import Handles
from bridge.core.retained.locks import Operation, Transaction, TransactionId
from bridge.core.retained.rows import aborted, moved
from bridge.core.retained.serving import Service
from bridge.model.classes import MessageClass
from bridge.protocol.events import Instant

PURGED: Final = MessageClass.NACK_Q_PURGED


class Transactions:
    def __init__(
        self,
        handles: Handles,
        service: Service,
        flights: Flights,
        opened: dict[TransactionId, Transaction],
        ids: Ids,
    ) -> None:
        self._handles, self._service, self._flights = handles, service, flights
        self._open, self._ids = opened, ids

    def begin(self, uow: TransactionId) -> None:
        if uow in self._open:  # MP-81
            raise Refused(Status.TRANSACTION_SEQUENCE, "the transaction exists already")
        self._open[uow] = Transaction(uow)

    def commit(self, uow: TransactionId, now: Instant) -> list[Command]:
        """First in, first out. If Kafka does not take it, every message is back in its place."""
        transaction, commands = self._end(uow)
        effects = [self._done(each, now) for each in transaction.operations.values()]
        return [*commands, *self._launch(effects)]

    def abort(self, uow: TransactionId, now: Instant) -> list[Command]:
        """Messages are back in their places once the counters are in Kafka, or cannot be."""
        transaction, commands = self._end(uow)
        effects = [self._undone(each, now) for each in transaction.operations.values()]
        return [*commands, *self._launch(effects)]

    def _end(self, uow: TransactionId) -> tuple[Transaction, list[Command]]:
        transaction = self._open.pop(uow, None)
        if transaction is None:
            raise Refused(Status.TRANSACTION_SEQUENCE, "no such transaction")
        waits = [self._handles.get(handle).waits[tag] for handle, tag in sorted(transaction.waits)]
        ended = [self._service.end_wait(read, Status.TRANSACTION_SEQUENCE) for read in waits]
        return transaction, list(ended)

    def _launch(self, effects: list[Effect]) -> Iterator[Command]:
        if effects:
            yield self._flights.launch(effects)

    def _done(self, operation: Operation, now: Instant) -> Effect:
        lock = operation.lock
        if not operation.target:
            return self._flights.removal(lock, operation.reason, now)  # DM-27: its own reason
        if lock.is_purged:  # it is not revived in another queue (as T-7)
            return self._flights.removal(lock, PURGED, now)
        to = moved(lock.row, queue=operation.target, sequential_id=self._ids(), unix=now.unix)
        return Change(lock.row, to)

    def _undone(self, operation: Operation, now: Instant) -> Effect:
        lock = operation.lock
        if lock.is_purged:  # T-7
            return self._flights.removal(lock, PURGED, now)
        return Change(lock.row, aborted(lock.row))
