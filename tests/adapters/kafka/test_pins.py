"""A folder of jars and the list of their hashes."""

import hashlib
import os
from pathlib import Path

import pytest

from bridge.adapters.kafka.pins import LISTING, STAMP, check_jars, read_pins
from bridge.model.errors import BrokerFailed

PINS = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a-1.jar", "b-2.jar")}


@pytest.fixture
def libs(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle" / "libs"
    folder.mkdir(parents=True)
    for name in PINS:
        (folder / name).write_bytes(name.encode())
    return folder


def refusal(libs: Path, pins: dict[str, str] = PINS) -> str:
    with pytest.raises(BrokerFailed) as caught:
        check_jars(libs, pins, "what to do")
    text = str(caught.value)
    assert text.endswith("; what to do")
    assert "\n" not in text
    return text


def test_the_list_is_one_that_sha256sum_reads() -> None:
    for line in LISTING.read_text(encoding="ascii").splitlines():
        digest, path = line.split("  ")
        assert len(bytes.fromhex(digest)) == 32
        assert path.count("/") == 1
        assert path.endswith(".jar")


def test_each_bundle_has_its_own_part() -> None:
    assert "kafka-clients-4.3.1.jar" in read_pins("kafka-4.3.1")
    assert "kafka-clients-3.9.0.jar" in read_pins("spark-kafka-4.0.0")
    assert read_pins("kafka-4.3") == {}


def test_the_known_jars_are_taken(libs: Path) -> None:
    check_jars(libs, PINS, "")
    assert (libs.parent / STAMP).exists()


def test_another_jar_of_the_same_name(libs: Path) -> None:
    (libs / "b-2.jar").write_bytes(b"evil")
    found = hashlib.sha256(b"evil").hexdigest()
    assert f"b-2.jar has SHA-256 {found}, expected {PINS['b-2.jar']}" in refusal(libs)
    assert not (libs.parent / STAMP).exists()


def test_a_jar_more_and_a_jar_less(libs: Path) -> None:
    (libs / "c.jar").touch()
    assert "c.jar is not in the list of known jars" in refusal(libs)
    (libs / "c.jar").unlink()
    (libs / "a-1.jar").unlink()
    assert "a-1.jar is missing" in refusal(libs)


def test_hashed_once(libs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_jars(libs, PINS, "")
    monkeypatch.delattr(hashlib, "file_digest")  # a second time would raise
    check_jars(libs, PINS, "")


def test_after_the_stamp_a_change_is_still_seen(libs: Path) -> None:
    check_jars(libs, PINS, "")
    (libs / "a-1.jar").write_bytes(b"longer than before")
    assert "a-1.jar has SHA-256" in refusal(libs)
    (libs / "a-1.jar").write_bytes(b"a-1.jaR")  # as long as before
    os.utime(libs / "a-1.jar", (1, 1))
    assert "a-1.jar has SHA-256" in refusal(libs)
    (libs / "a-1.jar").write_bytes(b"a-1.jar")
    check_jars(libs, PINS, "")


def test_another_list_is_another_check(libs: Path) -> None:
    check_jars(libs, PINS, "")
    assert "a-1.jar has SHA-256" in refusal(libs, PINS | {"a-1.jar": "0" * 64})


def test_a_stamp_that_cannot_be_read_counts_as_none(libs: Path) -> None:
    (libs.parent / STAMP).write_bytes(b"{")
    check_jars(libs, PINS, "")
    assert (libs.parent / STAMP).stat().st_size > 2


def test_a_stamp_that_cannot_be_written_is_done_without(libs: Path) -> None:
    """As in an image: root is not stopped by modes, a folder in its place stops everybody."""
    (libs.parent / STAMP / "x").mkdir(parents=True)
    check_jars(libs, PINS, "")
    assert sorted(entry.name for entry in libs.parent.iterdir()) == [STAMP, "libs"]
