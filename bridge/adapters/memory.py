"""ShardSink in memory, with the same promises: unit tests, dry runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bridge.core.ports import Record, RefusedRecord, Snapshot, Unit, UnitRefused
from bridge.model.errors import SinkUnavailable


class MemoryLog:
    """What a cluster would hold for one shard; outlives the sinks that write to it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.rejects: list[Record] = []
        self.state: dict[str, bytes] = {}
        self.seen: dict[str, bytes] = {}
        self.audit: list[bytes] = []
        self.units = 0
        self.owner: MemoryShardSink | None = None
        self.refuses: Callable[[Record], str] = lambda _record: ""  # the error, as Kafka names it
        self.up = asyncio.Event()
        self.up.set()

    def apply(self, unit: Unit) -> None:
        self.records += unit.records
        self.rejects += unit.rejects
        self.audit += unit.audit
        self.seen |= unit.seen
        for key, value in unit.state.items():
            self.state.pop(key, None)  # in the order they were last written
            if value is not None:
                self.state[key] = value
        self.units += 1


class MemoryShardSink:
    """`fail_next` makes one publish fail: "before" or "after" the commit took effect."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.fail_next = ""
        self._open = False

    async def open(self) -> Snapshot:
        if not self.log.up.is_set():
            raise SinkUnavailable("memory: down")
        self.log.owner, self._open = self, True
        return Snapshot(dict(self.log.state), list(self.log.seen.values()))

    async def publish(self, unit: Unit, *, traced: bool = False) -> None:
        if not self._open or self.log.owner is not self:
            raise SinkUnavailable("memory: fenced")
        failure, self.fail_next = self.fail_next, ""
        if failure == "before" or not self.log.up.is_set():
            self._open = False
            raise SinkUnavailable("memory: not committed")
        self._check(unit, traced)
        self.log.apply(unit)
        if failure == "after":
            self._open = False
            raise SinkUnavailable("memory: committed, but the answer was lost")

    def _check(self, unit: Unit, traced: bool) -> None:
        refused = [
            RefusedRecord(position, record.topic, error, "memory: refused", record.timestamp_ms)
            for position, record in enumerate(unit.records)
            if (error := self.log.refuses(record))
        ]
        if refused:
            self._open = False
            raise UnitRefused("memory: refused", refused if traced else ())

    def let_go(self) -> None:
        pass

    async def close(self) -> None:
        self._open = False
