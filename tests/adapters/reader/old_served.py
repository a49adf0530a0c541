"""Our own server without MS-MQRR, on real sockets: qmcomm and qm2qm on queues in memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.net.rpc_server import RpcProcess, RpcServer
from bridge.adapters.reader.place import Place
from bridge.adapters.remote_read.endpoint_mapper import Endpoint, EndpointMapper
from bridge.adapters.telemetry import Telemetry
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Call, Fault, Interface
from tests.adapters.reader.served import ANN, Users
from tests.adapters.remote_read.world import PLAIN, World

T = TypeVar("T")


class Watched:
    """An interface that has the first `known` opnums only, and what it is asked."""

    def __init__(self, inner: Interface, known: int = 99) -> None:
        self.inner, self.known = inner, known
        self.uuid: Guid = inner.uuid
        self.version = inner.version
        self.opnums: list[int] = []
        self.stubs: list[bytes] = []
        self.users: set[str] = set()
        self.levels: set[int] = set()
        self.before: Callable[[int], None] = lambda _: None  # told the number of each call
        self.after: Callable[[int], None] = lambda _: None

    async def call(self, call: Call) -> bytes | Sequence[bytes]:
        self.opnums.append(call.opnum)
        self.stubs.append(call.stub)
        self.users.add(call.user)
        self.levels.add(call.level)
        number = len(self.opnums)
        self.before(number)
        if call.opnum >= self.known:
            raise Fault(0x1C010002, did_not_execute=True)
        answer = await self.inner.call(call)
        self.after(number)
        return answer

    def rundown(self, group: int) -> None:
        self.inner.rundown(group)


class OldServed:
    """`is_ancient`: NT 4 or 2000, whose qm2qm ends with opnum 7. MS-MQQP 3.1.4.9, <21>"""

    def __init__(self, *, is_ancient: bool = False) -> None:
        self._loop = asyncio.new_event_loop()
        self.world = World()
        self.qmcomm = Watched(self.world.qmcomm)
        self.qm2qm = Watched(self.world.qm2qm, 8 if is_ancient else 99)
        self.port = self.port_qp = self.mapper_port = 0
        self.new_port = 0  # MS-MQRR on the same queues, to compare with
        self._process: RpcProcess
        self._servers: list[RpcServer] = []

    async def start(self) -> None:
        self._process = RpcProcess(Telemetry(), Users())
        self.port = await self._listen(self.qmcomm)
        self.port_qp = await self._listen(self.qm2qm)
        self.new_port = await self._listen(self.world.remote_read)
        ports = self.port, self.port_qp
        self.world.qmcomm._ports = self.world.qm2qm._ports = lambda: ports
        found = [Endpoint(self.qmcomm.uuid, (1, 0), self.port, "Message Queuing - QMRT V1")]
        self.mapper_port = await self._listen(EndpointMapper(lambda: found))

    async def _listen(self, interface: Interface) -> int:
        server = RpcServer([interface], self._process)
        self._servers.append(server)
        return int((await server.start("127.0.0.1", 0)).rpartition(":")[2])

    async def _stop(self) -> None:
        for server in self._servers:
            server.stop_listening()
        await self._process.stop()

    def place(self, credentials: Credentials | None = ANN, **options: Any) -> Place:
        known: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "credentials": credentials}
        return Place(**known | options)

    def do(self, work: Callable[[], T]) -> T:
        """Where the queues are."""

        async def run() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    def fill(self, count: int, queue: str = PLAIN) -> list[bytes]:
        bodies = [b"m%d" % number for number in range(count)]
        self.do(lambda: [self.world.put(body, queue) for body in bodies])
        return bodies

    def left(self, queue: str = PLAIN) -> list[bytes]:
        return self.do(lambda: self.world.waiting(queue))

    def cut_at(self, *calls: int, is_done: bool) -> None:
        """Every connection, at these calls of qm2qm."""

        def hook(number: int) -> None:
            if number in calls:
                for connection in list(self._process.connections):
                    connection.hang_up("cut")

        if is_done:
            self.qm2qm.after = hook
        else:
            self.qm2qm.before = hook

    @contextmanager
    def running(self) -> Iterator[OldServed]:
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), self._loop).result(10)
            yield self
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()
