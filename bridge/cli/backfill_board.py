"""How far a backfill is: a bar per queue on a terminal, a line per step anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Board:
    """On stderr: stdout is for the answer."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._stage: TaskID | None = None
        self._lines: dict[str, TaskID] = {}  # of sources and of queues

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def stage(self, text: str) -> None:
        if not self._console.is_terminal:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        for line in self._lines.values():  # of the stage before
            self._bar.remove_task(line)
        self._lines.clear()
        if self._stage is not None:
            self._bar.remove_task(self._stage)
        self._stage = self._bar.add_task(text, total=None, count="")

    def read(self, source: str, messages: int) -> None:
        self._show(source, messages)

    def written(self, counts: Mapping[str, int]) -> None:
        for queue, count in counts.items():
            self._show(queue, count)

    def _show(self, what: str, count: int) -> None:
        if what not in self._lines:
            name = "".join(c if c.isprintable() else "?" for c in what)
            self._lines[what] = self._bar.add_task(f"  {name}", total=None, count="")
        self._bar.update(self._lines[what], count=f"{count:,}")
