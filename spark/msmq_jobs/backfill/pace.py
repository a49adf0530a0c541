"""How long a writer rests so that it keeps to a rate. Pure: the clock is passed in."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """`rate` is messages per second; 0 is no limit."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._free_at = clock()

    def burst(self, most: int) -> int:
        """How many at once: what a second allows, at least one."""
        return most if self._rate <= 0 else max(1, min(most, int(self._rate)))

    def rest_after(self, count: int) -> float:
        """Seconds until the next ones may go. Time that was not used is not made up for."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        self._free_at = max(self._free_at, now - 1) + count / self._rate
        return max(0.0, self._free_at - now)
