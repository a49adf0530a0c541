"""Remote read on a plain socket, for code without an event loop.

    with RemoteReader(Place(host="msmq01", credentials=...)) as reader:
        for read in reader.scan("private$\\\\orders;journal"):
            ...
        for batch in reader.receive("private$\\\\orders"):
            keep(batch.reads)
            batch.confirm()  # what is not confirmed goes back to the queue

A connection that is lost is made again, and the job goes on: nothing is left out, nothing comes
twice. One thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any, Self, TypeVar, assert_never

from bridge.adapters.reader.place import Place
from bridge.adapters.reader.sync_links import Link, connect
from bridge.model.errors import RpcUnavailable
from bridge.protocol.rpc.reader.cuts import PER_PART, cuts
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
Sleep = Callable[[float], None]


class RemoteReader:
    """Connects when it is needed. Raises Refused (the server's reason), BindRefused (credentials),
    Unavailable (no answer, or not for long enough), NotOffered (the host speaks MS-MQQP only, which
    cannot do it) and IllegalName."""

    def __init__(
        self,
        place: Place,
        *,
        connect: Callable[[Place], Link] = connect,
        sleep: Sleep = time.sleep,
    ) -> None:
        self._place, self._connect, self._sleep = place, connect, sleep
        self._link: Link | None = None
        self._spelling = Spelling()
        self._was_connected = self._is_closed = False

    def target(self, queue: str) -> Target:
        return target(queue, self._place.host)

    # -- jobs -------------------------------------------------------------------------------

    def scan(
        self,
        queue: str,
        *,
        after: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        window: int = WINDOW,
    ) -> Generator[Read, None, None]:
        """Messages in order, untouched; those behind `after`, up to and with `until`."""
        job = self.scan_job(queue, after=after, until=until, limit=limit, window=window)
        with closing(self.run(job)) as batches:
            for batch in batches:
                yield from batch.reads

    def receive(
        self,
        queue: str,
        *,
        limit: int | None = None,
        wait_s: float = 0,
        window: int = WINDOW,
        seen: Iterable[Key] = (),
    ) -> Generator[Batch, None, None]:
        """Until the queue is empty for `wait_s`. Confirm a batch before you ask for the next."""
        job = self.drain_job(queue, limit=limit, wait_s=wait_s, window=window, seen=seen)
        return self.run(job)

    def receive_at(self, queue: str, lookup_id: int) -> Generator[Batch, None, None]:
        """One message, by its lookup id."""
        return self.run(self.drain_job(queue, lookup_id=lookup_id))

    def peek_at(self, queue: str, lookup_id: int) -> Read:
        wanted, client = self.target(queue), self._place.client
        return self._once(lambda: peek_at(wanted, lookup_id, self._spelling, client))

    def cuts(self, queue: str, parts: int, per_part: int = PER_PART) -> list[int]:
        """Lookup ids at which a long queue falls into so many parts or fewer; see `scan`."""
        wanted, client = self.target(queue), self._place.client
        return self._once(lambda: cuts(wanted, parts, self._spelling, client, per_part))

    def purge(self, queue: str) -> None:
        """Not repeated if the connection is lost: nobody knows then what it has removed."""
        wanted, client = self.target(queue), self._place.client
        self._once(lambda: purge(wanted, client))

    def move(self, queue: str, lookup_id: int, to: str) -> None:
        source, other, client = self.target(queue), self.target(to), self._place.client
        self._once(lambda: move(source, other, lookup_id, self._spelling, client))

    def scan_job(self, queue: str, **options: Any) -> Scan:
        options |= {"spelling": self._spelling, "client": self._place.client}
        return Scan(self.target(queue), **options)

    def drain_job(self, queue: str, *, wait_s: float = 0, **options: Any) -> Drain:
        options |= {"spelling": self._spelling, "client": self._place.client}
        return Drain(self.target(queue), wait_ms=round(wait_s * 1000), **options)

    def run(self, job: Scan | Drain) -> Generator[Batch, None, None]:
        """A reader that stops early ends what it has: what it has confirmed is removed."""
        running = Running(job.flow)
        batch = self._next_batch(running)
        while batch is not None:
            try:
                yield batch
            except GeneratorExit:
                batch.stop()
                while not self._is_closed and self._next_batch(running) is not None:
                    pass
                raise
            batch = self._next_batch(running)

    def _once(self, make: Callable[[], Flow[T]]) -> T:
        running = Running(make, retries=0)
        self._next_batch(running)
        return running.result

    def _next_batch(self, running: Running[Any]) -> Batch | None:
        """None: it is done."""
        while True:
            try:
                batch = self._advance(running)
            except ConnectionLost as lost:
                self.drop()
                self._sleep(running.lost(lost))
            except BaseException:
                self.drop()
                raise
            else:
                running.progressed()
                return batch

    def _advance(self, running: Running[Any]) -> Batch | None:
        step = running.step()
        while step is not None:
            match step:
                case Batch():
                    return step
                case Ask():
                    step = running.step(self._ask(step))
                case Pause():
                    self._sleep(step.ms / 1000)
                    step = running.step()
                case _:
                    assert_never(step)
        return None

    # -- the connection ---------------------------------------------------------------------

    def _ask(self, step: Ask) -> Answers:
        """Calls in flight together; their answers in the order of the calls."""
        timeout = self._place.call_s + step.wait_ms / 1000
        link = self._connected()
        try:
            return tuple(link.ask(step.requests, timeout))
        except RpcUnavailable as error:
            raise ConnectionLost(str(error)) from error

    def _connected(self) -> Link:
        if self._link is None:
            try:
                self._link = self._connect(self._place)
            except RpcUnavailable as error:
                if not self._was_connected:  # nobody has ever been there: no use in waiting
                    raise
                raise ConnectionLost(str(error)) from error
            self._was_connected = True
        return self._link

    def drop(self) -> None:
        """RR-56: a NACK for everything that is not ended."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def close(self) -> None:
        """What a job has not ended goes back to its queue."""
        self._is_closed = True
        self.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
