"""Where a listener listens, and how many may wait for it."""

from __future__ import annotations

import asyncio
import re

import pytest

from bridge.adapters.net.listening import listen
from bridge.model.errors import ConfigError
from tests.adapters.net.memory_server import run
from tests.support.waiting import until


class Noted(asyncio.Protocol):
    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Noted.made += 1
        transport.close()


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1:"), ("::1", "[::1]:")])
def test_it_says_where_it_listens(host: str, shown: str) -> None:
    async def test() -> None:
        server, address = await listen(asyncio.Protocol, host, 0, "listen.here")
        assert address == f"{shown}{server.sockets[0].getsockname()[1]}"
        server.close()

    run(test())


def test_a_busy_port_is_one_line() -> None:
    async def test() -> None:
        server, address = await listen(asyncio.Protocol, "127.0.0.1", 0, "listen.here")
        port = int(address.rpartition(":")[2])
        with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:") as caught:
            await listen(asyncio.Protocol, "127.0.0.1", port, "listen.there")
        assert caught.value.where == "listen.there"
        assert len(str(caught.value).splitlines()) == 1
        server.close()

    run(test())


def test_more_come_at_once_than_are_accepted_at_once() -> None:
    async def test() -> None:
        server, address = await listen(Noted, "127.0.0.1", 0, "listen.here")
        port = int(address.rpartition(":")[2])
        pairs = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", port) for _ in range(100))
        )
        await until(lambda: Noted.made == 100)
        for _, writer in pairs:
            writer.close()
        server.close()

    run(test())


@pytest.mark.parametrize("target", ["127.0.0.1", "::1"])
def test_all_addresses_are_those_of_both_families(target: str) -> None:
    """asyncio would listen on IPv6 alone."""

    async def test() -> None:
        server, address = await listen(asyncio.Protocol, "::", 0, "listen.binary")
        async with server:
            assert address.startswith("[::]:")
            port = int(address.rpartition(":")[2])
            _, writer = await asyncio.open_connection(target, port)
            writer.close()
            await writer.wait_closed()
            with pytest.raises(ConfigError, match=re.escape(f"[::]:{port}")):
                await listen(asyncio.Protocol, "::", port, "listen.binary")

    run(test())
