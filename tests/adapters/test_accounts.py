"""users.yaml: who is in it, what is wrong with it, and what happens when it changes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bridge.adapters.accounts import UserFile, load_users
from bridge.adapters.masking import SECRETS
from bridge.model.errors import ConfigError

SECRET = bytes.fromhex("878d8014606cda29677a44efa1353fc7")  # NT hash of "secret"
PASSWORD = bytes.fromhex("a4f49c406510bdcab6824ee7c30fd852")  # of "Password", MS-NLMP 4.2.2.1.2

GOOD = """\
ann: {password: secret}
Dom\\Bob: {nt_hash: A4F49C406510BDCAB6824EE7C30FD852}
DOM\\ann: {password: Password}
HOST$: {password: "12345678"}
"""


def users(folder: Path, text: str) -> Path:
    path = folder / "users.yaml"
    path.write_text(text)
    return path


def test_names_and_domains(tmp_path: Path) -> None:
    accounts = UserFile(users(tmp_path, GOOD))
    assert SECRETS.hide(f"{SECRET.hex()} 12345678") == "*** ***"  # they get into no log
    assert accounts.nt_hash("ANN", "") == SECRET
    assert accounts.nt_hash("ann", "dom") == PASSWORD
    assert accounts.nt_hash("bob", "DOM") == PASSWORD
    assert accounts.nt_hash("bob", "other") is None
    assert accounts.nt_hash("bob", "") is None
    assert accounts.nt_hash("guest", "") is None
    assert accounts.nt_hash("", "") is None
    assert accounts.nt_hash("dom\\bob", "") is None
    assert accounts.nt_hash("host$", "") is not None
    assert accounts.nt_hash("host$", "DOM") is None


@pytest.mark.parametrize(
    ("domain", "is_local"),
    [
        ("", True),
        (".", True),
        ("WorkGroup", True),
        ("bridge01", True),
        ("BRIDGE01.Example.COM", True),
        ("averylongmachin", True),  # as NetBIOS cuts it
        ("averylongmachinename", True),
        ("192.0.2.7", True),
        ("192", False),
        ("other", False),
        ("example", False),
        ("CLIENT01", False),  # the client's own computer: write CLIENT01\\ann
        ("dom", False),
    ],
)
def test_a_plain_name_is_a_local_account(tmp_path: Path, domain: str, is_local: bool) -> None:
    """Whoever knows a local password must not get in under the name of a domain."""
    names = ["BRIDGE01", "bridge01.example.com", "AVERYLONGMACHINENAME", "192.0.2.7"]
    accounts = UserFile(users(tmp_path, "ann: {password: secret}"), names)
    assert accounts.nt_hash("ann", domain) == (SECRET if is_local else None)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("ann: {}", "1:", "either a password or an nt_hash"),
        ("ann: {password: a, nt_hash: b}", "1:", "either a password or an nt_hash"),
        ("ann: {nt_hash: 1234}", "1:", "nt_hash"),
        ("ann: {nt_hash: '1234'}", "1:", "32 hex digits"),
        ("ann: {pasword: a}", "1:", "did you mean 'password'"),
        ("ann: {password: 1234}", "1:", "put it in quotes"),
        ("ann: secret", "1:", "must have keys"),
        ("- ann", "1:", "must have keys"),
        ("a: {password: a}\nA: {password: b}", "2:", "twice"),
        ("D\\: {password: a}", "1:", "no user name"),
        ("\\ann: {password: a}", "1:", "no user name"),
        ("a\\b\\c: {password: a}", "1:", "no user name"),
        ("ann: {password: [", "", ""),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        UserFile(users(tmp_path, text))
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    assert f"users.yaml:{place}" in line
    assert words in line


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"users\.yaml"):
        load_users(tmp_path / "users.yaml")


def test_an_error_does_not_show_a_password(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        UserFile(users(tmp_path, "ann: {password: hush, nt_hash: hush}"))
    assert "hush" not in str(caught.value)


def test_a_change_counts_at_the_next_logon(tmp_path: Path) -> None:
    accounts = UserFile(path := users(tmp_path, GOOD))
    path.write_text("carl: {password: secret}")
    assert accounts.nt_hash("ann", "") is None
    assert accounts.nt_hash("carl", "") == SECRET


def test_a_broken_change_changes_nothing_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    accounts = UserFile(path := users(tmp_path, GOOD))
    path.write_text("ann: {}")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert accounts.nt_hash("ann", "") == SECRET
    assert len(caplog.records) == 1
    path.unlink()
    assert accounts.nt_hash("ann", "") == SECRET
    path.write_text("ann: {password: Password}")
    assert accounts.nt_hash("ann", "") == PASSWORD


@pytest.mark.parametrize(
    "text", ["ann: {password: 87654321}", "ann: 87654321", "ann: {password: a, x: ['87654321']}"]
)
def test_an_error_that_quotes_a_secret_is_masked(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_users(users(tmp_path, text))
    assert "87654321" not in SECRETS.hide(str(caught.value))
