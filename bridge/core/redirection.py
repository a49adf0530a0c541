"""URLs that stand for other URLs. SR-13, SR-14, SR-18, SR-73; MC-MQSRM 3.1.1.1.7

The first entry that matches decides. Case does not count, a backslash is a slash, and an entry
that names no port is for all ports: the host behind a port mapping is the same host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_URL: Final = re.compile(r"(https?://)(\[[^\]]*\]|[^/:?#]*)(?::([0-9]*))?(.*)", re.S)
_IMPLIED: Final = {"http://": "80", "https://": "443"}


class Redirects:
    """`table` has pairs of from, which may end in *, and to."""

    def __init__(self, table: Iterable[tuple[str, str]] = ()) -> None:
        self._table = [(_plain(source), target) for source, target in table]

    def apply(self, url: str) -> str | None:
        """What the URL stands for, or None."""
        plain = _plain(url)
        bare = _without_port(plain)
        for source, target in self._table:
            for candidate in (plain, bare):
                if source.endswith("*"):
                    if candidate.startswith(source[:-1]):
                        return target
                elif candidate == source:
                    return target
        return None

    def hosts(self) -> frozenset[str]:
        """Those of the left side: whoever redirects a host speaks for it. SR-13"""
        return frozenset(host_of(source) for source, _ in self._table)


def host_of(url: str) -> str:
    """In small letters, without brackets; empty for what is no URL."""
    match = _URL.fullmatch(_plain(url))
    return "" if match is None else match[2].strip("[]").removesuffix(".")


def _plain(url: str) -> str:
    """Without the port that the scheme implies."""
    url = url.replace("\\", "/").lower()
    match = _URL.fullmatch(url)
    implied = match is not None and match[3] == _IMPLIED[match[1]]
    return _without_port(url) if implied else url


def _without_port(url: str) -> str:
    match = _URL.fullmatch(url)
    return url if match is None else f"{match[1]}{match[2]}{match[4]}"
