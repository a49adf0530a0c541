"""Messages on their way to Kafka, and messages that come back.

Nobody is told of a removal or a move before Kafka has it. Until then the message is locked, and if
Kafka did not take it, it is where it was: in its place, and offered to whoever waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from bridge.core.retained.effects import Command, Commit, Copy, Effect, Removal
from bridge.core.retained.locks import Lock
from bridge.core.retained.outcomes import copy_goes_to, owed
from bridge.core.retained.place import renewed
from bridge.core.retained.queues import QueueTable
from bridge.core.retained.quotas import Quotas
from bridge.core.retained.rows import Row
from bridge.core.retained.serving import Service
from bridge.core.retained.stock import Stock
from bridge.model.classes import MessageClass
from bridge.protocol.events import Instant

Ids = Callable[[], int]  # the next SequentialID; none is given twice, even after a crash. DM-1


class Flights:
    def __init__(
        self, stock: Stock, queues: QueueTable, service: Service, quotas: Quotas, ids: Ids
    ) -> None:
        self._stock, self._queues, self._service = stock, queues, service
        self._quotas, self._ids = quotas, ids
        self._tickets = count(1)
        self._flying: dict[int, tuple[Effect, ...]] = {}
        self._copies: dict[int, tuple[str, int]] = {}  # by lookup id: not on the shelf yet

    # -- out --------------------------------------------------------------------------------

    def remove(self, lock: Lock, reason: MessageClass, now: Instant) -> Commit:
        return self.launch((self.removal(lock, reason, now),))

    def removal(self, lock: Lock, reason: MessageClass, now: Instant) -> Removal:
        row = lock.row
        return Removal(row, reason, owed(row, reason), self._copy(row, reason, now))

    def lose(self, lock: Lock) -> Commit:
        """There is no record to copy. Its sender hears what comes nearest: nobody received it."""
        row, reason = lock.row, MessageClass.NACK_Q_PURGED
        return self.launch((Removal(row, reason, owed(row, reason), is_lost=True),))

    def launch(self, effects: Sequence[Effect]) -> Commit:
        """From here on only `settle` or `restore` ends it: one outcome for each message. DM-17"""
        for effect in effects:
            lock = self._stock.locks[effect.row.lookup_id]
            lock.in_flight, lock.transaction = True, None
        commit = Commit(next(self._tickets), tuple(effects))
        self._flying[commit.ticket] = commit.effects
        return commit

    def _copy(self, row: Row, reason: MessageClass, now: Instant) -> Copy | None:
        queue = self._queues.get(row.queue)
        to = copy_goes_to(row, reason, queue.journal if queue else "")
        if not to or not self._quotas.reserve_copy(to, row.size, freed=row.size):
            return None
        is_received = reason is MessageClass.ACK_RECEIVE
        died_of = MessageClass.NORMAL if is_received else reason
        place = renewed(row.lookup_id, self._ids())
        self._copies[place] = to, row.size
        return Copy(to, place, int(now.unix * 1000), died_of)

    # -- and back ---------------------------------------------------------------------------

    def settle(self, ticket: int, now: Instant) -> list[Command]:
        """Kafka has it. A copy arrives by its own record, before this or after it."""
        commands: list[Command] = []
        for effect in self._flying.pop(ticket):
            lock = self._stock.locks[effect.row.lookup_id]
            self._stock.unlock(lock)
            if isinstance(effect, Removal):
                self._stock.shelf.remove(effect.row)
                self.forget_if_deleted(effect.row.queue)
            else:
                self._stock.shelf.replace(effect.row, effect.to)
                stays = effect.to.queue == effect.row.queue
                commands += self.enter(effect.to, now, is_purged=lock.is_purged and stays)
        return commands

    def restore(self, ticket: int, now: Instant) -> list[Command]:
        """Kafka does not have it."""
        commands: list[Command] = []
        for effect in self._flying.pop(ticket):
            if isinstance(effect, Removal) and effect.copy is not None:
                self._release_copy(effect.copy.lookup_id)
            commands += self.give_back(self._stock.locks[effect.row.lookup_id], now)
        return commands

    def give_back(self, lock: Lock, now: Instant) -> list[Command]:
        """The message is available again, in its old place. DM-21"""
        self._stock.unlock(lock)
        return self.enter(lock.row, now, is_purged=lock.is_purged)

    def enter(self, row: Row, now: Instant, *, is_purged: bool = False) -> list[Command]:
        """It is on the shelf and nobody holds it; unless that was its end, it is available."""
        reason = self._overdue_end(row, now, is_purged)
        if reason is None:
            return self._service.available(row, now)
        return [self.remove(self._stock.lock(row), reason, now)]

    def _overdue_end(self, row: Row, now: Instant, is_purged: bool) -> MessageClass | None:
        """What happened while it was locked, or on its way to us."""
        queue = self._queues.get(row.queue)
        if queue is not None and queue.is_deleted:
            return MessageClass.NACK_Q_DELETED
        if is_purged:
            return MessageClass.NACK_Q_PURGED
        return MessageClass.NACK_RECEIVE_TIMEOUT if row.is_over(now.unix) else None

    def arrived(self, rows: Iterable[Row]) -> None:
        """Copies among them are on the shelf now: their room is taken, and no longer reserved."""
        for row in rows if self._copies else ():
            self._release_copy(row.lookup_id)

    def _release_copy(self, place: int) -> None:
        if (reserved := self._copies.pop(place, None)) is not None:
            self._quotas.release(*reserved)

    def forget_if_deleted(self, name: str) -> None:
        """The last message of a deleted queue and its family has left."""
        queue = self._queues.get(name)
        if queue is None or not queue.is_deleted:
            return
        root = queue.parent or queue
        family = self._queues.family(root.name)
        if not any(self._stock.shelf.totals(each.name).count for each in family):
            self._queues.forget(root)
