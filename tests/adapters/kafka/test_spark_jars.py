"""Ivy is played by a small `java` here, as in test_jars."""

from pathlib import Path

import pytest

from bridge.adapters.kafka import spark_jars
from bridge.adapters.kafka.pins import read_pins
from bridge.adapters.kafka.spark_jars import CONNECTOR_VERSION, FOLDER_VARIABLE, connector_jars
from bridge.model.errors import BrokerFailed
from tests.adapters.kafka.test_jars import FAKE_IVY, NOTHING, cache, play_ivy, runs

__all__ = ["cache"]  # a fixture

JARS = [
    f"spark-sql-kafka-0-10_2.13-{CONNECTOR_VERSION}",
    f"spark-token-provider-kafka-0-10_2.13-{CONNECTOR_VERSION}",
    "kafka-clients-3.9.0",
    "commons-pool2-2.12.0",
]
LIST = next(line for line in FAKE_IVY.splitlines() if line.startswith("for jar in"))
REAL = read_pins(f"spark-kafka-{CONNECTOR_VERSION}")
IVY = FAKE_IVY.replace(LIST, f"for jar in {' '.join(JARS)}; do")


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


@pytest.fixture
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    pins = {f"{name}.jar": NOTHING for name in JARS}
    monkeypatch.setattr(spark_jars, "read_pins", lambda folder: pins)


@pytest.mark.usefixtures("_known")
def test_fetched_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_ivy(IVY, tmp_path, monkeypatch)
    found = connector_jars()
    assert sorted(jar.stem for jar in found) == sorted(JARS)
    assert found[0].parent == cache / f"spark-kafka-{CONNECTOR_VERSION}" / "libs"
    assert connector_jars() == found
    assert runs(tmp_path) == 1


@pytest.mark.usefixtures("_known")
def test_another_version_is_another_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(IVY, tmp_path, monkeypatch)
    assert connector_jars("4.0.1")[0].parent == cache / "spark-kafka-4.0.1" / "libs"


def test_a_version_without_known_hashes_is_not_fetched(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(IVY, tmp_path, monkeypatch)
    with pytest.raises(BrokerFailed, match=f"no known hashes.*set {FOLDER_VARIABLE}"):
        connector_jars("4.0.1")
    assert runs(tmp_path) == 0


def test_what_is_fetched_is_what_is_listed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(IVY, tmp_path, monkeypatch)  # empty jars
    with pytest.raises(BrokerFailed, match=r"has SHA-256 .*, expected "):
        connector_jars()
    assert not (cache / f"spark-kafka-{CONNECTOR_VERSION}").exists()
    assert {f"{name}.jar" for name in JARS} < set(REAL)


def test_what_does_not_come(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_ivy(IVY.replace("touch", "echo skipped:"), tmp_path, monkeypatch)
    with pytest.raises(BrokerFailed, match=f"Spark's Kafka connector .*{FOLDER_VARIABLE}"):
        connector_jars()


def test_a_folder_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(BrokerFailed, match="has no spark-sql-kafka"):
        connector_jars()
    for name in JARS:
        (tmp_path / f"{name}.jar").touch()
    assert sorted(jar.stem for jar in connector_jars()) == sorted(JARS)
