"""How far live queues are read: rows so far, as the readers note them in files.

Spark tells of rows when a task has ended, which for a long queue is too late. Readers on other
machines have no such folder; there is no picture then, and nothing else depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final

_EVERY_S: Final = 0.5


class Reading:
    """Looks now and then, in a thread of its own, until it is left."""

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        self._tell = tell
        self._folder = TemporaryDirectory(prefix="msmq-reading-")
        self._sources: dict[Path, str] = {}
        self._counts: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="backfill-reading", daemon=True)

    def __enter__(self) -> Reading:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._folder.cleanup()

    def place(self, source: str) -> str:
        """The folder for the notes of one source: a file for each part, with its rows so far.
        Sources are opened side by side: any thread may ask."""
        place = mkdtemp(dir=self._folder.name)
        self._sources[Path(place)] = source
        return place

    def _follow(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self.look()

    def look(self) -> None:
        for place, source in list(self._sources.items()):
            rows = sum(_rows_in(file) for file in place.iterdir())
            if rows > self._counts.get(source, 0):
                self._counts[source] = rows
                self._tell(source, rows)


def _rows_in(file: Path) -> int:
    """0 while it is being written."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
