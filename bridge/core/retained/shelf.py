"""Where the rows of waiting messages are, in the order of their queues."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from bridge.core.retained.naming import is_system
from bridge.core.retained.rows import RecordAt, Row


class Totals(msgspec.Struct, frozen=True, gc=False):
    """TotalBytes and how many messages they are. DM-31"""

    count: int = 0
    bytes: int = 0

    def plus(self, count: int, size: int) -> Totals:
        return Totals(self.count + count, self.bytes + size)


EMPTY: Final = Totals()


class Shelf(Protocol):
    """Rows by queue and place. No call takes longer because more messages wait.

    It knows nothing of locks: a row is on the shelf from the commit of its arrival to the commit
    of its removal. A place or a record that is on the shelf twice is a ValueError.
    """

    def add(self, rows: Iterable[Row]) -> None: ...

    def remove(self, row: Row) -> None: ...

    def replace(self, row: Row, new: Row) -> None:
        """The same record in another queue or place, or with other counters."""

    def get(self, queue: str, place: int) -> Row | None: ...

    def after(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        """The next ones in order."""

    def before(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        """The previous ones, nearest first."""

    def expiring(self, after: tuple[int, int], until: int, limit: int) -> Sequence[Row]:
        """Those of all queues that expire by then, ordered by (expires, lookup_id)."""

    def totals(self, queue: str) -> Totals: ...

    def total(self) -> Totals:
        """Of all queues."""

    def copies(self) -> Totals:
        """Of journals and the queues of the machine."""

    def queues(self) -> Iterable[str]:
        """Those that hold messages."""


class MemoryShelf:
    """For tests and trials."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._records: set[RecordAt] = set()
        self._expiring: list[Row] = []
        self._totals: dict[str, Totals] = {}
        self._total = self._copies = EMPTY
        self.add(rows)

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.at in self._records or self.get(row.queue, row.lookup_id):
                raise ValueError(f"{row.queue} has {row.id} already")
            self._records.add(row.at)
            insort(self._rows.setdefault(row.queue, []), row, key=_place)
            if row.expires is not None:
                insort(self._expiring, row, key=_expiry)
            self._count(row.queue, 1, row.size)

    def remove(self, row: Row) -> None:
        rows = self._rows[row.queue]
        del rows[bisect_left(rows, row.lookup_id, key=_place)]
        self._records.remove(row.at)
        if row.expires is not None:
            del self._expiring[bisect_left(self._expiring, _expiry(row), key=_expiry)]
        self._count(row.queue, -1, -row.size)

    def replace(self, row: Row, new: Row) -> None:
        self.remove(row)
        self.add((new,))

    def get(self, queue: str, place: int) -> Row | None:
        rows = self._rows.get(queue, [])
        index = bisect_left(rows, place, key=_place)
        return rows[index] if index < len(rows) and rows[index].lookup_id == place else None

    def after(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        rows = self._rows.get(queue, [])
        index = bisect_right(rows, place, key=_place)
        return rows[index : index + limit]

    def before(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        rows = self._rows.get(queue, [])
        index = bisect_left(rows, place, key=_place)
        return rows[max(index - limit, 0) : index][::-1]

    def expiring(self, after: tuple[int, int], until: int, limit: int) -> Sequence[Row]:
        index = bisect_right(self._expiring, after, key=_expiry)
        found = self._expiring[index : index + limit]
        return [row for row in found if row.expires is not None and row.expires <= until]

    def totals(self, queue: str) -> Totals:
        return self._totals.get(queue, EMPTY)

    def total(self) -> Totals:
        return self._total

    def copies(self) -> Totals:
        return self._copies

    def queues(self) -> Iterable[str]:
        return list(self._totals)

    def _count(self, queue: str, count: int, size: int) -> None:
        self._total = self._total.plus(count, size)
        if is_system(queue):
            self._copies = self._copies.plus(count, size)
        self._totals[queue] = self.totals(queue).plus(count, size)
        if not self._totals[queue].count:
            del self._totals[queue], self._rows[queue]


def _place(row: Row) -> int:
    return row.lookup_id


def _expiry(row: Row) -> tuple[int, int]:
    assert row.expires is not None
    return row.expires, row.lookup_id
