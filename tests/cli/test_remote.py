"""`--host`: where, and as whom. A password is never on the command line."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import pytest

from bridge.cli.app import main
from bridge.cli.remote import PASSWORD, Auth, Level, Remote, place_of, remote_of
from bridge.model.errors import ConfigError
from bridge.protocol.rpc.calls import AuthLevel


class Terminal:
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("from the file\nnot this\n")
    return path


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("msmq01", "msmq01", None),
        ("msmq01:2103", "msmq01", 2103),
        ("10.0.0.1", "10.0.0.1", None),
        ("10.0.0.1:99", "10.0.0.1", 99),
        ("[::1]", "::1", None),
        ("[::1]:2103", "::1", 2103),
    ],
)
def test_where(text: str, host: str, port: int | None) -> None:
    place = place_of(Remote(text, level=Level.NONE))
    assert (place.host, place.port) == (host, port)


@pytest.mark.parametrize("text", ["", ":1", "a:b", "a:99999", "http://a", "a b", "a:0"])
def test_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="--host"):
        place_of(Remote(text, level=Level.NONE))


def test_the_defaults_are_what_windows_wants(secret: Path) -> None:  # RR-43
    place = place_of(Remote("h", "CORP\\ann", secret))
    assert place.credentials is not None
    assert place.credentials.user == "CORP\\ann"
    assert place.credentials.level is AuthLevel.PRIVACY
    assert place.credentials.package == "ntlm"


@pytest.mark.parametrize("level", list(Level)[1:])
def test_levels_and_packages(secret: Path, level: Level) -> None:
    place = place_of(Remote("h", "ann", secret, level, Auth.NEGOTIATE))
    assert place.credentials is not None
    assert place.credentials.level.name == level.name
    assert place.credentials.package == "negotiate"


def test_nobody(secret: Path) -> None:
    assert place_of(Remote("h", level=Level.NONE)).credentials is None
    with pytest.raises(ConfigError, match="--level none"):
        place_of(Remote("h"))
    with pytest.raises(ConfigError, match="--user"):
        place_of(Remote("h", "ann", secret, Level.NONE))


def password(given: Remote) -> str:
    credentials = place_of(given).credentials
    assert credentials is not None
    return credentials.password


def test_password_from_a_file(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "from the environment")
    assert password(Remote("h", "ann", secret)) == "from the file"
    secret.write_bytes(b"windows\r\n")
    assert password(Remote("h", "ann", secret)) == "windows"


def test_password_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "from the environment")
    assert password(Remote("h", "ann")) == "from the environment"


def test_password_by_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, object]] = []

    def prompt(text: str, stream: object) -> str:
        asked.append((text, stream))
        return "typed"

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", prompt)
    assert password(Remote("h", "ann")) == "typed"
    assert asked == [("Password of ann on h: ", sys.stderr)]  # stdout is for the answer


def test_nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match=PASSWORD):
        password(Remote("h", "ann"))


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\n"])
def test_a_password_file_that_is_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="--password-file"):
        password(Remote("h", "ann", path))


def test_one_place(secret: Path) -> None:
    assert remote_of(None, None, None, None, None, Path("bridge.yaml")) is None
    assert remote_of("h", "ann", None, None, None, None) == Remote("h", "ann")
    with pytest.raises(ConfigError, match="--config"):
        remote_of("h", None, None, None, None, Path("bridge.yaml"))
    given: list[tuple[str | None, Path | None, Level | None, Auth | None]] = [
        ("ann", None, None, None),
        (None, secret, None, None),
        (None, None, Level.NONE, None),
        (None, None, None, Auth.NTLM),
    ]
    for user, file, level, auth in given:
        with pytest.raises(ConfigError, match="goes with --host"):
            remote_of(None, user, file, level, auth, None)
    with pytest.raises(ConfigError, match="goes with --host"):
        remote_of(None, None, None, None, None, None, exclusive=True)


def test_exclusive(secret: Path) -> None:
    wanted = remote_of("h", "ann", secret, None, None, None, exclusive=True)
    assert wanted is not None
    assert place_of(wanted).exclusive
    assert place_of(wanted).client.share == 1
    assert not place_of(Remote("h", "ann", secret)).exclusive


def test_no_option_takes_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["queue", "peek", "q"], ["receive", "--queue", "q"], ["queue", "list"]):
        assert main([*command, "--host", "h", "--user", "ann", "--password", "secret"]) == 2
        assert "secret" not in capsys.readouterr().err.replace("--password", "")
