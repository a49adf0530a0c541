"""How many reads are in flight: more and more, as long as what they bring fits into memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

FIRST: Final = 4
BUDGET: Final = 32 << 20  # bytes of one batch; a single message may have more


class Pace:
    """`width` is for the next batch."""

    def __init__(self, window: int, budget: int = BUDGET) -> None:
        self._window, self._budget = window, budget
        self.width = min(FIRST, window)

    def saw(self, sizes: Iterable[int]) -> None:
        """Twice as many next time, if as many as large as the largest of these would fit."""
        largest = max(sizes, default=0)
        fitting = self._budget // largest if largest else self._window
        self.width = max(1, min(2 * self.width, self._window, fitting))
