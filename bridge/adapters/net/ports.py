"""Whether a port can be had, asked before anything is touched that others depend on."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from bridge.config import Address
from bridge.model.errors import ConfigError

_ALL: Final = ipaddress.IPv6Address("::")


def cannot_listen(host: str, port: int, where: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot listen on {Address(host, port)} ({error.strerror or error})",
        where=where,
        mend="choose another port or address, or stop what uses it",
    )


def for_both_families(host: str, port: int, kind: socket.SocketKind) -> socket.socket | None:
    """A socket on `::` that serves IPv4 too; None for every other host. Raises OSError.

    asyncio and aiohttp would make one for IPv6 alone."""
    try:
        if ipaddress.ip_address(host) != _ALL:
            return None
    except ValueError:
        return None
    made = socket.socket(socket.AF_INET6, kind)
    try:
        if kind is socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def require_free(host: str, port: int, where: str) -> None:
    """ConfigError if somebody listens there (TCP), or the address is not ours."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, number) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise cannot_listen(host, port, where, error) from error
