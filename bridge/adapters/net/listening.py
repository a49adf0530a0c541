"""A TCP listener whose backlog is long and whose accepts come in small portions."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

from bridge.adapters.net.ports import cannot_listen, for_both_families
from bridge.config import Address

BACKLOG: Final = 1024  # connections that the kernel keeps for us
ACCEPTS: Final = 16  # of them at a time, so that few are open before they are counted


async def listen(
    make: Callable[[], asyncio.BaseProtocol], host: str, port: int, where: str
) -> tuple[asyncio.Server, str]:
    """The listener, and `host:port` as it really is; ConfigError (`where`) if it cannot be."""
    loop = asyncio.get_running_loop()
    try:
        both = for_both_families(host, port, socket.SOCK_STREAM)
        if both is not None:
            server = await loop.create_server(make, sock=both, backlog=ACCEPTS)
        else:
            server = await loop.create_server(make, host, port, backlog=ACCEPTS)
    except OSError as error:
        raise cannot_listen(host, port, where, error) from error
    for listener in server.sockets:  # asyncio has one number for both
        with socket.socket(fileno=os.dup(listener.fileno())) as same:
            same.listen(BACKLOG)
    bound = server.sockets[0].getsockname()
    return server, str(Address(bound[0], bound[1]))
