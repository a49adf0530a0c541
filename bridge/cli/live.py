"""The live picture of `serve --live`: what came in, and where it is."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bridge.app import Appliance
from bridge.cli.output import console

EVERY_S: Final = 0.5


class LivePicture:
    def __init__(self, appliance: Appliance) -> None:
        self._appliance = appliance
        self._seen: dict[str, float] = {}
        self._at = time.monotonic()

    async def run(self) -> None:
        """On a terminal one picture that changes; in a pipe a line whenever something came."""
        out = console()
        if not out.is_terminal:
            await self._lines()
            return
        with Live(self._picture(), console=out, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(EVERY_S)
                live.update(self._picture(), refresh=True)

    async def _lines(self) -> None:
        before: dict[str, float] = {}
        while True:
            await asyncio.sleep(EVERY_S)
            now = self._appliance.telemetry.record_counts()
            for topic, count in now.items():
                if count != before.get(topic, 0):
                    console().print(f"topic {topic}: {count:.0f} records")
            before = now

    def _picture(self) -> RenderableType:
        status = self._appliance.status()
        return Group(self._head(status), self._topics(status), self._sessions(status))

    def _head(self, status: dict[str, Any]) -> Text:
        state = "; ".join(["ready"] * status["ready"] + status["reasons"])
        kafka = status["kafka"]["bootstrap.servers"]
        style = "red" if not status["ready"] else "yellow" if status["reasons"] else "green"
        head = Text.assemble((f"● {state}", style), f"   Kafka {kafka}")
        head.append(f"   sessions {status['session_count']}   streams {status['streams']}")
        head.append("   Ctrl-C stops", style="dim")
        return head

    def _topics(self, status: dict[str, Any]) -> Table:
        now, counts = time.monotonic(), self._appliance.telemetry.record_counts()
        table = Table(title="What arrived", title_justify="left", expand=False)
        table.add_column("queue")
        table.add_column("kind")
        table.add_column("topic")
        table.add_column("records", justify="right")
        table.add_column("per second", justify="right")
        for row in status["queues"]:
            topic = row["topic"]
            count = counts.get(topic, 0.0)
            rate = (count - self._seen.get(topic, count)) / max(now - self._at, 0.01)
            kind = "transactional" if row["transactional"] else "plain"
            table.add_row(row["queue"], kind, topic, f"{count:,.0f}", f"{rate:,.0f}")
        self._seen, self._at = counts, now
        return table

    def _sessions(self, status: dict[str, Any]) -> Table:
        table = Table(title="Sessions", title_justify="left", expand=False)
        for name in ("peer", "queue manager", "state"):
            table.add_column(name)
        table.add_column("received", justify="right")
        for row in status["sessions"][:10]:
            received = f"{row['received']:,}"
            table.add_row(row["peer"], row["queue_manager"], row["state"], received)
        return table
