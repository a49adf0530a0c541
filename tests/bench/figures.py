"""Sums that the benchmark draws from what it measured; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank: the smallest value that at least `share` of all do not exceed."""
    if not ordered:
        raise ValueError("no values")
    rank = math.ceil(share * len(ordered))
    return ordered[max(rank, 1) - 1]


def ratio(value: float, base: float) -> float:
    return value / base if base else math.inf


def micros(seconds: float, messages: int) -> float:
    """CPU seconds as microseconds for each message."""
    return 1e6 * seconds / messages
