"""Killed with -9, driver and Python workers, and run again: exactly once."""

import random
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.spark.backfill.host import Host
from tests.spark.backfill.killing import Kill, Scene, rounds


@pytest.mark.kafka
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(["driver"], id="driver"),
        pytest.param(["driver", "worker"], id="both", marks=pytest.mark.long),
    ],
)
def test_exactly_once_whatever_is_killed(
    victims: list[str], kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSMQ_BRIDGE_SPARK_MEMORY", "512m")
    random.seed(tmp_path.name)
    with Host(tmp_path / "old", kafka.bootstrap_servers, 500) as host:
        scene = Scene(tmp_path, kafka, host)
        kills = [Kill(victim, "writing") for victim in victims]
        assert rounds(scene, kills, "--rate", "60") == kills
        assert scene.check() == "orders 200, plain 150, small 50, late 50, orders2 50"
