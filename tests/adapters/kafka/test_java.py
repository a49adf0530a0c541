from pathlib import Path

import pytest

from bridge.adapters.kafka.java import find_java
from bridge.model.errors import BrokerFailed


@pytest.fixture(autouse=True)
def _no_java_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)


def fake_java(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return java


def test_the_java_of_this_machine_is_found() -> None:
    assert find_java().name == "java"


def test_java_home_wins_over_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path / "jdk" / "bin", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == java


@pytest.mark.parametrize(("version", "major"), [("11.0.22", 11), ("1.8.0_392", 8), ("16", 16)])
def test_an_old_java_is_told(
    version: str, major: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerFailed) as caught:
        find_java()
    assert str(caught.value) == (
        f"{java} is Java {major}, too old for the embedded Kafka; "
        "install Java 17 or later, or point JAVA_HOME at one"
    )


def test_no_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerFailed, match=r"^no java on PATH.*; install Java 17 or later"):
        find_java()


def test_an_empty_java_home_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BrokerFailed, match=r"which has no bin/java"):
        find_java()


def test_a_java_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, "17")
    java.write_text("#!/bin/sh\nexit 3\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerFailed, match="tells no version"):
        find_java()
