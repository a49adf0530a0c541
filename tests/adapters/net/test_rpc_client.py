"""The client on asyncio, with our own server and with servers that misbehave."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.adapters.net.rpc_auth import Credentials, Package
from bridge.adapters.net.rpc_client import RpcClient
from bridge.config import Address
from bridge.model.errors import BindRefused, BridgeError, ProtocolError, RpcUnavailable
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Fault
from bridge.wire.rpc.bind import Syntax
from tests.protocol.rpc.test_client import ack
from tests.support.rpc import ECHO, FAIL, RAW_ECHO, SOURCE_DATA, WAIT, WHO, run, world
from tests.support.waiting import until
from tests.wire.rpc import raw

LEVELS = [level for level in AuthLevel if level is not AuthLevel.NONE]
PACKAGES: list[Package] = ["ntlm", "negotiate"]


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_and_package(package: Package, level: AuthLevel) -> None:  # RR-8
    async def test() -> None:
        async with world() as made:
            credentials = Credentials("DOM\\ann", "secret", package, level)
            connect = RpcClient.connect(made.address, ECHO, credentials=credentials)
            async with await connect as client:
                who = f"DOM\\ann|{level.name}|{client.group}".encode()
                assert await client.call(WHO, b"") == who
                assert await client.call(RAW_ECHO, bytes(12_345)) == bytes(12_345)
                size = struct.pack("<I", 4 << 20)
                assert len(await client.call(SOURCE_DATA, size)) == 4 + (4 << 20)

    run(test())


def test_calls_side_by_side() -> None:
    async def test() -> None:
        async with world() as made, await RpcClient.connect(made.address, ECHO) as client:
            slow = asyncio.create_task(client.call(WAIT, b""))
            stubs = [bytes([n]) * n * 1000 for n in range(1, 20)]
            answers = await asyncio.gather(*(client.call(RAW_ECHO, stub) for stub in stubs))
            assert answers == stubs
            made.echo.gate.set()
            assert await slow == b"waited"

    run(test())


def test_a_fault_carries_its_status() -> None:
    async def test() -> None:
        async with world() as made, await RpcClient.connect(made.address, ECHO) as client:
            with pytest.raises(Fault) as caught:
                await client.call(FAIL, b"")
            assert (caught.value.status, caught.value.did_not_execute) == (0xC00E0003, False)
            with pytest.raises(Fault) as caught:
                await client.call(99, b"")
            assert (caught.value.status, caught.value.did_not_execute) == (0x1C010002, True)

    run(test())


def test_a_time_out_gives_the_call_up_and_nothing_else() -> None:
    async def test() -> None:
        async with world() as made, await RpcClient.connect(made.address, ECHO) as client:
            with pytest.raises(RpcUnavailable, match=r"within 0\.01 s"):
                await client.call(WAIT, b"", timeout=0.01)
            await until(lambda: made.echo.withdrawn == 1)  # the server heard of it
            assert await client.call(RAW_ECHO, b"on") == b"on"

    run(test())


def test_a_cancelled_call_is_withdrawn() -> None:
    async def test() -> None:
        async with world() as made, await RpcClient.connect(made.address, ECHO) as client:
            call = asyncio.create_task(client.call(WAIT, b""))
            await until(lambda: made.echo.waiting == 1)
            call.cancel()
            await until(lambda: made.echo.withdrawn == 1)
            assert await client.call(RAW_ECHO, b"on") == b"on"

    run(test())


def test_a_wrong_password() -> None:  # RR-9
    async def test() -> None:
        async with world() as made:
            wrong = Credentials("ann", "wrong", "negotiate")
            with pytest.raises(BindRefused, match="access denied"):
                await RpcClient.connect(made.address, ECHO, credentials=wrong)
            wrong = Credentials("ann", "wrong", "ntlm")
            async with await RpcClient.connect(made.address, ECHO, credentials=wrong) as client:
                with pytest.raises(Fault) as caught:
                    await client.call(RAW_ECHO, b"")
                assert caught.value.status == 5

    run(test())


def test_an_interface_that_is_not_served() -> None:
    async def test() -> None:
        async with world() as made:
            with pytest.raises(BindRefused, match="does not serve"):
                await RpcClient.connect(made.address, Syntax(Guid.random(), 1, 0))

    run(test())


@asynccontextmanager
async def server(*answers: bytes, stay: bool = False) -> AsyncIterator[Address]:
    """Says these one by one, each after it has heard something, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(4096)
            writer.write(answer)
        if stay:
            await reader.read()
        writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", made.sockets[0].getsockname()[1])
    finally:
        made.close()


def test_a_server_that_is_not_there_or_says_nothing() -> None:
    async def test() -> None:
        async with server() as address:
            pass
        with pytest.raises(RpcUnavailable, match=str(address)):
            await RpcClient.connect(address, ECHO)
        async with server(stay=True) as address:
            with pytest.raises(RpcUnavailable, match="no answer"):
                await RpcClient.connect(address, ECHO, timeout=0.05)

    run(test())


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ((), RpcUnavailable),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), ProtocolError),
        ((raw.nak(2),), BindRefused),
        ((raw.response(b""),), ProtocolError),
    ],
)
def test_what_else_may_answer_a_bind(answers: tuple[bytes, ...], error: type[BridgeError]) -> None:
    async def test() -> None:
        async with server(*answers) as address:
            with pytest.raises(error):
                await RpcClient.connect(address, ECHO)

    run(test())


def test_a_server_that_hangs_up_in_a_call() -> None:
    async def test() -> None:
        async with server(ack(), b"") as address:
            client = await RpcClient.connect(address, ECHO)
            with pytest.raises(RpcUnavailable, match="hung up"):
                await client.call(1, b"")
            with pytest.raises(RpcUnavailable):
                await client.call(1, b"")
            await client.close()

    run(test())


def test_a_closed_client() -> None:
    async def test() -> None:
        async with world() as made:
            client = await RpcClient.connect(made.address, ECHO)
            await client.close()
            with pytest.raises(RpcUnavailable, match="closed"):
                await client.call(RAW_ECHO, b"")

    run(test())
