"""Retained queues in memory behind the RPC interfaces, and a Kafka that the test plays."""

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count
from typing import Any, TypeVar

from bridge.adapters.kafka.held_reader import RecordLost
from bridge.adapters.own_hosts import OwnHosts
from bridge.adapters.remote_read.doors import Doors
from bridge.adapters.remote_read.opening import Opening
from bridge.adapters.remote_read.qm2qm import Qm2Qm
from bridge.adapters.remote_read.qmcomm import QmComm
from bridge.adapters.remote_read.reads import Reads
from bridge.adapters.remote_read.remote_read import RemoteRead
from bridge.adapters.retained.service import Answer, now, traits_of
from bridge.core.catalogue import Catalogue
from bridge.core.mapping import headers_of
from bridge.core.ports import Record
from bridge.core.remote_read.access import ReadAccess
from bridge.core.retained.effects import Command, Commit
from bridge.core.retained.keeping import marked, row_in
from bridge.core.retained.place import lookup_id
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.core.retained.rows import RecordAt, Row
from bridge.core.retained.shelf import MemoryShelf
from bridge.model.errors import SinkUnavailable
from bridge.protocol.rpc.calls import AuthLevel, Call, Interface
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.stub import Request, Stub
from tests.core.messages import LOCAL, plain, queue

PLAIN = "private$\\plain"
ORDERS = "private$\\orders"
FORWARD = "private$\\forward"
Answered = TypeVar("Answered", bound=Stub)


class FakeOwner:
    """What `RetainedService` does, but Kafka takes a commit when the test says so."""

    def __init__(self, **settings: Any) -> None:
        self.ids = count(1)
        self.queues = RetainedQueues(MemoryShelf(), self.ids.__next__, **settings)
        self.reader = self
        self.records: dict[RecordAt, Record] = {}
        self.is_away = False  # Kafka, for those who read
        self.is_slow = False  # Kafka, for those who commit
        self.is_closed = False  # and it is known to be
        self.read_gate: asyncio.Event | None = None
        self.commits: list[tuple[Commit, asyncio.Future[None]]] = []
        self._answers: dict[tuple[int, int], asyncio.Future[Answer]] = {}

    async def read(self, places: Iterable[RecordAt]) -> dict[RecordAt, Record]:
        if self.read_gate is not None:
            await self.read_gate.wait()
        if self.is_away:
            raise SinkUnavailable("Kafka: away")
        wanted = list(places)
        for at in wanted:
            if at not in self.records:
                raise RecordLost(at)
        return {at: self.records[at] for at in wanted}

    def require_kafka(self) -> None:
        if self.is_closed:
            raise SinkUnavailable("Kafka: closed")

    def close(self, handle: int) -> None:
        self.carry_out(self.queues.answering.close(handle, now()))

    def lose(self, row: Row) -> list[asyncio.Future[None]]:
        return self.carry_out(self.queues.sweeping.lose(row))

    def expect(self, handle: int, tag: int) -> asyncio.Future[Answer]:
        assert (handle, tag) not in self._answers, "a read loses its answer"
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[handle, tag] = future
        return future

    def carry_out(self, commands: Sequence[Command]) -> list[asyncio.Future[None]]:
        futures = []
        for command in commands:
            if isinstance(command, Commit):
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self.commits.append((command, future))
                futures.append(future)
            else:
                answer = self._answers.pop((command.handle, command.tag), None)
                if answer is not None and not answer.done():
                    answer.set_result(command)
        if not self.is_slow:
            self.settle()
        return futures

    def settle(self) -> None:
        """Kafka has them."""
        commits, self.commits = self.commits, []
        for commit, future in commits:
            self.carry_out(self.queues.settle(commit.ticket, now()))
            future.set_result(None)

    def tick(self, seconds: float) -> None:
        at = now()
        self.carry_out(self.queues.tick(type(at)(at.mono + seconds, at.unix)))

    @property
    def waiting(self) -> int:
        return len(self._answers)


class World:
    def __init__(
        self,
        *,
        minimum: AuthLevel = AuthLevel.NONE,
        has_users: bool = False,
        allow_read: tuple[str, ...] | None = None,
        defaults: tuple[str, ...] | None = None,
        **settings: Any,
    ) -> None:
        self.owner = FakeOwner(**settings)
        kept: dict[str, Any] = {"mode": "retain", "allow_read": allow_read}
        self.catalogue = Catalogue(
            LOCAL,
            [
                queue(ORDERS, **kept),
                queue(PLAIN, transactional=False, **kept),
                queue("private$\\made-*", transactional=False, topic="made", **kept),
                queue(FORWARD, transactional=False, allow_read=allow_read),
                queue("private$\\passed-*", transactional=False, topic="p", allow_read=allow_read),
            ],
        )
        for known in self.catalogue.known():
            self.owner.queues.define(known.name, traits_of(known))
        access = ReadAccess(minimum, has_users=has_users)
        self.opening = Opening(
            self.owner,
            lambda: self.catalogue,
            OwnHosts(["bridge01"]),
            LOCAL,
            access,
            lambda: defaults,
        )
        self.reads = Reads(self.owner)
        self.doors = Doors(self.opening, self.reads, os.urandom)
        self.remote_read = RemoteRead(self.opening, self.reads, lambda: 2103, os.urandom)
        ports = 2103, 2105
        self.qmcomm = QmComm(self.doors, self.reads, access, lambda: ports, os.urandom)
        self.qm2qm = Qm2Qm(self.doors, self.reads, access, lambda: ports, os.urandom)
        self._ordinals = count(1)

    def put(self, body: bytes, queue: str = PLAIN, **fields: Any) -> Row:
        """A message arrives."""
        message = plain(next(self._ordinals), body=body, peer="10.1.2.3", **fields)
        at = RecordAt("data", 0, message.ordinal)
        place = lookup_id(message.priority, next(self.owner.ids), transactional=queue == ORDERS)
        bare = Record(
            topic="data",
            value=body,
            headers=headers_of(message),
            timestamp_ms=message.arrived_ms,
        )
        self.owner.records[at] = record = marked(bare, LOCAL, queue, place)
        row = row_in(record, at, LOCAL)
        assert row is not None
        self.owner.carry_out(self.owner.queues.arrive([row], now()))
        return row

    def waiting(self, queue: str = PLAIN) -> list[bytes]:
        """What lies there, whoever holds it."""
        shelf = self.owner.queues._shelf
        return [self.owner.records[row.at].value for row in shelf.after(queue, -1, 100)]


def call(
    request: Request,
    *,
    level: AuthLevel = AuthLevel.NONE,
    user: str = "",
    group: int = 1,
    stub: bytes | None = None,
    opnum: int | None = None,
) -> Call:
    return Call(
        opnum=request.OPNUM if opnum is None else opnum,
        stub=request.pack() if stub is None else stub,
        level=level,
        user=user,
        group=group,
        connection=group,
        peer="10.0.0.2",
        local=("10.9.9.9", 2103),
    )


async def ask(interface: Interface, request: Request, kind: type[Answered], **how: Any) -> Answered:
    """What a client gets back; the interface sees bytes, as from the network."""
    answer = await interface.call(call(request, **how))
    return kind.unpack(b"".join(answer) if not isinstance(answer, bytes) else answer)


def name(path: str = PLAIN, suffix: int = 0, kind: int = 3) -> QueueFormat:
    return QueueFormat(kind=kind, suffix=suffix, text=f"OS:bridge01\\{path}")


async def turns(count_: int = 5) -> None:
    """Let every task that can run do so."""
    for _ in range(count_):
        await asyncio.sleep(0)


def running(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run() -> None:
        async def guarded() -> None:
            async with asyncio.timeout(20):
                await test()

        asyncio.run(guarded())

    del run.__wrapped__
    return run
