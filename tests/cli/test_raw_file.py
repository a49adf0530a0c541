"""`--raw FILE`: the bytes of a body, nothing else, and no file that says nothing."""

from pathlib import Path

import pytest

from bridge.cli.raw_file import RawFile
from bridge.model.errors import ConfigError

BYTES = bytes(range(256))


def test_the_bytes_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"what was there before, and is longer" * 20)
    with RawFile(file) as raw:
        raw.write(BYTES)
        assert not raw.is_stdout
    assert file.read_bytes() == BYTES


def test_a_file_that_was_there_stays_if_nothing_came(tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"before")
    with RawFile(file):
        pass
    assert file.read_bytes() == b"before"


def test_a_new_one_is_gone_if_nothing_came(tmp_path: Path) -> None:
    file = tmp_path / "body"
    with RawFile(file):
        assert file.exists()
    assert not file.exists()


def test_an_empty_body_is_something(tmp_path: Path) -> None:
    with RawFile(tmp_path / "body") as raw:
        raw.write(b"")
    assert (tmp_path / "body").read_bytes() == b""


def test_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with RawFile(Path("-")) as raw:
        assert raw.is_stdout
        raw.write(BYTES)
    assert capfdbinary.readouterr().out == BYTES


@pytest.mark.parametrize("path", ["no/such/folder/body", "."])
def test_a_wrong_path_is_found_before_anything_is_taken(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be written") as caught, RawFile(tmp_path / path):
        raise AssertionError
    assert caught.value.where == "--raw"


def test_a_full_disk_is_said_in_one_line() -> None:
    with pytest.raises(ConfigError, match="No space left"), RawFile(Path("/dev/full")) as raw:
        raw.write(BYTES)
