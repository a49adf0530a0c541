"""Connections of the admin port are bounded, and none may be slow for ever."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.net import admin_gate as module
from bridge.adapters.net.admin_gate import CROWDED, SLOW
from bridge.adapters.net.admin_server import AdminServer
from bridge.adapters.net.crowd import Hall
from bridge.adapters.telemetry import Telemetry
from bridge.config import AdminConfig
from tests.adapters.net.fake_appliance import FakeAppliance
from tests.adapters.net.test_admin_access import client, signed

HALF = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
WHOLE = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HOG, OTHER = "127.0.0.9", "127.0.0.10"
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))


class Gate:
    def __init__(self, port: int, telemetry: Telemetry, server: AdminServer) -> None:
        self._port, self.telemetry, self.server = port, telemetry, server
        self._writers: list[asyncio.StreamWriter] = []

    async def peer(self, source: str = HOG, tls: ssl.SSLContext | None = None) -> Peer:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, local_addr=(source, 0), ssl=tls
        )
        self._writers.append(writer)
        return reader, writer

    async def half(self, source: str = HOG) -> Peer:
        reader, writer = await self.peer(source)
        writer.write(HALF)
        return reader, writer

    async def is_served(self, source: str, tls: ssl.SSLContext | None = None) -> bool:
        reader, writer = await self.peer(source, tls)
        return await answers(reader, writer)

    def refused(self, reason: str) -> float:
        return (
            self.telemetry.registry.get_sample_value(
                "msmq_bridge_refusals_total", {"reason": reason}
            )
            or 0.0
        )

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(WHOLE)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
    return head.startswith(b"HTTP/1.1 200")


async def is_closed(peer: Peer) -> bool:
    try:
        return await peer[0].read() == b""
    except ConnectionError:
        return True


@asynccontextmanager
async def gate(
    head_s: float = 60.0, hall: Hall | None = None, settings: AdminConfig | None = None
) -> AsyncIterator[Gate]:
    telemetry = Telemetry()
    server = AdminServer(
        FakeAppliance(), telemetry, settings, names=("127.0.0.1",), hall=hall, head_s=head_s
    )
    address = await server.start("127.0.0.1", 0)
    with closing(Gate(int(address.rpartition(":")[2]), telemetry, server)) as made:
        yield made
    await server.stop()


def test_half_requests_of_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its oldest gives way to its newest, and others are served."""
    monkeypatch.setattr(module, "PER_ADDRESS", 3)

    async def scene() -> None:
        async with gate() as made:
            slow = [await made.half() for _ in range(5)]
            assert await is_closed(slow[0])
            assert await is_closed(slow[1])
            assert made.refused(CROWDED) == 2
            assert await made.is_served(OTHER)
            assert await made.is_served(HOG)

    play(scene())


def test_half_requests_of_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 4)

    async def scene() -> None:
        async with gate() as made:
            slow = [await made.half(f"127.0.0.{20 + n}") for n in range(6)]
            assert await is_closed(slow[0])
            assert await made.is_served(OTHER)

    play(scene())


def test_it_shares_the_file_descriptors_with_the_other_listeners() -> None:
    async def scene() -> None:
        async with gate(hall=Hall(lambda: 3)) as made:
            slow = [await made.half() for _ in range(4)]
            assert await is_closed(slow[0])
            assert await made.is_served(OTHER)

    play(scene())


def test_a_head_that_does_not_end() -> None:
    async def scene() -> None:
        async with gate(head_s=0.05) as made:
            assert await is_closed(await made.half())
            assert made.refused(SLOW) == 1

    play(scene())


def test_a_peer_that_says_nothing_is_closed_and_not_blamed() -> None:
    """Browsers open connections before they need them."""

    async def scene() -> None:
        async with gate(head_s=0.05) as made:
            assert await is_closed(await made.peer())
            assert made.refused(SLOW) == 0

    play(scene())


def test_the_second_head_has_a_time_too() -> None:
    async def scene() -> None:
        async with gate(head_s=0.2) as made:
            reader, writer = await made.peer()
            assert await answers(reader, writer)
            writer.write(HALF)
            assert await is_closed((reader, writer))

    play(scene())


def test_a_connection_may_have_many_requests() -> None:
    async def scene() -> None:
        async with gate() as made:
            reader, writer = await made.peer()
            assert [await answers(reader, writer) for _ in range(5)] == [True] * 5

    play(scene())


def test_with_tls_a_connection_counts_before_its_handshake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "PER_ADDRESS", 3)
    certificate = signed(tmp_path, "server")
    context = client(certificate)

    async def scene() -> None:
        settings = AdminConfig(certificate=certificate)
        async with gate(settings=settings) as made:
            silent = [await made.peer() for _ in range(4)]
            assert await is_closed(silent[0])
            assert await made.is_served(OTHER, context)
            assert await made.is_served(HOG, context)
            broken = await made.peer(OTHER)
            broken[1].write(b"GET / HTTP/1.1\r\n\r\n")  # not TLS
            assert await broken[0].read() is not None
            assert await made.is_served(OTHER, context)

    play(scene())


def test_with_tls_a_handshake_has_a_time(tmp_path: Path) -> None:
    certificate = signed(tmp_path, "server")

    async def scene() -> None:
        settings = AdminConfig(certificate=certificate)
        async with gate(head_s=0.1, settings=settings) as made:
            assert await is_closed(await made.peer())

    play(scene())


def test_stopping_frees_every_connection() -> None:
    async def scene() -> None:
        async with gate() as made:
            reader, writer = await made.peer()
            assert await answers(reader, writer)
            assert len(made.server._gate.crowd) == 1
            await made.server.stop()
            assert await is_closed((reader, writer))
            assert len(made.server._gate.crowd) == 0
            assert made.server._gate._visitors == {}

    play(scene())
