"""The binary server on real sockets, with the core behind it and Kafka in memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from bridge.adapters.intake import Intake, ShardPump
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.net.binary_server import PER_ADDRESS, BinaryServer
from bridge.adapters.net.connection import Connection
from bridge.adapters.net.crowd import Hall
from bridge.adapters.telemetry import PREFIX, Telemetry
from bridge.core.access import AccessList
from bridge.core.identity import Ordinals
from bridge.core.known_senders import KnownSenders
from bridge.core.ports import Unit
from bridge.protocol.binary.session import SessionSettings
from tests.core.messages import LOCAL, shard
from tests.outside.rawmsmq import Message, build, cp_request, direct, ec_request
from tests.outside.rawparse import Establish, Packet, Parameters, parse, wire_length
from tests.support.waiting import until

SOON_S = 20.0
PLAIN = direct("OS:bridge01\\private$\\plain")


def run(test: Coroutine[Any, Any, None]) -> None:
    """A fault in a callback, which asyncio only logs, fails the test too."""
    faults: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        async with asyncio.timeout(60):
            await test

    asyncio.run(main())
    assert not faults, faults


class Gated(MemoryShardSink):
    """Commits only while the gate is open."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.gate = asyncio.Event()
        self.gate.set()

    async def publish(self, unit: Unit, *, traced: bool = False) -> None:
        await self.gate.wait()
        await super().publish(unit, traced=traced)


class World:
    """A queue manager with the queues `orders` (transactional) and `plain`."""

    def __init__(
        self,
        settings: SessionSettings | None = None,
        routers: AccessList | None = None,
        senders: KnownSenders | None = None,
        hall: Hall | None = None,
        per_address: int = PER_ADDRESS,
    ) -> None:
        self.log = MemoryLog()
        self.sink = Gated(self.log)
        self.telemetry = Telemetry()
        self.pump = ShardPump(shard(), self.sink, self.telemetry)
        self.intake = Intake([self.pump], self._on_jam)
        self.server = BinaryServer(
            LOCAL,
            Ordinals(None, lambda _: None),
            self.intake,
            self.telemetry,
            settings,
            routers=routers,
            senders=senders,
            hall=hall,
            per_address=per_address,
        )
        self.host, self.port = "127.0.0.1", 0

    def _on_jam(self, _shard: int, _jammed: bool) -> None:
        self.server.look_at_jam()

    async def listen(self) -> None:
        self.host, _, port = (await self.server.start(self.host, self.port)).rpartition(":")
        self.port = int(port)

    @property
    def connection(self) -> Connection:
        (connection,) = self.server.connections
        return connection

    @property
    def bodies(self) -> list[bytes]:
        return [record.value or b"" for record in self.log.records]

    def sample(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(f"{PREFIX}{name}", labels) or 0.0

    def closed(self, reason: str) -> float:
        return self.sample("sessions_closed_total", reason=reason)

    def refused(self, reason: str) -> float:
        return self.sample("refusals_total", reason=reason)


@asynccontextmanager
async def world(
    settings: SessionSettings | None = None,
    *,
    listen: bool = True,
    routers: AccessList | None = None,
    senders: KnownSenders | None = None,
    hall: Hall | None = None,
    per_address: int = PER_ADDRESS,
) -> AsyncIterator[World]:
    made = World(settings, routers, senders, hall, per_address)
    await made.pump.open()
    pump = asyncio.create_task(made.pump.run())
    if listen:
        await made.listen()
    try:
        yield made
    finally:
        made.server.stop_listening()
        made.server.hang_up()
        await until(lambda: not made.server.connections)
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


class Client:
    """A sender on a stream: raw bytes out, parsed packets in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.guid: UUID = uuid4()
        self._ordinals = count(1)

    async def read(self) -> Packet:
        async with asyncio.timeout(SOON_S):
            head = await self.reader.readexactly(16)
            return parse(head + await self.reader.readexactly(wire_length(head) - 16))

    async def handshake(self, window: int = 64) -> None:
        self.writer.write(ec_request(self.guid))
        assert isinstance(await self.read(), Establish)
        self.writer.write(cp_request(window=window))
        assert isinstance(await self.read(), Parameters)

    def message(self, *, recoverable: bool = True) -> bytes:
        number = next(self._ordinals)
        return build(
            Message(
                source=self.guid,
                message_id=number,
                destination=PLAIN,
                body=b"%d" % number,
                recoverable=recoverable,
            )
        )

    def messages(self, number: int, *, recoverable: bool = True) -> bytes:
        return b"".join(self.message(recoverable=recoverable) for _ in range(number))

    async def end(self) -> bytes:
        """What is left until the other side hangs up."""
        async with asyncio.timeout(SOON_S):
            return await self.reader.read()

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def client(
    made: World,
    *,
    window: int = 64,
    greet: bool = True,
    narrow: bool = False,
    source: str = "",
) -> AsyncIterator[Client]:
    """`narrow`: the kernel holds hardly anything that is not read."""
    plug = socket.socket(socket.AF_INET6 if ":" in made.host else socket.AF_INET)
    plug.setblocking(False)
    if narrow:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    if source:
        plug.bind((source, 0))
    await asyncio.get_running_loop().sock_connect(plug, (made.host, made.port))
    connected = Client(*await asyncio.open_connection(sock=plug))
    try:
        if greet:
            await connected.handshake(window)
        yield connected
    finally:
        await connected.close()


Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(*plan: Behaviour) -> AsyncIterator[int]:
    """A listener whose n-th connection behaves as planned, any later one as the last; its port."""
    behaviours = iter(plan)
    last = [plan[-1]]
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await next(behaviours, last[0])(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
            tasks.discard(task)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pipe_to(made: World, *, cut_after: int | None = None) -> Behaviour:
    """Passes bytes on, both ways; at `cut_after` bytes from the client all is cut."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection(made.host, made.port)
        back = asyncio.create_task(_copy(other_reader, writer, None))
        try:
            await _copy(reader, other_writer, cut_after)
            if cut_after is None:
                await back
        finally:
            back.cancel()
            other_writer.close()
            await asyncio.gather(back, other_writer.wait_closed(), return_exceptions=True)

    return behave


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None
) -> None:
    passed = 0
    while data := await reader.read(65536):
        if limit is not None and passed + len(data) >= limit:
            writer.write(data[: limit - passed])
            await writer.drain()
            return
        passed += len(data)
        writer.write(data)
        await writer.drain()
    if limit is None:
        writer.write_eof()
