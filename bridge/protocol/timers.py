"""Named deadlines as data: the owner asks what is due, and when to ask again."""

from __future__ import annotations

from typing import Generic, TypeVar

Name = TypeVar("Name")


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
