"""How far the sources are read: rows so far, as Spark itself counts them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_EVERY_S: Final = 0.5


class Reading:
    """Looks now and then, in a thread of its own, until it is left.

    A job is known by its description. Executors tell how far they are with their heartbeats
    (`spark.executor.heartbeatInterval`). A picture only: nothing else depends on it.
    """

    def __init__(self, spark: SparkSession, tell: Callable[[str, int], None]) -> None:
        self._context: Any = spark.sparkContext
        self._tell = tell
        self._counts: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="backfill-reading", daemon=True)

    def __enter__(self) -> Reading:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5.0)

    def _follow(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.look()
            except (Py4JError, OSError):  # Spark has ended
                return

    def look(self) -> None:
        stages = self._context._jsc.sc().statusStore().activeStages()
        found: dict[str, int] = {}
        for number in range(stages.size()):
            stage = stages.apply(number)
            source = stage.description()
            if source.isDefined():
                found[source.get()] = found.get(source.get(), 0) + int(stage.inputRecords())
        for name, rows in found.items():
            if rows > self._counts.get(name, 0):
                self._counts[name] = rows
                self._tell(name, rows)
