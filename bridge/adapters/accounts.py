"""Who may log on with NTLM: `users.yaml`, read again when it changes.

    ann: {password: secret}
    DOMAIN\\bob: {nt_hash: 8846f7eaee8fb117ad06bdd830b7586c}

A name with a domain is good for that domain only. A plain name is a local account: good without a
domain, for `.`, `WORKGROUP`, and the names of this appliance as a domain. Any other domain, also
the name of a client's own computer, must be written down. Names compare without regard to case.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from bridge.adapters.masking import SECRETS
from bridge.adapters.yaml_structs import Gathering, keys_of, read_struct
from bridge.adapters.yaml_tree import Mark, Node, quoted, read_yaml
from bridge.model.errors import ConfigError
from bridge.protocol.rpc.md4 import nt_hash

_log = logging.getLogger(__name__)
_HASH: Final = re.compile(r"[0-9a-fA-F]{32}")
_Stamp = tuple[int, int, int]
_LOCAL: Final = ("", ".", "workgroup")  # domains that mean: an account of yours
_NETBIOS: Final = 15


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two; a password is turned into its hash at once."""

    password: str | None = None
    nt_hash: str | None = None

    def __post_init__(self) -> None:
        if (self.password is None) == (self.nt_hash is None):
            mend = "write {password: ...} or {nt_hash: ...}"
            raise ConfigError("a user has either a password or an nt_hash", mend=mend)
        if self.nt_hash is not None and not _HASH.fullmatch(self.nt_hash):
            mend = "it is the MD4 of the password in UTF-16"
            raise ConfigError("nt_hash must be 32 hex digits", where="nt_hash", mend=mend)

    def hash(self) -> bytes:
        if self.nt_hash is not None:
            return bytes.fromhex(self.nt_hash)
        assert self.password is not None
        return nt_hash(self.password)


class UserFile:
    """The port `Accounts` on a file; ConfigError if it cannot be read at the start."""

    def __init__(self, path: Path, names: Iterable[str] = ()) -> None:
        """`names`: what clients may call us."""
        self._path = path
        self._local = _local_domains(names)
        self._stamp = _stamp(path)
        self._users = load_users(path)

    def nt_hash(self, user: str, domain: str) -> bytes | None:
        self._refresh()
        domain, user = domain.casefold(), user.casefold()
        own = self._users.get((domain, user))
        if own is None and domain in self._local:
            return self._users.get(("", user))
        return own

    def _refresh(self) -> None:
        """A file that is broken now changes nothing, and is named once."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._users = load_users(self._path)
        except ConfigError as error:
            _log.error("the users stay as they were: %s", error)
        else:
            _log.info("%s: %d users", self._path, len(self._users))


def _local_domains(names: Iterable[str]) -> frozenset[str]:
    """As NetBIOS writes them, too: the first label, at most 15 characters."""
    found = {*_LOCAL}
    for name in names:
        short = name if name.replace(".", "").isdigit() else name.partition(".")[0]
        found |= {name.casefold(), short.casefold(), short[:_NETBIOS].casefold()}
    return frozenset(found)


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def load_users(path: Path) -> Mapping[tuple[str, str], bytes]:
    """NT hashes by domain (empty: a local account) and name, both in lower case."""
    gathering = Gathering()
    users: dict[tuple[str, str], bytes] = {}
    for text, (mark, node) in keys_of(read_yaml(path), "").items():
        _hide(node)  # before anything can go wrong with it
        with gathering:
            key = _key(text, mark)
            if key in users:
                what = f"user {quoted(text)} is there twice"
                raise ConfigError(what, where=str(mark), mend="keep one of them")
            users[key] = _account(text, node, path).hash()
            SECRETS.add(users[key].hex())
    gathering.check()
    return users


def _key(text: str, mark: Mark) -> tuple[str, str]:
    domain, _, name = text.rpartition("\\")
    if not name or "\\" in domain or (not domain and "\\" in text):
        what = f"{quoted(text)} is no user name"
        raise ConfigError(what, where=str(mark), mend="write NAME or DOMAIN\\NAME")
    return domain.casefold(), name.casefold()


def _hide(node: Node) -> None:
    """Every value of a user, also one that stands in the wrong place: errors quote it."""
    if isinstance(node.value, dict):
        for _, below in node.value.values():
            _hide(below)
    elif isinstance(node.value, list):
        for below in node.value:
            _hide(below)
    elif not isinstance(node.value, bool):
        SECRETS.add(node.value)


def _account(text: str, node: Node, path: Path) -> Account:
    return read_struct(node, Account, base=path.parent, name=text)
