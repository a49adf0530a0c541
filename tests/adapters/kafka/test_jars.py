"""Ivy is played by a small `java` here; once the real one is asked, without a network."""

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.adapters.kafka import jars
from bridge.adapters.kafka.jars import cache_folder, kafka_jars, reason_in
from bridge.model.errors import BrokerFailed

# Says it is Java 17; run as Ivy, counts itself and makes the jars that it is asked to retrieve.
FAKE_IVY = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo run >> "$FAKE_RUNS"
while [ $# -gt 0 ]; do
  case "$1" in -retrieve) libs=$(dirname "$2");; -cache) mkdir -p "$2";; esac
  shift
done
mkdir -p "$libs"
for jar in kafka_2.13-4.3.1 kafka-clients-4.3.1 scala-library-2.13.18 log4j-api-2.25.4; do
  echo "	[SUCCESSFUL ] $jar"
  touch "$libs/$jar.jar"
done
"""
BROKEN_IVY = FAKE_IVY.replace("touch", "echo skipped:")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    return tmp_path / "cache" / "msmq-bridge"


def play_ivy(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(script)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder / "jdk"))


def runs(folder: Path) -> int:
    record = folder / "runs"
    return len(record.read_text().splitlines()) if record.exists() else 0


def test_jars_are_fetched_once(
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    play_ivy(FAKE_IVY, tmp_path, monkeypatch)
    assert kafka_jars() == cache / "kafka-4.3.1" / "libs"
    assert (kafka_jars() / "kafka_2.13-4.3.1.jar").exists()
    assert runs(tmp_path) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"getting Apache Kafka 4.3.1 (44 MB, once) into {cache / 'kafka-4.3.1'}\n"
    assert not (cache / "kafka-4.3.1" / "work").exists()


def test_two_processes_at_once_fetch_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(FAKE_IVY, tmp_path, monkeypatch)
    command = [sys.executable, "-m", "bridge.adapters.kafka.jars"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in both]
    assert answers == [f"{cache / 'kafka-4.3.1' / 'libs'}\n"] * 2
    assert runs(tmp_path) == 1


def test_a_damaged_cache_is_filled_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(FAKE_IVY, tmp_path, monkeypatch)
    (cache / "kafka-4.3.1" / "libs").mkdir(parents=True)
    (cache / "kafka-4.3.1.part" / "libs").mkdir(parents=True)  # a run that was killed
    assert (kafka_jars() / "kafka_2.13-4.3.1.jar").exists()


def test_a_resolution_without_the_kafka_jar_is_refused(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(BROKEN_IVY, tmp_path, monkeypatch)
    with pytest.raises(BrokerFailed, match=r"cannot get Apache Kafka 4\.3\.1: skipped"):
        kafka_jars()
    assert [entry.name for entry in cache.iterdir()] == ["kafka-4.3.1.lock"]


def test_no_network_is_told_in_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Port 1 of loopback refuses: the real Ivy cannot reach anything.
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", proxy)
    assert jars.main() == 1
    first, error = capfd.readouterr().err.splitlines()
    assert first.startswith("getting Apache Kafka")
    assert error.startswith("cannot get Apache Kafka 4.3.1: Server access error")
    assert "Connection refused" in error
    assert error.endswith("set KAFKA_HOME to an unpacked Apache Kafka 4")


def test_kafka_home_wins(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home" / "libs").mkdir(parents=True)
    (tmp_path / "home" / "libs" / "kafka_2.13-4.0.0.jar").touch()
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path / "home"))
    assert kafka_jars() == tmp_path / "home" / "libs"
    assert not cache.exists()


def test_a_wrong_kafka_home_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(BrokerFailed, match=r"has no libs/kafka_2\.13-\*\.jar; point it at"):
        kafka_jars()


def test_a_cache_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BrokerFailed, match=r"^cannot keep Kafka's jars in .*Not a directory"):
        kafka_jars()


def test_a_relative_cache_home_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache_folder() == Path.home() / ".cache" / "msmq-bridge" / "kafka-4.3.1"


def test_the_reason_is_the_last_line_that_says_something() -> None:
    output = ["\t\t:: org#kafka;1: not found", "\t\t::::::::::", "", ":: USE VERBOSE OR DEBUG"]
    assert reason_in(output) == "org#kafka;1: not found"
    assert reason_in([]) == "Ivy said nothing"
