"""Ivy is played by a small `java` here; once the real one is asked, without a network."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
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
for jar in @JARS@; do
  echo "	[SUCCESSFUL ] $jar"
  touch "$libs/$jar.jar"
done
"""
PLAYED = ("kafka_2.13-4.3.1", "kafka-clients-4.3.1", "scala-library-2.13.18", "log4j-api-2.25.4")
FAKE_IVY = FAKE_IVY.replace("@JARS@", " ".join(PLAYED))
BROKEN_IVY = FAKE_IVY.replace("touch", "echo skipped:")


# `python -m bridge.adapters.kafka.jars` with a list that knows the empty jars.
PINNED = f"""
import hashlib, sys
from bridge.adapters.kafka import jars
pins = dict.fromkeys((f"{{n}}.jar" for n in {PLAYED!r}), hashlib.sha256(b"").hexdigest())
jars._BUNDLE = jars._BUNDLE._replace(pins=pins)
sys.exit(jars.main())
"""
NOTHING = hashlib.sha256(b"").hexdigest()  # what the played Ivy makes


def pin(names: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As if these, empty, were what `jars.sha256` lists."""
    pins = {f"{name}.jar": NOTHING for name in names}
    monkeypatch.setattr(jars, "_BUNDLE", jars._BUNDLE._replace(pins=pins))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    pin(PLAYED, monkeypatch)
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
    command = [sys.executable, "-c", PINNED]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in both]
    assert answers == [f"{cache / 'kafka-4.3.1' / 'libs'}\n"] * 2
    assert runs(tmp_path) == 1


def test_another_jar_than_the_known_one_is_not_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry, a mirror or a proxy that hands out something else."""
    play_ivy(FAKE_IVY.replace("touch", "echo evil >"), tmp_path, monkeypatch)
    evil = hashlib.sha256(b"evil\n").hexdigest()
    with pytest.raises(BrokerFailed) as caught:
        kafka_jars()
    assert f"kafka_2.13-4.3.1.jar has SHA-256 {evil}, expected {NOTHING}; the " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in cache.iterdir()] == ["kafka-4.3.1.lock"]


def test_one_jar_more_is_not_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_ivy(FAKE_IVY, tmp_path, monkeypatch)
    pin(PLAYED[:-1], monkeypatch)
    with pytest.raises(BrokerFailed, match=r"log4j-api.*is not in the list of known jars"):
        kafka_jars()


def test_a_cache_of_before_is_checked_before_it_is_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libs = cache / "kafka-4.3.1" / "libs"
    libs.mkdir(parents=True)
    for name in PLAYED:
        (libs / f"{name}.jar").touch()
    assert kafka_jars() == libs
    (libs / "log4j-api-2.25.4.jar").write_bytes(b"evil")
    with pytest.raises(
        BrokerFailed, match=r"log4j-api.*; delete .*kafka-4\.3\.1 to fetch it again"
    ):
        kafka_jars()
    assert runs(tmp_path) == 0


def test_the_real_list_is_of_the_real_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of this machine, with its hashes; `make setup` has filled it."""
    if os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME is set: there is no cache")
    pins = jars._BUNDLE.pins
    assert len(pins) == 46
    libs = kafka_jars()
    assert {jar.name for jar in libs.glob("*.jar")} == set(pins)
    for name, digest in pins.items():
        assert hashlib.sha256((libs / name).read_bytes()).hexdigest() == digest


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


def test_no_network_is_told_in_one_line(tmp_path: Path) -> None:
    # Port 1 of loopback refuses: the real Ivy cannot reach anything. A process of its own, so that
    # what it writes is all that is read.
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    surroundings = {name: value for name, value in os.environ.items() if name != "KAFKA_HOME"}
    ended = subprocess.run(
        [sys.executable, "-m", "bridge.adapters.kafka.jars"],
        env=surroundings | {"XDG_CACHE_HOME": str(tmp_path), "JAVA_TOOL_OPTIONS": proxy},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    first, error = ended.stderr.splitlines()
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
