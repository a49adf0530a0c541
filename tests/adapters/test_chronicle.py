"""Samples by the second, with a clock of our own."""

import asyncio
from types import SimpleNamespace

import pytest

from bridge.adapters import chronicle as module
from bridge.adapters import meter as meter_module
from bridge.adapters.chronicle import KEPT, Chronicle
from bridge.adapters.meter import Meter
from bridge.adapters.telemetry import Telemetry
from tests.support.waiting import until


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        fake = SimpleNamespace(monotonic=lambda: self.now, time=lambda: 1_000_000 + self.now)
        monkeypatch.setattr(module, "time", fake)
        monkeypatch.setattr(meter_module, "time", fake)


def test_rates_and_times_of_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, telemetry = Clock(monkeypatch), Telemetry()
    meter = Meter(telemetry, lambda: 7)
    chronicle = Chronicle(telemetry, meter, lambda: 7, lambda: 3)
    clock.now += 2
    telemetry.message("accepted", count=10)
    telemetry.records("orders", 8)
    telemetry.bytes_received(400)
    telemetry.transaction("committed", messages=10, seconds=0.010)
    telemetry.transaction("committed", messages=10, seconds=0.030)
    chronicle.look()
    clock.now += 1
    chronicle.look()
    told = chronicle.since(0)
    assert told["names"][:4] == ("at", "messages", "records", "bytes")
    first, second = told["rows"]
    assert first[:5] == (1_000_102.0, 5.0, 4.0, 200.0, 7)
    assert first[6:] == (3, 20.0, None)  # sessions, mean commit, no ack was timed
    assert second[1:4] == (0.0, 0.0, 0.0)
    assert second[7] is None
    assert chronicle.since(1_000_102.0)["rows"] == [second]


def test_it_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, telemetry = Clock(monkeypatch), Telemetry()
    chronicle = Chronicle(telemetry, Meter(telemetry, lambda: 0), lambda: 0, lambda: 0)
    for _ in range(KEPT + 5):
        clock.now += 1
        chronicle.look()
    assert len(chronicle.since(0)["rows"]) == KEPT


def test_it_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    telemetry = Telemetry()

    async def run() -> None:
        chronicle = Chronicle(telemetry, Meter(telemetry, lambda: 0), lambda: 0, lambda: 0)
        task = asyncio.create_task(chronicle.run())
        await until(lambda: len(chronicle.since(0)["rows"]) > 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
