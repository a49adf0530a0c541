"""Which messages of a queue can be seen: those on the shelf that nobody holds."""

from __future__ import annotations

from typing import Final

from bridge.core.retained.locks import Lock, Transaction
from bridge.core.retained.place import spellings
from bridge.core.retained.queues import Queue
from bridge.core.retained.rows import Row
from bridge.core.retained.shelf import Shelf

_MOST: Final = 256  # rows of one look at the shelf


class Stock:
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.locks: dict[int, Lock] = {}  # by lookup id

    def lock(self, row: Row, transaction: Transaction | None = None) -> Lock:
        lock = self.locks[row.lookup_id] = Lock(row, transaction)
        return lock

    def unlock(self, lock: Lock) -> None:
        del self.locks[lock.row.lookup_id]

    def find(self, queue: Queue, number: int) -> Row | None:
        """By lookup id, available or not; the top byte of the number is ignored."""
        found = (self.shelf.get(queue.name, place) for place in spellings(number))
        return next((row for row in found if row is not None), None)

    def window(self, queue: Queue, unix: float) -> Window:
        return Window(self, queue, unix)


class Window:
    """The available messages of one queue at one moment.

    One that is too old is not available, even if nobody has removed it yet.
    """

    __slots__ = ("_queue", "_stock", "_unix")

    def __init__(self, stock: Stock, queue: Queue, unix: float) -> None:
        self._stock, self._queue, self._unix = stock, queue, unix

    def has(self, row: Row) -> bool:
        return row.lookup_id not in self._stock.locks and not row.is_over(self._unix)

    def at(self, place: int) -> Row | None:
        row = self._stock.shelf.get(self._queue.name, place)
        return row if row is not None and self.has(row) else None

    def after(self, place: int) -> Row | None:
        """Nothing before the queue's front is looked at: a transaction that takes ten thousand
        messages would look at all of them again for each one."""
        queue, locks = self._queue, self._stock.locks
        is_at_front = place <= queue.front
        place, limit = max(place, queue.front), 2
        while rows := self._stock.shelf.after(queue.name, place, limit):
            for row in rows:
                if self.has(row):
                    return row
                place = row.lookup_id
                is_at_front = is_at_front and place in locks
                if is_at_front:
                    queue.front = place
            limit = min(limit * 2, _MOST)
        return None

    def before(self, place: int) -> Row | None:
        queue, limit = self._queue, 2
        while rows := self._stock.shelf.before(queue.name, place, limit):
            for row in rows:
                place = row.lookup_id
                if place <= queue.front:
                    return None
                if self.has(row):
                    return row
            limit = min(limit * 2, _MOST)
        return None
