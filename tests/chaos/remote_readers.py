"""Remote readers of a retained queue: RPC at privacy with NTLM, Start and End. MS-MQRR 3.1.4.7

Some are quick, with many Starts in flight, and wait when the queue is empty; some keep what they
were given for a while. Now and then one gives a message back (NACK), or hangs up with messages that
it has not ended. An End (ACK) that is answered with 0 is a message that was told to be removed; one
without that answer leaves it open.
"""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Final, TypeVar

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.net.rpc_client import RpcClient
from bridge.config import Address
from bridge.core.remote_read.codes import SERVICE_NOT_AVAILABLE
from bridge.model.errors import BridgeError, RpcUnavailable
from bridge.model.guid import NULL_GUID
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.finding import READER
from bridge.protocol.rpc.reader.names import target
from bridge.protocol.rpc.reader.opening import RECEIVE, RECEIVE_ACCESS, OpenedQueue
from bridge.protocol.rpc.reader.packets import read_of
from bridge.protocol.rpc.reader.results import TIMEOUT
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.remote_read import (
    ACK,
    NACK,
    EndReceive,
    GetServerPort,
    Opened,
    OpenQueue,
    Port,
    Started,
    StartReceive,
)
from bridge.wire.rpc.stub import Request, Result, Stub
from tests.chaos.history import History, Read, Take
from tests.chaos.process import USERS
from tests.chaos.reading import is_its_body
from tests.outside.appliance import HOST
from tests.outside.rawconnection import Address as Place

READERS: Final = 2
CONNECT_S: Final = 5.0
ANSWER_S: Final = 30.0  # for an answer, beside what the server was asked to wait
WAIT_MS: Final = 1500
MOST_ROUNDS: Final = 20  # of one connection
QUICK: Final = 16  # Starts in flight
HANG_UP, GIVE_BACK = 0.05, 0.1  # how often
Numbered = tuple[int, Take]  # by the request id of the Start
S = TypeVar("S", bound=Stub)


class HungUpError(Exception):
    """The reader's own doing."""


class RemoteReaders:
    def __init__(
        self,
        queue: str,
        place: Callable[[], Place],
        history: History,
        rng: random.Random,
    ) -> None:
        self._readers = [
            RemoteReader(
                target(f"private$\\{queue}", HOST).format,
                place,
                history,
                random.Random(rng.getrandbits(64)),
            )
            for _ in range(READERS)
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(reader.run()) for reader in self._readers]

    def finish(self) -> list[asyncio.Task[None]]:
        """All is healed and the senders are quiet: they end when they have taken what is left."""
        for reader in self._readers:
            reader.is_last = True
        return self._tasks

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class RemoteReader:
    def __init__(
        self,
        queue: QueueFormat,
        place: Callable[[], Place],
        history: History,
        rng: random.Random,
    ) -> None:
        self._queue, self._place, self._history, self._rng = queue, place, history, rng
        self.is_last = False
        self._is_done = False

    async def run(self) -> None:
        """Until the queue is empty and nothing new comes."""
        ((user, password),) = USERS.items()
        events = self._history.events
        while not self._is_done:
            try:
                async with await RpcClient.connect(
                    Address(*self._place()),
                    READER,
                    credentials=Credentials(user, password),
                    timeout=CONNECT_S,
                ) as rpc:
                    await self._session(rpc)
            except RpcUnavailable:
                events["connections of remote readers lost"] += 1
            except HungUpError:
                events["remote readers that hung up with messages"] += 1
            except (BridgeError, Fault) as error:
                self._history.surprises.append(f"remote reader: {error!r}")
            await asyncio.sleep(self._rng.uniform(0.05, 0.3))

    async def _session(self, rpc: RpcClient) -> None:
        server = (await _call(rpc, GetServerPort(), Port)).port
        opened = await _call(rpc, _open(self._queue), Opened)
        session = Session(rpc, OpenedQueue(opened.handle), server, self._history)
        is_quick = self._rng.random() < 0.5
        for _ in range(self._rng.randrange(1, MOST_ROUNDS)):
            if self.is_last:
                self._is_done = not await self._round(session, QUICK, 0.0)
            elif is_quick:
                await self._round(session, self._rng.randrange(1, QUICK), 0.0)
            else:
                await self._round(session, 1, self._rng.uniform(0.0, 0.5))
            if self._is_done:
                return

    async def _round(self, session: "Session", window: int, hold_s: float) -> bool:
        """False: the queue is empty."""
        wait_ms = 0 if self.is_last else self._rng.choice((0, WAIT_MS, WAIT_MS))
        told = await session.take(window, wait_ms)
        held = [(request_id, take) for request_id, take in told if take.given_at is not None]
        await asyncio.sleep(hold_s)
        if held and not self.is_last and self._rng.random() < HANG_UP:
            session.leave(held)
            raise HungUpError
        back = 0.0 if self.is_last else GIVE_BACK
        acks = [NACK if self._rng.random() < back else ACK for _ in held]
        await session.end(held, acks)
        return not all(take.is_empty for _, take in told)


class Session:
    """A queue that is open on one connection."""

    def __init__(self, rpc: RpcClient, queue: OpenedQueue, server: int, history: History) -> None:
        self._rpc, self._queue, self._server, self._history = rpc, queue, server, history

    async def take(self, window: int, wait_ms: int) -> list[Numbered]:
        """What so many Starts were told."""
        starts = [self._queue.start(RECEIVE, timeout_ms=wait_ms) for _ in range(window)]
        takes = [Take(asked_at=time.monotonic(), server=self._server) for _ in starts]
        self._history.takes += takes
        await _all(map(self._start, starts, takes))
        return [(start.request_id, take) for start, take in zip(starts, takes, strict=True)]

    async def _start(self, start: StartReceive, take: Take) -> None:
        try:
            answer = await _call(self._rpc, start, Started, start.timeout_ms / 1000)
        except (RpcUnavailable, asyncio.CancelledError):
            self._history.events["remote Starts cut off"] += 1
            raise
        finally:
            take.over_at = time.monotonic()
        if answer.status:
            take.is_empty = answer.status == TIMEOUT
            self._expect("Start", answer.status, TIMEOUT)
            return
        message = read_of(answer, start.request_id, NULL_GUID).message
        take.given_at, take.identity, take.place = take.over_at, message.id, message.lookup_id
        if not is_its_body(message.id, message.body):
            self._history.surprises.append(f"a reader was given another body of {message.id}")

    def leave(self, takes: list[Numbered]) -> None:
        for _, take in takes:
            take.left_at = take.over_at = time.monotonic()

    async def end(self, takes: list[Numbered], acks: list[int]) -> None:
        await _all(
            self._end(request_id, take, ack)
            for (request_id, take), ack in zip(takes, acks, strict=True)
        )

    async def _end(self, request_id: int, take: Take, ack: int) -> None:
        now = take.left_at = time.monotonic()
        read = Read(asked_at=now, identity=take.identity, place=take.place, is_cut_off=True)
        if ack == ACK:
            self._history.reads.append(read)
        request = EndReceive(self._queue.handle, ack, request_id)
        try:
            answer = await _call(self._rpc, request, Result)
        except (RpcUnavailable, asyncio.CancelledError):
            self._history.events["remote Ends cut off"] += 1
            raise
        finally:
            read.over_at = take.over_at = time.monotonic()
        take.is_ended = True
        self._expect("End", answer.status, 0)
        if ack == NACK:
            self._history.events["messages given back by remote readers"] += 1
        elif answer.status == 0:
            read.is_cut_off, read.told_at = False, read.over_at
            self._history.events["messages read remotely"] += 1

    def _expect(self, name: str, status: int, *lawful: int) -> None:
        """Kafka may be away."""
        if status == SERVICE_NOT_AVAILABLE:
            self._history.events[f"remote {name}s refused without Kafka"] += 1
        elif status not in lawful:
            self._history.surprises.append(f"{name} of a remote reader: 0x{status:08X}")


async def _call(rpc: RpcClient, request: Request, kind: type[S], wait_s: float = 0.0) -> S:
    answer = await rpc.call(request.OPNUM, request.pack(), ANSWER_S + wait_s)
    return kind.unpack(answer)


async def _all(work: Iterable[Coroutine[None, None, None]]) -> None:
    """All of them in their order, each to its end; then the first error, if there is one."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _open(queue: QueueFormat) -> OpenQueue:
    return OpenQueue(
        queue=queue,
        access=RECEIVE_ACCESS,
        share=0,
        client=NULL_GUID,
        non_routing=1,
        major=6,
        minor=1,
        build=7601,
        workgroup=1,
    )
