"""Whether Kafka answers, without a transaction."""

import asyncio
import logging

import pytest

from bridge.adapters.kafka import health as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.health import KafkaHealth
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka


def test_a_broker_falls_silent_and_comes_back(
    mortal: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # design D3: /readyz says no
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    monkeypatch.setattr(module, "PATIENCE_S", 0.5)

    async def run() -> None:
        health = KafkaHealth({"bootstrap.servers": mortal.bootstrap_servers}, "any")
        task = asyncio.create_task(health.run())
        assert (await asyncio.to_thread(health._ask)) == (True, "")
        mortal.suspend()
        try:
            await asyncio.to_thread(eventually, lambda: not health.up)
        finally:
            why = health.why
            mortal.resume()
        assert why.startswith("does not answer: ")
        assert "\n" not in why
        await asyncio.to_thread(eventually, lambda: health.up)
        assert health.why == ""
        task.cancel()

    with caplog.at_level(logging.INFO, module.__name__):
        asyncio.run(run())
    told = [record for record in caplog.records if record.name == module.__name__]
    assert [record.levelname for record in told] == ["ERROR", "INFO"]  # one line per change
    assert told[1].getMessage() == "Kafka is back"


def test_it_is_optimistic_until_it_has_asked() -> None:
    assert KafkaHealth({"bootstrap.servers": "127.0.0.1:1"}, "any").up
