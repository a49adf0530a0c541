"""FILE.partial: on disk before anything is removed, and good for a second try."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge.adapters.exports.journal import Format, Journal, format_of
from bridge.adapters.exports.lines import data_in, line_of
from bridge.adapters.exports.parquet import read_parquet
from bridge.core.message_data import MessageData, data_of
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from tests.core.messages import SENDER, plain

QUEUE = "private$\\orders"


def rows(*ordinals: int) -> list[MessageData]:
    return [data_of(plain(ordinal, body=b"m%d" % ordinal), QUEUE) for ordinal in ordinals]


def opened(out: Path, *, resume: bool = False) -> Journal:
    return Journal(out, format_of(out, None), resume=resume)


def read(out: Path) -> list[MessageData]:
    if out.suffix == ".parquet":
        return list(read_parquet(out))
    return [data_in(line) for line in out.read_bytes().splitlines()]


@pytest.fixture(params=["o.jsonl", "o.parquet"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_from_begin_to_end(out: Path) -> None:
    with opened(out) as journal:
        journal.add(rows(1, 2))
        journal.add(rows(3))
        assert not out.exists()  # whole or not at all
        journal.finish()
        assert journal.count == 3
    assert read(out) == rows(1, 2, 3)
    assert list(out.parent.iterdir()) == [out]


def test_nothing_to_export(out: Path) -> None:
    with opened(out) as journal:
        journal.finish()
    assert read(out) == []


def test_it_is_on_disk_when_add_returns(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    with opened(out) as journal:
        sync = os.fsync

        def spy(number: int) -> None:
            synced.append(journal.path.read_bytes())
            sync(number)

        monkeypatch.setattr(os, "fsync", spy)
        journal.add(rows(1))
    assert synced == [line_of(rows(1)[0])]


def test_an_interrupted_one_goes_on(out: Path) -> None:
    with opened(out) as journal:
        journal.add(rows(1, 2))
    with opened(out, resume=True) as journal:
        assert journal.count == 2
        assert journal.last == rows(2)[0]
        assert journal.keys() == {(SENDER, 1), (SENDER, 2)}
        assert isinstance(next(iter(journal.keys()))[0], Guid)
        journal.add(rows(3))
        journal.finish()
    assert read(out) == rows(1, 2, 3)


def test_a_last_line_that_a_crash_has_cut(out: Path) -> None:
    with opened(out) as journal:
        journal.add(rows(1, 2))
    content = journal.path.read_bytes()
    for cut in range(1, len(line_of(rows(2)[0])) + 1):
        journal.path.write_bytes(content[:-cut])
        with opened(out, resume=True) as again:
            assert again.count == 1
            assert again.path.read_bytes() == line_of(rows(1)[0])


def test_without_resume_it_is_not_touched(out: Path) -> None:
    with opened(out) as journal:
        journal.add(rows(1))
    with pytest.raises(ConfigError, match="--resume"), opened(out):
        pass
    assert journal.path.read_bytes() == line_of(rows(1)[0])


def test_a_file_that_is_there_is_not_touched(out: Path) -> None:
    out.write_text("mine")
    with pytest.raises(ConfigError, match="is there"), opened(out):
        pass
    assert out.read_text() == "mine"
    assert list(out.parent.iterdir()) == [out]


def test_resume_of_what_is_whole(out: Path) -> None:
    with opened(out) as journal:
        journal.add(rows(1))
        journal.finish()
    journal.path.write_bytes(line_of(rows(1)[0]))  # a crash came before it was removed
    with opened(out, resume=True) as journal:
        assert journal.is_complete
    assert list(out.parent.iterdir()) == [out]
    assert read(out) == rows(1)


def test_two_at_once(out: Path) -> None:
    with opened(out) as journal:
        journal.add(rows(1))
        with pytest.raises(ConfigError, match="another export"), opened(out, resume=True):
            pass
        journal.add(rows(2))
        journal.finish()
    assert read(out) == rows(1, 2)


def test_one_that_found_nothing_leaves_nothing(out: Path) -> None:
    with pytest.raises(KeyError), opened(out):
        raise KeyError
    assert list(out.parent.iterdir()) == []


def test_a_line_that_is_no_message(out: Path) -> None:
    partial = out.with_name(out.name + ".partial")
    partial.write_bytes(line_of(rows(1)[0]) + b"nonsense\n" + line_of(rows(2)[0]))
    with pytest.raises(ConfigError, match=r"partial:2: it is not JSON"), opened(out, resume=True):
        pass
    assert partial.exists()


def test_where_nobody_can_write(tmp_path: Path) -> None:
    for out in (tmp_path / "no" / "o.jsonl", Path("/proc/o.jsonl")):
        with pytest.raises(ConfigError, match="cannot be written"), opened(out):
            pass


def test_a_disk_that_is_full(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with opened(out) as journal:
        journal.add(rows(1))
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ConfigError, match="No space left"):
            journal.add(rows(2))
        assert journal.count == 1
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("name", "wanted", "found"),
    [
        ("a.jsonl", None, Format.JSONL),
        ("a.NDJSON", None, Format.JSONL),
        ("a.parquet", None, Format.PARQUET),
        ("a.txt", Format.JSONL, Format.JSONL),
        ("a.jsonl", Format.PARQUET, Format.PARQUET),
    ],
)
def test_formats(name: str, wanted: Format | None, found: Format) -> None:
    assert format_of(Path(name), wanted) is found


def test_no_format() -> None:
    with pytest.raises(ConfigError, match=r"\.jsonl or \.parquet"):
        format_of(Path("a.csv"), None)
