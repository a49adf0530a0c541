"""The last quarter of an hour, second by second: what the charts of the web page show."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from bridge.adapters.meter import Meter
from bridge.adapters.telemetry import PREFIX, Telemetry

EVERY_S: Final = 1.0
KEPT: Final = 900
_TIMED: Final = ("commit_seconds", "ack_seconds")


class Sample(Struct, frozen=True):
    """One second. A time is None when nothing was timed in it."""

    at: float  # Unix seconds
    messages: float  # per second, as are the next two
    records: float
    bytes: float
    pending: int
    oldest_s: float
    sessions: int
    commit_ms: float | None = None  # mean over the second, as is the next one
    ack_ms: float | None = None


class Chronicle:
    """`run` looks once a second; `since` tells what is new to somebody who asks again."""

    def __init__(
        self,
        telemetry: Telemetry,
        meter: Meter,
        pending: Callable[[], int],
        sessions: Callable[[], int],
    ) -> None:
        self._registry = telemetry.registry.restricted_registry(
            [PREFIX + name + end for name in _TIMED for end in ("_sum", "_count")]
        )
        self._meter, self._pending, self._sessions = meter, pending, sessions
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._at, self._totals, self._times = time.monotonic(), meter.totals(), self._timed()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.look()

    def look(self) -> None:
        now, totals, times = time.monotonic(), self._meter.totals(), self._timed()
        seconds = max(now - self._at, 0.001)

        def rate(name: str) -> float:
            return round((totals[name] - self._totals[name]) / seconds, 1)

        self._samples.append(
            Sample(
                round(time.time(), 3),
                rate("messages"),
                rate("records"),
                rate("bytes_received"),
                self._pending(),
                self._meter.oldest_s(),
                self._sessions(),
                *(_mean_ms(self._times, times, name) for name in _TIMED),
            )
        )
        self._at, self._totals, self._times = now, totals, times

    def since(self, at: float) -> dict[str, Any]:
        """The samples after that moment, as rows under their names."""
        rows = [astuple(sample) for sample in self._samples if sample.at > at]
        return {"names": Sample.__struct_fields__, "rows": rows}

    def _timed(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for metric in self._registry.collect():
            for sample in metric.samples:
                if sample.name.endswith(("_sum", "_count")):
                    name = sample.name.removeprefix(PREFIX)
                    sums[name] = sums.get(name, 0.0) + sample.value
        return sums


def _mean_ms(before: dict[str, float], after: dict[str, float], name: str) -> float | None:
    def more(part: str) -> float:
        return after.get(part, 0.0) - before.get(part, 0.0)

    count = more(f"{name}_count")
    return round(1000 * more(f"{name}_sum") / count, 1) if count > 0 else None
