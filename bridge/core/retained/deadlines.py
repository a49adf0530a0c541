"""Deadlines of many things at once: the next one is always at hand."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Name = TypeVar("Name")


class Deadlines(Generic[Name]):
    """A stopped deadline leaves the heap when its turn comes, or when most of them are stopped."""

    def __init__(self) -> None:
        self._due: dict[Name, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Name]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def start(self, name: Name, due: float) -> None:
        self._count += 1
        self._due[name] = due, self._count
        heappush(self._heap, (due, self._count, name))
        if len(self._heap) > 2 * len(self._due) + 16:
            self._heap = sorted((*when, n) for n, when in self._due.items())

    def stop(self, name: Name) -> None:
        self._due.pop(name, None)

    def due(self, now: float) -> list[Name]:
        """Those that have run out, earliest first; each is stopped."""
        names = []
        while (first := self._first()) is not None and first[0] <= now:
            names.append(first[2])
            del self._due[first[2]]
        return names

    def next_wakeup(self) -> float | None:
        first = self._first()
        return None if first is None else first[0]

    def _first(self) -> tuple[float, int, Name] | None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heappop(self._heap)
        return self._heap[0] if self._heap else None
