"""Everything that the web page shows of a running appliance, in one place. See `view_routes`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, TypeVar

from bridge.adapters.chronicle import Chronicle
from bridge.adapters.doctor.rounds import Rounds
from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka.client import Settings
from bridge.adapters.kafka.planning import Planner
from bridge.adapters.kafka.refusals import LatestRefusals
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.meter import Meter
from bridge.adapters.net.connection import Connection
from bridge.adapters.paging import Page, Question, Row
from bridge.adapters.queue_desk import QueueDesk
from bridge.adapters.telemetry import PREFIX, Telemetry
from bridge.adapters.views import Views, mapping_page, queue_page
from bridge.config import Config
from bridge.core.mapping_rules import Mappings
from bridge.model.errors import Unavailable
from bridge.model.words import meaning_of

FRESH_S: Final = 0.5
Part = TypeVar("Part")


class Watch:
    """`figures` are the light part of the status; what asks Kafka is there after `open`."""

    def __init__(
        self,
        config: Config,
        telemetry: Telemetry,
        meter: Meter,
        *,
        figures: Callable[[], dict[str, Any]],
        pumps: Callable[[], Sequence[ShardPump]],
        connections: Callable[[], Collection[Connection]],
        mappings: Callable[[], Mappings],
        desk: Callable[[], QueueDesk | None],
        reload: Callable[[bool], Awaitable[dict[str, object]]],
    ) -> None:
        self._config, self._figures = config, figures
        self._told: dict[str, Any] = {}
        self._told_at = float("-inf")
        self._mappings, self._desk, self._reload = mappings, desk, reload
        self._views = Views(pumps, connections)
        self._chronicle = Chronicle(
            telemetry,
            meter,
            lambda: sum(pump.pending for pump in pumps()),
            lambda: len(connections()),
        )
        self._verdicts = telemetry.registry.restricted_registry([f"{PREFIX}messages_total"])
        self._rounds: Rounds | None = None
        self._planner: Planner | None = None
        self._refusals: LatestRefusals | None = None

    def open(self, settings: Settings, own: OwnTopics, shards: int) -> None:
        """Kafka is there."""
        self._planner = Planner(self._config, settings, self._mappings, self._reload)
        self._refusals = LatestRefusals(settings, own.rejects, shards)

    async def run(self) -> None:
        await self._chronicle.run()

    def stop(self) -> None:
        for part in (self._rounds, self._planner, self._refusals):
            if part is not None:
                part.stop()

    def live(self, since: float) -> dict[str, Any]:
        return {**self._young_figures(), "samples": self._chronicle.since(since)}

    def _young_figures(self) -> dict[str, Any]:
        """However many watch, they are made twice a second."""
        if time.monotonic() - self._told_at > FRESH_S:
            self._told, self._told_at = self._figures(), time.monotonic()
        return self._told

    async def page(self, name: str, question: Question) -> Page:
        match name:
            case "sessions":
                return await self._views.sessions(question)
            case "streams":
                return await self._views.streams(question)
            case "acks":
                return await self._views.acks(question)
            case "queues":
                queues = _there(self._desk(), "the queues").queues()
                return queue_page(queues, self._young_figures()["topics"], question)
        return mapping_page(self._mappings().queues, question)

    def verdicts(self) -> list[Row]:
        """The most frequent first."""
        rows = [
            {
                **sample.labels,
                "words": meaning_of(sample.labels["class"]),
                "count": int(sample.value),
            }
            for metric in self._verdicts.collect()
            for sample in metric.samples
        ]
        return sorted(rows, key=lambda row: -float(row["count"]))

    async def refusals(self) -> list[Row]:
        return await _there(self._refusals, "the rejects topic").rows()

    def findings(self) -> dict[str, Any]:
        """The doctor comes when somebody asks for the first time."""
        if self._rounds is None:
            self._rounds = Rounds(self._config, self._figures)
        return self._rounds.report()

    async def plan(self) -> dict[str, Any]:
        return await _there(self._planner, "the cluster").plan()

    async def apply(self, force: bool) -> dict[str, Any]:
        return await _there(self._planner, "the cluster").apply(force)


def _there(part: Part | None, name: str) -> Part:
    if part is None:
        raise Unavailable(f"not yet: {name} cannot be asked, see /readyz")
    return part
