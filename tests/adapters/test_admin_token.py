"""The generated token: made once, with its content, for the user of the appliance only."""

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.adapters.admin_token import (
    TOKEN_FILE,
    is_generated,
    make_token,
    read_admin_token,
    token_path,
)
from bridge.config import AdminConfig, Config
from bridge.model.errors import ConfigError


def test_where_it_is(tmp_path: Path) -> None:
    config = Config(data=tmp_path)
    assert token_path(config) == tmp_path / "admin.token"
    assert is_generated(config)
    named = replace(config, admin=AdminConfig(token_file=tmp_path / "mine"))
    assert token_path(named) == tmp_path / "mine"
    assert not is_generated(named)


def test_it_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / TOKEN_FILE
    before = os.umask(0)
    try:
        make_token(path)
    finally:
        os.umask(before)
    token = read_admin_token(Config(data=path.parent))
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    make_token(path)
    assert read_admin_token(Config(data=path.parent)) == token
    assert [p.name for p in path.parent.iterdir()] == [TOKEN_FILE]


def test_a_token_that_others_may_read_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / TOKEN_FILE
    path.write_text("kept")
    path.chmod(0o644)
    make_token(path)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("kept", 0o600)


def test_of_many_that_make_it_all_use_the_same(tmp_path: Path) -> None:
    config = Config(data=tmp_path)

    def make(_: int) -> str:
        make_token(token_path(config))
        return read_admin_token(config)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(64)))) == 1


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "link", refuse)
    make_token(tmp_path / TOKEN_FILE)
    assert len(read_admin_token(Config(data=tmp_path))) >= 32
    assert [p.name for p in tmp_path.iterdir()] == [TOKEN_FILE]


def test_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).mkdir()
    with pytest.raises(ConfigError, match=r"cannot be read .*run the command as the user") as told:
        read_admin_token(Config(data=tmp_path))
    assert len(str(told.value).splitlines()) == 1
    (tmp_path / TOKEN_FILE).rmdir()
    (tmp_path / TOKEN_FILE).touch()
    with pytest.raises(ConfigError, match="holds no token"):
        read_admin_token(Config(data=tmp_path))
