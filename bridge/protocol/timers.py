"""Deadlines as data: the owner asks what is due, and when to ask again.

`Timers` are a few with names; `Deadlines` may be thousands, of streams that peers name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import Generic, TypeVar

Name = TypeVar("Name")
Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Name]):
    def __init__(self) -> None:
        self._due: dict[Name, float] = {}

    def start(self, name: Name, due: float) -> None:
        self._due[name] = due

    def start_if_idle(self, name: Name, due: float) -> None:
        self._due.setdefault(name, due)

    def stop(self, name: Name) -> None:
        self._due.pop(name, None)

    def running(self, name: Name) -> bool:
        return name in self._due

    def due(self, now: float) -> list[Name]:
        """Those that have run out, earliest first; each is stopped."""
        names = sorted((n for n, at in self._due.items() if at <= now), key=self._due.__getitem__)
        for name in names:
            del self._due[name]
        return names

    def next_wakeup(self) -> float | None:
        return min(self._due.values(), default=None)


class Deadlines(Generic[Key]):
    """The earliest is found without a search. One that is put off, or stopped, leaves its place in
    the heap as it is; the place is mended when it comes up."""

    def __init__(self) -> None:
        self._at: dict[Key, float] = {}
        self._placed: dict[Key, float] = {}  # where in the heap
        self._heap: list[tuple[float, int, Key]] = []
        self._numbers = count()  # of two at one time the older comes first
        self.steps = 0  # places that were made, moved or taken away

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: Key, at: float) -> None:
        self._at[key] = at
        if self._placed.get(key, at + 1) > at:
            self._placed[key] = at
            self.steps += 1
            heappush(self._heap, (at, next(self._numbers), key))

    def stop(self, key: Key) -> None:
        self._at.pop(key, None)

    def first(self) -> Key | None:
        """The one that is due first."""
        self._mend()
        return self._heap[0][2] if self._heap else None

    def next_wakeup(self) -> float | None:
        self._mend()
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[Key]:
        """Those that have run out, earliest first; each is stopped when it is handed out."""
        while (at := self.next_wakeup()) is not None and at <= now:
            key = self._heap[0][2]
            self._drop()
            del self._at[key]
            yield key

    def _mend(self) -> None:
        heap = self._heap
        while heap:
            placed, _, key = heap[0]
            at = self._at.get(key)
            if at == placed:
                return
            if at is None or self._placed.get(key) != placed:
                self._drop()
            else:
                self._placed[key] = at
                self.steps += 1
                heapreplace(heap, (at, next(self._numbers), key))

    def _drop(self) -> None:
        placed, _, key = heappop(self._heap)
        self.steps += 1
        if self._placed.get(key) == placed:
            del self._placed[key]
