"""A tiny interface and a server around it, on loopback."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.rpc_server import PER_ADDRESS, RpcProcess, RpcServer
from bridge.adapters.telemetry import Telemetry
from bridge.config import Address
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Call, Fault
from bridge.protocol.rpc.dialogue import Limits
from bridge.wire.rpc.bind import Syntax
from tests.protocol.rpc.ntlm_peer import Accounts

# Samba's rpcecho, so that its own client can be used: AddOne, EchoData, SourceData.
ECHO_UUID = "60a15ec5-4de8-11d7-a637-005056a20182"
ECHO = Syntax(Guid.parse(ECHO_UUID), 1, 0)
ADD_ONE, ECHO_DATA, SOURCE_DATA = 0, 1, 3
RAW_ECHO, WHO, WAIT, FAIL, BREAK = 20, 21, 22, 23, 24


class Echo:
    """Besides rpcecho: the stub as it came, who called, one that waits, two that fail."""

    uuid, version = ECHO.uuid, (1, 0)

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.waiting = 0
        self.withdrawn = 0
        self.run_down: list[int] = []
        self.gate = asyncio.Event()
        self.on_rundown: Callable[[], None] = lambda: None

    async def call(self, call: Call) -> bytes | Sequence[bytes]:
        self.calls.append(call)
        match call.opnum:
            case 0:
                return struct.pack("<I", struct.unpack_from("<I", call.stub)[0] + 1)
            case 1:
                (size,) = struct.unpack_from("<I", call.stub)
                return struct.pack("<I", size) + call.stub[8 : 8 + size]
            case 3:
                (size,) = struct.unpack_from("<I", call.stub)
                return [struct.pack("<I", size), bytes(size)]
            case 20:
                return call.stub
            case 21:
                return f"{call.user}|{call.level.name}|{call.group}".encode()
            case 22:
                return await self._wait()
            case 23:
                raise Fault(0xC00E0003)
            case 24:
                raise ZeroDivisionError("a bug")
        raise Fault(0x1C010002, did_not_execute=True)  # RR-11

    async def _wait(self) -> bytes:
        self.waiting += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        finally:
            self.waiting -= 1
        return b"waited"

    def rundown(self, group: int) -> None:
        self.run_down.append(group)
        self.on_rundown()


class World:
    def __init__(
        self, limits: Limits | None, *, hall: int | None = None, per_address: int = PER_ADDRESS
    ) -> None:
        self.echo, self.telemetry = Echo(), Telemetry()
        self.process = RpcProcess(
            self.telemetry,
            Accounts(),
            host="bridge01",
            limits=limits,
            hall=None if hall is None else Hall(lambda: hall),
            per_address=per_address,
        )
        self.server = RpcServer([self.echo], self.process)
        self.address = Address("127.0.0.1", 0)

    def refused(self, reason: str) -> int:
        """So often; `rpc-` is written only once."""
        value = self.telemetry.registry.get_sample_value(
            "msmq_bridge_refusals_total", {"reason": f"rpc-{reason}"}
        )
        return int(value or 0)


@asynccontextmanager
async def world(
    limits: Limits | None = None, *, hall: int | None = None, per_address: int = PER_ADDRESS
) -> AsyncIterator[World]:
    made = World(limits, hall=hall, per_address=per_address)
    made.address = Address.parse(await made.server.start("127.0.0.1", 0))
    try:
        yield made
    finally:
        made.server.stop_listening()
        await made.process.stop()


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work

    asyncio.run(bounded())
