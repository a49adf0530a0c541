"""The doctor's visits to a running appliance, from inside: what the web page shows of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from bridge.adapters.doctor.checks import CHECKS
from bridge.adapters.doctor.finding import Finding, Result, fail, ok, warn
from bridge.adapters.doctor.visit import Check, Visit, examine
from bridge.adapters.kafka.worker import Worker
from bridge.config import Config

FRESH_S: Final = 60.0
_BY_US: Final = ("config", "appliance")  # what we know better than a visitor


class Rounds:
    """Nobody waits for the doctor: the last findings are told, old ones are looked at again."""

    def __init__(
        self,
        config: Config,
        status: Callable[[], dict[str, Any]],
        checks: Sequence[Check] = CHECKS,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._config, self._status, self._fresh_s = config, status, fresh_s
        self._checks = [
            Check(id="appliance", run=_appliance),
            *(check for check in checks if check.id not in _BY_US),
        ]
        self._findings: list[Finding] = []
        self._at: float | None = None  # Unix seconds of the last visit
        self._visit: asyncio.Task[None] | None = None
        self._worker = Worker("doctor")

    def report(self) -> dict[str, Any]:
        if self._visit is None and (self._at is None or time.time() - self._at > self._fresh_s):
            self._visit = asyncio.create_task(self._look())
        return {"at": self._at, "looking": self._visit is not None} | summary(self._findings)

    def stop(self) -> None:
        if self._visit is not None:
            self._visit.cancel()
        self._worker.stop()

    async def _look(self) -> None:
        try:
            visit = Visit(None)
            visit.config, visit.status = self._config, self._status()
            self._findings = await self._worker.run(lambda: list(examine(visit, self._checks)))
        finally:
            self._at, self._visit = time.time(), None


def _appliance(visit: Visit) -> Iterator[Finding]:
    status = visit.status or {}
    if status.get("ready"):
        yield ok("running and ready")
        for reason in status.get("reasons", []):
            yield fail(reason, mend="mend what it names; the rest of the appliance goes on")
    else:
        reasons = "; ".join(status.get("reasons", [])) or "it does not say why"
        yield warn(f"running, not ready: {reasons}", mend="mend the reason it gives")


def summary(findings: Iterable[Finding]) -> dict[str, Any]:
    """`ok`: nothing fails."""
    counts = Counter(finding.result for finding in findings)
    return {
        "ok": not counts[Result.FAIL],
        "counts": {result.value: counts[result] for result in Result},
        "findings": msgspec.to_builtins(list(findings)),
    }
