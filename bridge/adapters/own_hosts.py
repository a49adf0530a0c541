"""Which hosts in a URL are this machine: its names, its addresses, and what stands for it. SR-13"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

from bridge.model.cache import Cache, text_size

_CACHE: Final = 10_000  # hosts come from outside: bounded, in bytes too
_CACHE_BYTES: Final = 4 << 20


class OwnHosts:
    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower().strip("[]").removesuffix(".") for name in names} | {"localhost"}
        self._addresses: Cache[str, bool] = Cache(_CACHE, _CACHE_BYTES)

    def __contains__(self, host: str) -> bool:
        """`host` as `redirection.host_of` gives it."""
        if host in self._names:
            return True
        known = self._addresses.get(host)
        if known is None:
            known = self._addresses.keep(host, _is_own_address(host), text_size(host))
        return known


def _is_own_address(text: str) -> bool:
    """Only an address of this machine can be bound."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_unspecified or address.is_multicast:
        return False
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True
