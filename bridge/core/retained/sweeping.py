"""Emptying a queue: purge and delete. MS-MQDMPR 3.1.7.1.7, 3.1.7.1.4

A queue may hold a million messages, so a sweep goes in steps. It covers what was there when it
began; what arrives meanwhile stays. The owner calls `step` until it answers with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bridge.core.retained.answering import Answering
from bridge.core.retained.effects import Command, Commit
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.flights import Flights
from bridge.core.retained.handles import Handles
from bridge.core.retained.locks import Lock
from bridge.core.retained.naming import is_system, parent_of
from bridge.core.retained.place import START, ends_of_ranks, rank_of
from bridge.core.retained.queues import Access, QueueTable
from bridge.core.retained.rows import Row
from bridge.core.retained.shelf import Shelf
from bridge.core.retained.stock import Stock
from bridge.model.classes import MessageClass
from bridge.protocol.events import Instant

STEP: Final = 500
_BATCH: Final = 256
_PURGED: Final = MessageClass.NACK_Q_PURGED


class Sweep:
    """What is left to do: for each queue the last message of every priority, at the beginning."""

    def __init__(self, reason: MessageClass, shelf: Shelf, queues: list[str]) -> None:
        self.reason = reason
        self._shelf, self._left = shelf, [(name, _lasts(shelf, name)) for name in queues]
        self._place = START

    def rows(self) -> Iterator[Row]:
        """Those that were not given out yet."""
        while self._left:
            name, lasts = self._left[0]
            rows = self._shelf.after(name, self._place, _BATCH)
            if not rows:
                self._left.pop(0)
                self._place = START
            for row in rows:
                rank = rank_of(row.lookup_id)
                if row.lookup_id > lasts[rank]:  # it came later; go on with the next priority
                    self._place = ends_of_ranks()[rank] - 1
                    break
                self._place = row.lookup_id
                yield row


def _lasts(shelf: Shelf, name: str) -> list[int]:
    found = (shelf.before(name, end, 1) for end in ends_of_ranks())
    return [rows[0].lookup_id if rows else START for rows in found]


class Sweeping:
    def __init__(
        self,
        stock: Stock,
        queues: QueueTable,
        handles: Handles,
        answering: Answering,
        flights: Flights,
    ) -> None:
        self._stock, self._queues, self._handles = stock, queues, handles
        self._answering, self._flights = answering, flights

    def purge(self, handle: int) -> Sweep:
        descriptor = self._handles.get(handle)
        queue = descriptor.live_queue
        descriptor.demand(Access.RECEIVE)
        return Sweep(_PURGED, self._stock.shelf, [queue.name])

    def delete(self, name: str) -> tuple[list[Command], Sweep]:
        """A queue with its journal and subqueues. From here on nobody finds it."""
        if is_system(name) or parent_of(name) != name:
            raise Refused(Status.UNSUPPORTED_FORMATNAME_OPERATION, name)
        self._queues.find(name).delete()
        commands: list[Command] = []
        family = self._queues.family(name)
        for queue in family:
            commands += self._answering.abandon(queue)
        sweep = Sweep(
            MessageClass.NACK_Q_DELETED, self._stock.shelf, [queue.name for queue in family]
        )
        self._flights.forget_if_deleted(name)
        return commands, sweep

    def step(self, sweep: Sweep, now: Instant, limit: int = STEP) -> list[Command]:
        """The next commits; none: it is done, apart from those that are in flight."""
        commands: list[Command] = []
        is_purge = sweep.reason is _PURGED
        for row in sweep.rows():
            commit = self._purge(row, now) if is_purge else self._delete(row, now)
            if commit is not None:
                commands.append(commit)
            if len(commands) == limit:
                break
        return commands

    def lose(self, row: Row) -> list[Command]:
        """Its record is gone from Kafka (retention, or somebody's hand), so nobody can have it any
        more, whoever holds it. It must not stay in the way of those behind it."""
        if self._stock.shelf.get(row.queue, row.lookup_id) is None:
            return []
        lock = self._seize(row)
        return [] if lock is None else [self._flights.lose(lock)]

    def forget(self, row: Row) -> bool:
        """A copy in a journal or dead-letter queue whose record Kafka's retention has deleted: it
        is gone without an effect, because no ack depends on it and Kafka has nothing to undo.
        False: a reader holds it now."""
        if row.lookup_id in self._stock.locks:
            return False
        if self._stock.shelf.get(row.queue, row.lookup_id) is not None:
            self._stock.shelf.remove(row)
            self._flights.forget_if_deleted(row.queue)
        return True

    def _purge(self, row: Row, now: Instant) -> Commit | None:
        """DM-27: whoever holds it may answer what he likes."""
        lock = self._stock.locks.get(row.lookup_id)
        if lock is not None:
            lock.is_purged = True
            return None
        return self._flights.remove(self._stock.lock(row), _PURGED, now)

    def _delete(self, row: Row, now: Instant) -> Commit | None:
        lock = self._seize(row)
        if lock is None:
            return None
        return self._flights.remove(lock, MessageClass.NACK_Q_DELETED, now)

    def _seize(self, row: Row) -> Lock | None:
        """Whoever holds it; but one outcome is enough for each message (DM-17)."""
        lock = self._stock.locks.get(row.lookup_id)
        if lock is None:
            return self._stock.lock(row)
        if lock.in_flight:
            return None
        if lock.transaction is not None:
            del lock.transaction.operations[row.lookup_id]
        return lock
