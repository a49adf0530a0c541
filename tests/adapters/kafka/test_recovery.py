"""A broker that was killed comes back with every commit that it had confirmed."""

import asyncio
import struct
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.folder import BrokerFolder
from bridge.adapters.kafka.recovery import (
    batches_in,
    controller_settings,
    fence_dead_broker,
    was_killed,
)
from bridge.adapters.kafka.sink import KafkaShardSink
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.core.ports import Record, Unit
from tests.support.kafka import read_topic

KILLS = 3


def test_a_folder_tells_how_its_broker_ended(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path / "kafka")
    assert not was_killed(folder)  # never used
    (folder.data / "__cluster_metadata-0").mkdir(parents=True)
    assert was_killed(folder)
    (folder.data / ".kafka_cleanshutdown").touch()
    assert not was_killed(folder)


def test_the_controller_runs_without_its_broker() -> None:
    settings = controller_settings(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.bootstrap.servers": "127.0.0.1:2",
            "listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:1",
        }
    )
    assert settings["process.roles"] == "controller"
    assert settings["listeners"] == "CONTROLLER://127.0.0.1:2"
    assert "advertised.listeners" not in settings


@pytest.mark.kafka
@pytest.mark.timeout(180)
def test_killed_right_after_a_commit_it_forgets_nothing(tmp_path: Path) -> None:
    """The commit is decided, its markers are not written yet: they must not get lost."""
    own = OwnTopics("own")
    with EmbeddedKafka(tmp_path / "kafka") as kafka:
        settings = {"bootstrap.servers": kafka.bootstrap_servers}
        ensure_topics(settings, own, 1, ["data"])

        async def commit_and_kill(number: int) -> None:
            sink = KafkaShardSink(settings, own, 0)
            await sink.open()
            value = b"%d" % number
            records = [Record(topic="data", value=value, partition=p) for p in range(4)]
            await sink.publish(Unit(records=records, state={"unit": value}))
            kafka.kill()
            kafka.start()
            snapshot = await sink.open()  # reads to the end: nothing hangs
            assert snapshot.state["unit"] == value
            await sink.close()

        for number in range(KILLS):
            asyncio.run(commit_and_kill(number))
            found = sorted(m.value() or b"" for m in read_topic(kafka.bootstrap_servers, "data"))
            assert found == sorted(b"%d" % n for n in range(number + 1) for _ in range(4))


def batch(length: int) -> bytes:
    return struct.pack(">qi", 0, length) + bytes(length)


def test_only_whole_batches_count(tmp_path: Path) -> None:
    assert batches_in(tmp_path) == 0
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(batch(60) + batch(49))
    assert batches_in(tmp_path) == 2
    log.write_bytes(batch(60) + batch(49) + batch(70)[:-1])  # being written
    assert batches_in(tmp_path) == 2
    (tmp_path / "00000000000000000002.log").write_bytes(batch(70))
    assert batches_in(tmp_path) == 3
    log.write_bytes(batch(60) + bytes(100))  # room for more
    assert batches_in(tmp_path) == 2


def test_the_controller_may_end_when_the_fence_is_in_its_log(tmp_path: Path) -> None:
    """It says so before it writes so."""
    folder = BrokerFolder(tmp_path / "kafka")
    folder.create()
    log = folder.data / "__cluster_metadata-0" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(batch(60))

    class Controller:
        """Says that it fences at the second look; writes something at every one after that."""

        looks = 0

        def poll(self) -> int | None:
            self.looks += 1
            if self.looks == 2:
                folder.log.write_text("INFO Fencing broker 1 at epoch 7 because …")
            if self.looks > 5:
                log.write_bytes(log.read_bytes() + batch(60))
            return None

    controller = Controller()
    settings = {
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": "127.0.0.1:2",
        "listeners": "CONTROLLER://127.0.0.1:2",
    }
    fence_dead_broker(folder, settings, lambda: controller)
    assert controller.looks == 7
    assert batches_in(log.parent) == 3
