"""The fake server of the digest behind real RPC, in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.net.rpc_server import RpcProcess, RpcServer
from bridge.adapters.reader.place import Place
from bridge.adapters.telemetry import Telemetry
from bridge.model.guid import Guid
from bridge.protocol.rpc.association import Association
from bridge.protocol.rpc.calls import AuthLevel, Call, Fault, Interface
from bridge.protocol.rpc.md4 import nt_hash
from tests.protocol.rpc.reader.fake_server import FakeServer, new_server
from tests.protocol.rpc.reader.test_finding import REMOTE_READ, tower

ANN = Credentials("ann", "secret")


PASSWORDS = {"ann": "secret", "bob": "another"}


class Users:
    def nt_hash(self, user: str, _domain: str) -> bytes | None:
        password = PASSWORDS.get(user.lower())
        return None if password is None else nt_hash(password)


class Reading:
    """RemoteRead: one association group is one connection to the fake."""

    uuid = Guid(REMOTE_READ)
    version = (1, 0)

    def __init__(self, fake: FakeServer) -> None:
        self.fake, self.levels, self.calls = fake, set[AuthLevel](), 0
        self.users: set[str] = set()
        self.on_block: Callable[[], object] | None = None  # Starts with a time-out wait for ever
        self.before: Callable[[int], None] = lambda _: None  # told the number of each call
        self.after: Callable[[int], None] = lambda _: None

    async def call(self, call: Call) -> bytes:
        self.calls += 1
        number = self.calls
        self.levels.add(call.level)
        self.users.add(call.user)
        self.before(number)
        if self.on_block is not None and call.opnum == 7 and call.stub[40:44] != bytes(4):
            self.on_block()
            await asyncio.Event().wait()  # until it is cancelled
        answer = self.fake.call(call.group, call.opnum, call.stub)
        self.after(number)
        return answer

    def rundown(self, group: int) -> None:
        self.fake.lose(group)


class Mapper:
    """ept_map that knows one port. RR-2"""

    uuid = Guid(UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa").bytes_le)
    version = (3, 0)

    def __init__(self, port: int) -> None:
        self.port = port

    async def call(self, call: Call) -> bytes:
        if call.opnum != 3:
            raise Fault(0x1C010002)
        towers = [tower(REMOTE_READ, self.port)] if self.port else []
        stub = bytes(20) + struct.pack("<IIII", len(towers), 4, 0, len(towers))
        for one in towers:
            stub += struct.pack("<III", 1, len(one), len(one)) + one
        stub += bytes(-len(stub) % 4)
        return stub + struct.pack("<I", 0 if towers else 0x16C9A0D6)

    def rundown(self, group: int) -> None:
        pass


class OneAtATime:
    """Every server of this process takes one call at a time, and says so in its bind_ack. `widest`
    is how many it had at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.widest = 0
        make, invoke = Association._ack, Association._invoke

        def ack(association: Association, *arguments: Any) -> bytes:
            data = bytearray(make(association, *arguments))
            data[3] &= ~0x10  # PFC_CONC_MPX
            return bytes(data)

        def count(association: Association, *arguments: Any) -> None:
            self.widest = max(self.widest, len(association._requests.pending))
            invoke(association, *arguments)

        monkeypatch.setattr(Association, "_ack", ack)
        monkeypatch.setattr(Association, "_invoke", count)


class Served:
    def __init__(self) -> None:
        self.fake = new_server()
        self.reading = Reading(self.fake)
        self.port = self.mapper_port = 0
        self._loop = asyncio.new_event_loop()
        self._process: RpcProcess
        self._servers: list[RpcServer] = []

    async def start(self) -> None:
        self._process = RpcProcess(Telemetry(), Users())
        self.port = await self._listen(self.reading)
        self.mapper = Mapper(self.port)
        self.mapper_port = await self._listen(self.mapper)

    async def _listen(self, interface: Interface) -> int:
        server = RpcServer([interface], self._process)
        self._servers.append(server)
        return int((await server.start("127.0.0.1", 0)).rpartition(":")[2])

    async def stop(self) -> None:
        for server in self._servers:
            server.stop_listening()
        await self._process.stop()

    def place(self, credentials: Credentials | None = ANN) -> Place:
        return Place(host="127.0.0.1", port=self.port, credentials=credentials)

    def cut(self) -> None:
        """Every connection, now; called where the server runs."""
        for connection in list(self._process.connections):
            connection.hang_up("cut")

    def cut_at(self, *calls: int, is_done: bool) -> None:
        def hook(number: int) -> None:
            if number in calls:
                self.cut()

        if is_done:
            self.reading.after = hook
        else:
            self.reading.before = hook

    @contextmanager
    def running(self) -> Iterator[Served]:
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), self._loop).result(10)
            yield self
            asyncio.run_coroutine_threadsafe(self.stop(), self._loop).result(10)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()


@contextmanager
def closed_port() -> Iterator[int]:
    """Bound, and nobody listens: connections are refused, and nobody else can take it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
