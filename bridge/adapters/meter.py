"""What goes through, by the second: the counters of the metrics, looked at now and then."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from bridge.adapters.telemetry import PREFIX, Telemetry

EVERY_S: Final = 1.0
WINDOW: Final = 10  # looks that a rate goes back

_NAMES: Final = ("messages", "records", "bytes_received")
Counts = dict[str, float]  # "records orders" -> how many so far


class Meter:
    """`run` looks once a second, so that who asks once hears what was just before."""

    def __init__(self, telemetry: Telemetry, pending: Callable[[], int]) -> None:
        self._registry = telemetry.registry.restricted_registry(
            [f"{PREFIX}{name}_total" for name in (*_NAMES, "refusals")]
        )
        self._pending = pending
        self._looks: deque[tuple[float, Counts]] = deque(maxlen=WINDOW)
        self._taken: deque[tuple[float, float]] = deque()  # when, how many had come by then
        self.look()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.look()

    def look(self) -> None:
        now, counts = time.monotonic(), self._counts()
        self._looks.append((now, counts))
        self._follow(now, counts)

    def totals(self) -> dict[str, float]:
        """Since the start: messages, records and bytes."""
        counts = self._counts()
        return {name: _sum(counts, name) for name in _NAMES}

    def report(self) -> dict[str, Any]:
        """For `status`: sums since the start, and per second over the last looks."""
        now, counts = time.monotonic(), self._counts()
        then, before = self._looks[0]
        seconds = max(now - then, 0.001)

        def rate(start: str) -> float:
            return round((_sum(counts, start) - _sum(before, start)) / seconds, 1)

        self._follow(now, counts)
        return {
            "totals": {name: int(_sum(counts, name)) for name in _NAMES},
            "rates": {f"{name}_per_second": rate(name) for name in _NAMES}
            | {"over_s": round(seconds, 1)},
            "pending": {"messages": self._pending(), "oldest_s": self.oldest_s()},
            "verdicts": _part(counts, "messages"),
            "topics": [
                {"topic": topic, "records": count, "per_second": rate(f"records {topic}")}
                for topic, count in sorted(_part(counts, "records").items())
            ],
            "refusals": _part(counts, "refusals"),
        }

    def _counts(self) -> Counts:
        counts: Counts = {}
        for metric in self._registry.collect():
            for sample in metric.samples:
                name = sample.name.removeprefix(PREFIX).removesuffix("_total")
                label = next(iter(sample.labels.values()), "")  # a verdict's class is left out
                key = f"{name} {label}"
                counts[key] = counts.get(key, 0.0) + sample.value
        return counts

    def _follow(self, now: float, counts: Counts) -> None:
        """Messages are settled about in the order they came: who waits came after that many."""
        settled = _sum(counts, "messages")
        taken = settled + self._pending()
        while self._taken and self._taken[0][1] <= settled:
            self._taken.popleft()
        if taken > settled and (not self._taken or self._taken[-1][1] < taken):
            self._taken.append((now, taken))

    def oldest_s(self) -> float:
        """How long the oldest pending message waits, to the second or so; 0 when nothing does."""
        return round(time.monotonic() - self._taken[0][0], 1) if self._taken else 0.0


def _sum(counts: Counts, start: str) -> float:
    """Of one counter, or of one label of it."""
    if " " in start:
        return counts.get(start, 0.0)
    return sum(value for key, value in counts.items() if key.startswith(f"{start} "))


def _part(counts: Counts, name: str) -> dict[str, int]:
    start = f"{name} "
    return {k.removeprefix(start): int(v) for k, v in counts.items() if k.startswith(start)}
