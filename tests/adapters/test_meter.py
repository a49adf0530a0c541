"""Rates and ages from counters, with a clock of our own."""

import asyncio
from types import SimpleNamespace

import pytest

from bridge.adapters import meter as module
from bridge.adapters.meter import WINDOW, Meter
from bridge.adapters.telemetry import Telemetry
from tests.support.waiting import until


class Flow:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.pending = 0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.telemetry = Telemetry()
        self.meter = Meter(self.telemetry, lambda: self.pending)

    def after(self, seconds: float, *, came: int = 0, settled: int = 0) -> None:
        """Time passes, then messages come and go, then the meter looks."""
        self.now += seconds
        self.pending += came - settled
        self.telemetry.message("accepted", count=settled)
        self.telemetry.records("orders", settled)
        self.telemetry.bytes_received(came * 100)
        self.meter.look()

    def oldest(self) -> float:
        return float(self.meter.report()["pending"]["oldest_s"])


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Flow:
    return Flow(monkeypatch)


def test_sums_and_rates(flow: Flow) -> None:
    flow.after(1.0, came=30, settled=20)
    flow.telemetry.message("rejected", "NACK_Q_DELETED", 2)
    flow.telemetry.message("rejected", "NACK_BAD_DST_Q", 3, "http")
    flow.telemetry.refusal("cloned-guid")
    flow.now += 1.0
    told = flow.meter.report()
    assert told["totals"] == {"messages": 25, "records": 20, "bytes_received": 3000}
    assert told["rates"] == {
        "messages_per_second": 12.5,
        "records_per_second": 10.0,
        "bytes_received_per_second": 1500.0,
        "over_s": 2.0,
    }
    assert told["verdicts"] == {"accepted": 20, "rejected": 5}
    assert told["topics"] == [{"topic": "orders", "records": 20, "per_second": 10.0}]
    assert told["refusals"] == {"cloned-guid": 1}
    assert told["pending"]["messages"] == 10


def test_a_rate_forgets(flow: Flow) -> None:
    flow.after(1.0, came=1000, settled=1000)
    for _ in range(WINDOW):
        flow.after(1.0)
    told = flow.meter.report()
    assert told["rates"]["messages_per_second"] == 0.0
    assert told["rates"]["over_s"] == WINDOW - 1
    assert told["totals"]["messages"] == 1000


def test_the_age_of_the_oldest(flow: Flow) -> None:
    assert flow.oldest() == 0.0
    flow.after(1.0, came=10)  # Kafka hangs from here on
    flow.after(5.0, came=10)
    assert flow.oldest() == 5.0
    flow.after(1.0, settled=10)  # the first ten are through, the others came a second ago
    assert flow.oldest() == 1.0
    flow.after(1.0, settled=10)
    assert flow.oldest() == 0.0


def test_a_steady_flow_is_young(flow: Flow) -> None:
    for _ in range(100):
        flow.after(1.0, came=50, settled=0 if flow.pending == 0 else 50)
    assert flow.pending == 50
    assert flow.oldest() <= 1.0


def test_waiting_long_needs_no_memory(flow: Flow) -> None:
    flow.after(1.0, came=5)
    for _ in range(1000):
        flow.after(1.0)
    assert flow.oldest() == 1000.0
    assert len(flow.meter._taken) == 1


def test_it_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.001)

    async def test() -> None:
        made = Meter(Telemetry(), lambda: 0)
        task = asyncio.create_task(made.run())
        await until(lambda: len(made._looks) == WINDOW)
        task.cancel()

    asyncio.run(test())
