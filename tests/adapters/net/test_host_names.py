"""Whatever a peer calls a host, the answer is an address or OSError."""

from __future__ import annotations

import asyncio

import pytest

from bridge.adapters.net.host_names import resolving

ODD = ["a\0b", "a..b", "." * 3, "x" * 64 + ".test", "\ufffd", "xn--\u00fc", "a b", "\u202e", "[::1"]


@pytest.mark.parametrize("host", ODD)
def test_a_name_that_cannot_be_resolved_is_an_os_error(host: str) -> None:
    async def connect() -> None:
        with resolving(host):
            await asyncio.get_running_loop().create_connection(asyncio.Protocol, host, 1)

    with pytest.raises(OSError, match=r"."):
        asyncio.run(connect())


@pytest.mark.parametrize("port", [70_000, -1, 1 << 70])
def test_a_port_that_does_not_exist_is_an_os_error(port: int) -> None:
    async def connect() -> None:
        with resolving("127.0.0.1"):
            await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port)

    with pytest.raises(OSError, match=r"."):
        asyncio.run(connect())


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), resolving("a"):
        raise KeyError
    with pytest.raises(TimeoutError), resolving("a"):
        raise TimeoutError
