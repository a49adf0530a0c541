"""Modes of files and folders, under an umask that gives everything away."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.adapters.private_files import make_private_folder, tighten, touch_private


@pytest.fixture(autouse=True)
def _generous() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_folder_and_its_parents(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_private_folder(there / "a" / "b")
    assert [mode(p) for p in (there, there / "a", there / "a" / "b")] == [0o755, 0o700, 0o700]
    make_private_folder(there)
    assert mode(there) == 0o755  # the operator's, who may share it


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "a" / "b")


def test_a_file(tmp_path: Path) -> None:
    touch_private(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o600
    old = tmp_path / "old"
    old.write_text("kept")
    assert mode(old) == 0o666
    touch_private(old)
    assert (mode(old), old.read_text()) == (0o600, "kept")


def test_tightening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder, link, foreign = (tmp_path / name for name in ("file", "folder", "link", "other"))
    file.touch(0o664)
    folder.mkdir(0o775)
    foreign.touch(0o644)
    link.symlink_to(foreign)
    tighten([file, folder, link, tmp_path / "missing"])
    assert (mode(file), mode(folder), mode(foreign)) == (0o600, 0o700, 0o644)
    monkeypatch.setattr(os, "geteuid", lambda: foreign.stat().st_uid + 1)
    tighten([foreign])
    assert mode(foreign) == 0o644
