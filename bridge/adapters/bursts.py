"""How often the same may be said: so many times at once, then how many more there were."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)

WINDOW_S: Final = 10.0
MOST: Final = 500  # kinds that are counted one by one
LOOK_S: Final = 1.0


class LeftOut(NamedTuple, Generic[Key]):
    """What was not said in one window; `key` None: kinds that had no place of their own."""

    key: Key | None
    lines: int


class _Window:
    __slots__ = ("ends", "left_out", "said")

    def __init__(self, ends: float) -> None:
        self.ends, self.said, self.left_out = ends, 0, 0


class Bursts(Generic[Key]):
    """Pure: told the time. Its memory is bounded, whatever the keys are."""

    def __init__(self, window_s: float = WINDOW_S, most: int = MOST) -> None:
        self._window_s, self._most = window_s, most
        self._windows: dict[Key | None, _Window] = {}
        self._look = 0.0

    def admits(self, key: Key, burst: int, now: float) -> bool:
        window = self._windows.get(key)
        if window is None:
            place = key if len(self._windows) < self._most else None
            window = self._windows.get(place)
            if window is None:
                window = self._windows[place] = _Window(now + self._window_s)
        if window.said < burst:
            window.said += 1
            return True
        window.left_out += 1
        return False

    def over(self, now: float, *, all_of_them: bool = False) -> list[LeftOut[Key]]:
        """Windows that have ended since the last look, if something was left out in them."""
        if now < self._look and not all_of_them:
            return []
        self._look = now + LOOK_S
        ended = [k for k, w in self._windows.items() if all_of_them or w.ends <= now]
        found = [(key, self._windows.pop(key)) for key in ended]
        return [LeftOut(key, window.left_out) for key, window in found if window.left_out]

    def __len__(self) -> int:
        return len(self._windows)
