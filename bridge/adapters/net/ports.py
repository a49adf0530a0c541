"""Whether a port can be had, asked before anything is touched that others depend on."""

from __future__ import annotations

import socket

from bridge.config import Address
from bridge.model.errors import ConfigError


def cannot_listen(host: str, port: int, where: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot listen on {Address(host, port)} ({error.strerror or error})",
        where=where,
        mend="choose another port or address, or stop what uses it",
    )


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
