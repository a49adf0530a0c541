"""Where people look at the demo: a picture that changes, lines in a pipe, or nothing but data."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from rich.console import RenderableType
from rich.live import Live

from bridge.cli.demo_text import LAST, Answers, as_data, as_tables, line, picture
from bridge.cli.output import Output, console, show
from bridge.core.audit import AuditEntry

EVERY_S: Final = 0.1  # no more pictures than anybody can follow


class Board:
    """`add` may be called at any time; only `draw` writes what came."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._console = console()
        self._fresh = asyncio.Event()
        self._kept: list[AuditEntry] = []
        self._new: list[AuditEntry] = []  # not written yet
        self._counts: Counter[str] = Counter()
        self.answered = False

    def say(self, text: str) -> None:
        if self._output is Output.TABLE:
            self._console.print(text, soft_wrap=True)
            self._console.file.flush()

    def add(self, entries: Sequence[AuditEntry]) -> None:
        self._kept += entries
        self._new += entries
        if self.answered:  # it may stay for days
            del self._kept[:-LAST]
        self._counts.update(entry.verdict for entry in entries)
        self._fresh.set()

    async def verdicts(self, ids: Collection[str], count: int) -> list[AuditEntry]:
        """Those on messages of these ids, as soon as there are so many."""
        while len(found := [entry for entry in self._kept if entry.id in ids]) < count:
            await self._news()
        return found

    async def draw(self, head: str) -> None:
        """Until it is cancelled."""
        if self._output is not Output.TABLE:
            await asyncio.Event().wait()
        elif self._console.is_terminal:
            await self._draw_picture(head)
        else:
            await self._write_lines()

    def answer(self, answers: Answers) -> None:
        self.answered = True
        self._kept.clear()
        self._counts.clear()
        if self._output is not Output.TABLE:
            show(as_data(answers), self._output)
            return
        for part in as_tables(answers):
            self._console.print()
            self._console.print(part)

    async def _draw_picture(self, head: str) -> None:
        def now() -> RenderableType:
            self._new.clear()
            return picture(self._kept[-LAST:], self._counts, head)

        with Live(now(), console=self._console, auto_refresh=False) as live:
            try:
                while True:
                    await self._news()
                    live.update(now(), refresh=True)
                    await asyncio.sleep(EVERY_S)
            finally:
                live.update(now(), refresh=True)

    async def _write_lines(self) -> None:
        try:
            while True:
                self._write_new()
                await self._news()
        finally:
            self._write_new()

    def _write_new(self) -> None:
        new, self._new = self._new, []
        for entry in new:
            self.say(line(entry))

    async def _news(self) -> None:
        self._fresh.clear()
        await self._fresh.wait()
