"""Remote read in an event loop: as `sync_reader`, with `async for`.

Cancelled while it waits, it drops its connection: the server gives back what was not ended (RR-50).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any, Self, TypeVar, assert_never

from bridge.adapters.reader.async_links import AsyncLink, connect
from bridge.adapters.reader.place import Place
from bridge.model.errors import RpcUnavailable
from bridge.protocol.rpc.reader.drain import Drain
from bridge.protocol.rpc.reader.names import Target, target
from bridge.protocol.rpc.reader.orders import move, peek_at, purge
from bridge.protocol.rpc.reader.packets import Key, Read
from bridge.protocol.rpc.reader.running import Running
from bridge.protocol.rpc.reader.scan import WINDOW, Scan
from bridge.protocol.rpc.reader.spelling import Spelling
from bridge.protocol.rpc.reader.steps import (
    Answers,
    Ask,
    Batch,
    ConnectionLost,
    Flow,
    Pause,
)

T = TypeVar("T")


class AsyncRemoteReader:
    """Connects when it is needed; one job at a time. It raises what `RemoteReader` raises."""

    def __init__(
        self,
        place: Place,
        *,
        connect: Callable[[Place], Awaitable[AsyncLink]] = connect,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._place, self._connect, self._sleep = place, connect, sleep
        self._link: AsyncLink | None = None
        self._spelling = Spelling()
        self._was_connected = self._is_closed = False

    def target(self, queue: str) -> Target:
        return target(queue, self._place.host)

    # -- jobs -------------------------------------------------------------------------------

    async def scan(
        self,
        queue: str,
        *,
        after: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        window: int = WINDOW,
    ) -> AsyncGenerator[Read, None]:
        """Messages in order, untouched; those behind `after`, up to and with `until`."""
        job = Scan(
            self.target(queue),
            after=after,
            until=until,
            limit=limit,
            window=window,
            spelling=self._spelling,
            client=self._place.client,
        )
        async with aclosing(self.run(job)) as batches:
            async for batch in batches:
                for read in batch.reads:
                    yield read

    def receive(
        self,
        queue: str,
        *,
        limit: int | None = None,
        wait_s: float = 0,
        lookup_id: int | None = None,
        window: int = WINDOW,
        seen: Iterable[Key] = (),
    ) -> AsyncGenerator[Batch, None]:
        """Until the queue is empty for `wait_s`. Confirm a batch before you ask for the next."""
        job = Drain(
            self.target(queue),
            limit=limit,
            wait_ms=round(wait_s * 1000),
            lookup_id=lookup_id,
            window=window,
            seen=seen,
            spelling=self._spelling,
            client=self._place.client,
        )
        return self.run(job)

    async def peek_at(self, queue: str, lookup_id: int) -> Read:
        wanted, client = self.target(queue), self._place.client
        return await self._once(lambda: peek_at(wanted, lookup_id, self._spelling, client))

    async def purge(self, queue: str) -> None:
        """Not repeated if the connection is lost: nobody knows then what it has removed."""
        wanted, client = self.target(queue), self._place.client
        await self._once(lambda: purge(wanted, client))

    async def move(self, queue: str, lookup_id: int, to: str) -> None:
        source, other, client = self.target(queue), self.target(to), self._place.client
        await self._once(lambda: move(source, other, lookup_id, self._spelling, client))

    async def run(self, job: Scan | Drain) -> AsyncGenerator[Batch, None]:
        """A reader that stops early (`aclose`) ends what it has: what it confirmed is removed."""
        running = Running(job.flow)
        batch = await self._next_batch(running)
        while batch is not None:
            try:
                yield batch
            except GeneratorExit:
                batch.stop()
                while not self._is_closed and await self._next_batch(running) is not None:
                    pass
                raise
            batch = await self._next_batch(running)

    async def _once(self, make: Callable[[], Flow[T]]) -> T:
        running = Running(make, retries=0)
        await self._next_batch(running)
        return running.result

    async def _next_batch(self, running: Running[Any]) -> Batch | None:
        """None: it is done."""
        while True:
            try:
                batch = await self._advance(running)
            except ConnectionLost as lost:
                await self.drop()
                await self._sleep(running.lost(lost))
            except BaseException:
                await self.drop()
                raise
            else:
                running.progressed()
                return batch

    async def _advance(self, running: Running[Any]) -> Batch | None:
        step = running.step()
        while step is not None:
            match step:
                case Batch():
                    return step
                case Ask():
                    step = running.step(await self._ask(step))
                case Pause():
                    await self._sleep(step.ms / 1000)
                    step = running.step()
                case _:
                    assert_never(step)
        return None

    # -- the connection ---------------------------------------------------------------------

    async def _ask(self, step: Ask) -> Answers:
        """Calls in flight together; their answers in the order of the calls."""
        timeout = self._place.call_s + step.wait_ms / 1000
        link = await self._connected()
        try:
            return tuple(await link.ask(step.requests, timeout))
        except RpcUnavailable as error:
            raise ConnectionLost(str(error)) from error

    async def _connected(self) -> AsyncLink:
        if self._link is None:
            try:
                self._link = await self._connect(self._place)
            except RpcUnavailable as error:
                if not self._was_connected:  # nobody has ever been there: no use in waiting
                    raise
                raise ConnectionLost(str(error)) from error
            self._was_connected = True
        return self._link

    async def drop(self) -> None:
        """RR-56: a NACK for everything that is not ended."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def close(self) -> None:
        """What a job has not ended goes back to its queue."""
        self._is_closed = True
        await self.drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
