"""Killed with -9, driver, JVM and Python workers, and run again: exactly once."""

import random
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.spark.backfill.killing import Scene, rounds


@pytest.mark.kafka
@pytest.mark.timeout(2400)
def test_exactly_once_whatever_is_killed(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSMQ_BRIDGE_SPARK_MEMORY", "512m")
    random.seed(tmp_path.name)
    scene = Scene(tmp_path, kafka, 3000)
    kills = ["worker", "driver", "jvm"]
    assert rounds(scene, kills, "--rate", "300") == kills
    scene.check()
