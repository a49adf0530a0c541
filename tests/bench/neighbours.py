"""How much of the machine's CPU others took meanwhile: beside them, figures mean little."""

from __future__ import annotations

import time

import psutil

CALM = 0.15  # cores; more than this is worth a warning


class Neighbours:
    """From when it is made until it is asked."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._busy, self._own = _busy(), _own()

    def cores(self) -> float:
        """On average; to be asked while our children live."""
        others = (_busy() - self._busy) - (_own() - self._own)
        return max(0.0, others / (time.monotonic() - self._started))


def _busy() -> float:
    times = psutil.cpu_times()
    waiting = times.idle + getattr(times, "iowait", 0.0)
    return float(sum(times[:8]) - waiting)  # without guests: they are in `user` already


def _own() -> float:
    """This process, those it started, and what those have started and seen end."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total
