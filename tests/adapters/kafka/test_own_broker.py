"""Started, started again, stopped, whatever it is doing; the broker itself is in test_embedded."""

import asyncio
import threading
from pathlib import Path

import pytest

from bridge.adapters.kafka import own_broker
from bridge.adapters.kafka.own_broker import OwnBroker
from tests.support.waiting import until


class FakeKafka:
    bootstrap_servers = "127.0.0.1:9092"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[str] = []
        self.may_start, self.dead, self.is_restarted = (threading.Event() for _ in range(3))
        self.may_start.set()

    def start(self) -> None:
        self.steps.append("start")
        self.may_start.wait(60)
        self.steps.append("started")

    def restart(self) -> None:
        self.steps.append("restart")
        self.dead.clear()
        self.is_restarted.set()

    def stop(self) -> None:
        self.steps.append("stop")
        self.may_start.set()  # its process is gone, so its start comes to an end
        self.dead.set()

    def wait_dead(self, _timeout: float | None) -> bool:
        return self.dead.wait(60)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[OwnBroker, FakeKafka]:
    monkeypatch.setattr(own_broker, "EmbeddedKafka", FakeKafka)
    made = OwnBroker(tmp_path)
    assert isinstance(made._kafka, FakeKafka)
    return made, made._kafka


def test_it_is_started_again_when_it_dies(broker: tuple[OwnBroker, FakeKafka]) -> None:
    own, kafka = broker

    async def test() -> None:
        await own.start()
        assert own.bootstrap_servers == "127.0.0.1:9092"
        watching = asyncio.create_task(own.watch())
        kafka.dead.set()
        assert await asyncio.to_thread(kafka.is_restarted.wait, 60)
        watching.cancel()
        await own.stop()

    asyncio.run(test())
    assert kafka.steps[:3] == ["start", "started", "restart"]
    assert kafka.steps[-1] == "stop"


def test_told_to_stop_while_it_starts(broker: tuple[OwnBroker, FakeKafka]) -> None:
    """What has come up meanwhile is stopped as well."""
    own, kafka = broker
    kafka.may_start.clear()

    async def test() -> None:
        starting = asyncio.create_task(own.start())
        await until(lambda: kafka.steps)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await own.stop()

    asyncio.run(test())
    assert kafka.steps == ["start", "stop", "started", "stop"]
