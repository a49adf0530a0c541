"""All that the page shows, before Kafka is there and with fakes behind it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.adapters import watch as module
from bridge.adapters.meter import Meter
from bridge.adapters.net.view_routes import LISTS
from bridge.adapters.paging import Question
from bridge.adapters.queue_desk import QueueDesk
from bridge.adapters.telemetry import Telemetry
from bridge.adapters.watch import Watch
from bridge.config import Config
from bridge.core.mapping_rules import Mappings, QueueMapping, QueuePath
from bridge.model.errors import Unavailable
from tests.adapters.fake_pumps import FakePump, connection, pumps
from tests.adapters.net.fake_desk import ORDERS, FakeDesk

made: list[str] = []


def watch(telemetry: Telemetry | None = None, desk: QueueDesk | None = None) -> Watch:
    telemetry = telemetry or Telemetry()
    pump = FakePump()
    pump.shard.owe(1, host="sender01")
    rules = Mappings(queues=(QueueMapping(queue=QueuePath("private$\\orders")),))

    async def reload(force: bool) -> dict[str, object]:
        return {"applied": [], "unchanged": int(force)}

    meter = Meter(telemetry, lambda: 0)

    def figures() -> dict[str, Any]:
        made.append("figures")
        return {"ready": True, **meter.report()}

    return Watch(
        Config(),
        telemetry,
        meter,
        figures=figures,
        pumps=lambda: pumps(pump),
        connections=lambda: [connection(1)],
        mappings=lambda: rules,
        desk=lambda: desk,
        reload=reload,
    )


def test_live() -> None:
    async def run() -> dict[str, Any]:
        seen = watch()
        task = asyncio.create_task(seen.run())
        await asyncio.sleep(0)
        task.cancel()
        return seen.live(0)

    told = asyncio.run(run())
    assert told["ready"] is True
    assert told["samples"]["rows"] == []


def test_many_who_watch_cost_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def run() -> None:
        seen = watch()
        made.clear()
        for _ in range(50):
            seen.live(0)
        assert len(made) == 1
        now[0] += 1
        seen.live(0)
        assert len(made) == 2

    asyncio.run(run())


def test_every_list() -> None:
    telemetry = Telemetry()
    telemetry.records("orders", 3)

    async def run() -> dict[str, int]:
        seen = watch(telemetry, FakeDesk())
        queues = await seen.page("queues", Question())
        assert (queues.rows[0]["name"], queues.rows[0]["records"]) == (ORDERS, 3)
        return {name: (await seen.page(name, Question())).total for name in LISTS.values()}

    assert asyncio.run(run()) == {
        "sessions": 1,
        "streams": 0,
        "acks": 1,
        "queues": 1,
        "mappings": 1,
    }


def test_verdicts_in_words() -> None:
    telemetry = Telemetry()
    telemetry.message("accepted", count=5)
    telemetry.message("rejected", "NACK_BAD_DST_Q", transport="http")

    async def run() -> list[dict[str, Any]]:
        return watch(telemetry).verdicts()

    assert asyncio.run(run()) == [
        {"verdict": "accepted", "class": "", "transport": "binary", "words": "", "count": 5},
        {
            "verdict": "rejected",
            "class": "NACK_BAD_DST_Q",
            "transport": "http",
            "words": "there is no such queue",
            "count": 1,
        },
    ]


def test_what_is_not_there_yet() -> None:
    async def run() -> None:
        seen = watch()
        for asked in (seen.plan(), seen.apply(False), seen.refusals()):
            with pytest.raises(Unavailable, match="not yet"):
                await asked
        with pytest.raises(Unavailable, match="not yet: the queues"):
            await seen.page("queues", Question())
        assert seen.findings()["looking"] is True  # the doctor comes all the same
        seen.stop()

    asyncio.run(run())
