"""A broker that was killed comes back with every commit that it had confirmed."""

import asyncio
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.folder import BrokerFolder
from bridge.adapters.kafka.recovery import controller_settings, was_killed
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
