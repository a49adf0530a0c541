"""Whether Kafka answers, without a transaction."""

import asyncio
import logging

import pytest

from bridge.adapters.kafka import health as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.health import KafkaHealth

pytestmark = pytest.mark.kafka


async def until(health: KafkaHealth, up: bool) -> None:
    while health.up is not up:
        await asyncio.sleep(0.01)


def test_a_broker_dies_and_comes_back(
    mortal: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # design D3: /readyz says no
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    monkeypatch.setattr(module, "PATIENCE_S", 0.5)

    async def run() -> None:
        health = KafkaHealth({"bootstrap.servers": mortal.bootstrap_servers})
        task = asyncio.create_task(health.run())
        assert (await asyncio.to_thread(health._ask)) == (True, "")
        await asyncio.to_thread(mortal.kill)
        await asyncio.wait_for(until(health, False), 10)
        assert health.why.startswith("does not answer: ")
        assert "\n" not in health.why
        await asyncio.to_thread(mortal.start)
        await asyncio.wait_for(until(health, True), 30)
        assert health.why == ""
        task.cancel()

    with caplog.at_level(logging.INFO, module.__name__):
        asyncio.run(run())
    told = [record for record in caplog.records if record.name == module.__name__]
    assert [record.levelname for record in told] == ["ERROR", "INFO"]  # one line per change
    assert told[1].getMessage() == "Kafka is back"


def test_it_is_optimistic_until_it_has_asked() -> None:
    assert KafkaHealth({"bootstrap.servers": "127.0.0.1:1"}).up
