"""Stands in for what the web page shows: real lists over fake shards, the rest as it is set."""

import time
from typing import Any

from bridge.adapters.net.connection import Connection
from bridge.adapters.paging import Page, Question, Row
from bridge.adapters.queue_desk import QueueDesk
from bridge.adapters.views import Views, mapping_page, queue_page
from bridge.core.mapping_rules import Mappings
from tests.adapters.fake_pumps import FakePump, pumps

SAMPLE_NAMES = (
    "at",
    "messages",
    "records",
    "bytes",
    "pending",
    "oldest_s",
    "sessions",
    "commit_ms",
    "ack_ms",
)


class FakeWatch:
    def __init__(self, desk: QueueDesk | None = None) -> None:
        self.pump = FakePump()
        self.connections: list[Connection] = []
        self.mappings = Mappings()
        self.fault: Exception | None = None
        self.asked: list[tuple[Any, ...]] = []
        self.role, self.reasons = "alone", list[str]()
        self.rejected_hosts = list[Row]()
        self._desk = desk
        self._views = Views(lambda: pumps(self.pump), lambda: self.connections)

    def live(self, since: float) -> dict[str, Any]:
        self._note("live", since)
        return {
            "ready": not self.reasons,
            "reasons": self.reasons,
            "role": self.role,
            "queue_manager": {"id": "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77", "names": ["BRIDGE01"]},
            "listeners": {"binary": "127.0.0.1:1801"},
            "kafka": {"bootstrap.servers": "broker1:9092", "embedded": False},
            "kafka_state": "up",
            "topic_prefix": "_msmq-bridge",
            "shards": 1,
            "uptime_s": 100.0,
            "session_count": len(self.connections),
            "streams": len(self.pump.shard.streams),
            "waiting_acks": 0,
            "waiting_forwards": 0,
            "cloned_guids": {},
            "rejected_hosts": self.rejected_hosts,
            "totals": {"messages": 12, "records": 12, "bytes_received": 1200},
            "rates": {"messages_per_second": 1.0, "bytes_received_per_second": 100.0},
            "pending": {"messages": 0, "oldest_s": 0.0},
            "verdicts": {"accepted": 12},
            "refusals": {},
            "shard_states": [],
            "samples": {
                "names": SAMPLE_NAMES,
                "rows": [(time.time(), 1, 1, 100, 0, 0, 1, 5.0, None)],
            },
        }

    async def page(self, name: str, question: Question) -> Page:
        self._note("page", name, question)
        if name == "sessions":
            return await self._views.sessions(question)
        if name == "streams":
            return await self._views.streams(question)
        if name == "acks":
            return await self._views.acks(question)
        if name == "queues":
            return queue_page(self._desk.queues() if self._desk else (), (), question)
        return mapping_page(self.mappings.queues, question)

    def verdicts(self) -> list[Row]:
        self._note("verdicts")
        return [
            {"verdict": "accepted", "class": "", "words": "", "transport": "binary", "count": 1}
        ]

    async def refusals(self) -> list[Row]:
        self._note("refusals")
        return []

    def findings(self) -> dict[str, Any]:
        self._note("findings")
        return {
            "at": None,
            "looking": True,
            "ok": True,
            "counts": {"ok": 0, "warn": 0, "fail": 0, "skip": 0},
            "findings": [],
        }

    async def plan(self) -> dict[str, Any]:
        self._note("plan")
        return {"changes": [], "notes": [], "queues": {"changed": [], "unchanged": 0}}

    async def apply(self, force: bool) -> dict[str, Any]:
        self._note("apply", force)
        return {"changes": [], "appliance": {"applied": []}}

    def _note(self, *call: Any) -> None:
        self.asked.append(call)
        if self.fault is not None:
            raise self.fault
