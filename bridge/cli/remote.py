"""`--host`: which MSMQ host, and as whom. A password is never on the command line."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Struct

from bridge.config import Address
from bridge.model.errors import ConfigError
from bridge.protocol.rpc.calls import AuthLevel

if TYPE_CHECKING:  # a quarter second, which only those need to wait that have a --host
    from bridge.adapters.net.rpc_auth import Credentials, Package
    from bridge.adapters.reader.place import Place
    from bridge.adapters.reader.queues import RemoteQueues

PASSWORD: Final = "MSMQ_BRIDGE_PASSWORD"  # noqa: S105 (the name of a variable)
_LONGEST: Final = 1024


class Level(StrEnum):
    NONE = "none"
    CONNECT = "connect"
    CALL = "call"
    PACKET = "packet"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"


class Auth(StrEnum):
    NTLM = "ntlm"
    NEGOTIATE = "negotiate"
    KERBEROS = "kerberos"


HostOption = Annotated[
    str | None,
    typer.Option(
        "--host",
        help="HOST or HOST:PORT of any MSMQ host, by remote read; without a port its endpoint "
        "mapper is asked.",
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", help=r"DOMAIN\name or name, who may read there; with --host."),
]
PasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        help=f"Its first line is the password; else ${PASSWORD}, or it is asked for.",
    ),
]
LevelOption = Annotated[
    Level | None,
    typer.Option(
        "--level",
        show_default=Level.PRIVACY.value,
        help="RPC protection. Windows takes nothing less; none needs no user.",
    ),
]
AuthOption = Annotated[
    Auth | None,
    typer.Option("--auth", show_default=Auth.NTLM.value, help="How to prove who one is."),
]


ExclusiveOption = Annotated[
    bool,
    typer.Option(
        "--exclusive",
        help="Open the queue for this reader alone; fails while another reader has it open. With "
        "--host.",
    ),
]


class Remote(Struct, frozen=True):
    """The options as they were given."""

    host: str
    user: str | None = None
    password_file: Path | None = None
    level: Level | None = None
    auth: Auth | None = None
    exclusive: bool = False


def remote_of(
    host: str | None,
    user: str | None,
    password_file: Path | None,
    level: Level | None,
    auth: Auth | None,
    config: Path | None,
    *,
    exclusive: bool = False,
) -> Remote | None:
    """None: an appliance of ours, by --config. ConfigError if the options do not go together."""
    if host is not None:
        if config is not None:
            raise ConfigError("does not go with --host", where="--config", mend="keep one")
        return Remote(host, user, password_file, level, auth, exclusive)
    given: dict[str, object] = {
        "--user": user,
        "--password-file": password_file,
        "--level": level,
        "--auth": auth,
    }
    given["--exclusive"] = exclusive or None
    for option, value in given.items():
        if value is not None:
            raise ConfigError("goes with --host", where=option, mend="add that one")
    return None


@contextmanager
def open_remote(remote: Remote) -> Iterator[RemoteQueues]:
    from bridge.adapters.reader.queues import RemoteQueues
    from bridge.adapters.reader.sync_reader import RemoteReader

    place = place_of(remote)
    with RemoteReader(place) as reader:
        yield RemoteQueues(reader, place.host)


def place_of(remote: Remote) -> Place:
    from bridge.adapters.reader.place import Place

    host, port = _address(remote.host)
    credentials = _credentials(remote, host)
    return Place(host=host, port=port, credentials=credentials, exclusive=remote.exclusive)


def _address(text: str) -> tuple[str, int | None]:
    try:
        address = Address.parse(text)
    except ValueError as error:
        what, mend = f"{text!r} is not an address ({error})", "write HOST or HOST:PORT"
        raise ConfigError(what, where="--host", mend=mend) from error
    has_port = text.rpartition(":")[2].isdigit() and not text.endswith("]")
    return address.host, address.port if has_port and ":" in text else None


def _credentials(remote: Remote, host: str) -> Credentials | None:
    level = AuthLevel[(remote.level or Level.PRIVACY).name]
    if level is AuthLevel.NONE:
        if remote.user is not None:
            raise ConfigError("is nobody's with --level none", where="--user", mend="keep one")
        return None
    if not remote.user:
        mend = r"give DOMAIN\name, or --level none if the host lets anybody read"
        raise ConfigError("nobody to log on as", where="--user", mend=mend)
    from bridge.adapters.net.rpc_auth import Credentials

    package: Package = (remote.auth or Auth.NTLM).value
    return Credentials(remote.user, _password(remote, host), package, level)


def _password(remote: Remote, host: str) -> str:
    if remote.password_file is not None:
        return _first_line(remote.password_file)
    if PASSWORD in os.environ:
        return os.environ[PASSWORD]
    if sys.stdin is None or not sys.stdin.isatty():
        mend = f"give --password-file, or set {PASSWORD}"
        raise ConfigError("no password, and here is nobody to ask", where="--user", mend=mend)
    return getpass.getpass(f"Password of {remote.user} on {host}: ", stream=sys.stderr)


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            line = file.readline(_LONGEST).rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        what = f"{str(path)!r} cannot be read ({why})"
        raise ConfigError(what, where="--password-file", mend="name another file") from error
    if not line:
        mend = "write the password into its first line"
        raise ConfigError(f"{str(path)!r} is empty", where="--password-file", mend=mend)
    return line
