"""Readers of a retained queue, beside its senders: what they were told, and what they saw.

These use the admin port; `remote_readers.py` has those that speak MSMQ.

A receive is told (a message, and it is removed), empty, or cut off: then nobody can say whether it
took one. A look is the whole queue at one moment, asked for after a step.
"""

import asyncio
import http.client
import time
from collections.abc import Callable
from typing import Final

from tests.chaos.history import History, Look, Read
from tests.chaos.process import TOKEN
from tests.chaos.remote_readers import RemoteReaders
from tests.outside.rawconnection import Address
from tests.outside.retained.clerk import Clerk, RefusedError, Seen, path

READERS: Final = 2
WAIT_S: Final = 1.0
PAUSE_S: Final = 0.1  # of each reader, so that some messages wait whenever something happens
PATIENCE_S: Final = 60.0  # while nobody reads anything
CUT_OFF: Final = (OSError, http.client.HTTPException, RefusedError, LookupError, ValueError)


class Door:
    """Wherever the bridge is now."""

    def __init__(self, place: Callable[[], Address | None]) -> None:
        self._place = place

    @property
    def listeners(self) -> dict[str, Address]:
        found = self._place()
        return {} if found is None else {"admin": found}

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}


class Readers:
    """Those of the admin port; the remote ones begin and end with them."""

    def __init__(
        self,
        queue: str,
        place: Callable[[], Address | None],
        history: History,
        remote: RemoteReaders,
    ) -> None:
        self._queue, self._history, self._remote = path(queue), history, remote
        self._clerk = Clerk(Door(place))
        self._tasks: list[asyncio.Task[None]] = []
        self._is_last = False

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._read()) for _ in range(READERS)]
        self._remote.start()

    async def _read(self) -> None:
        """Until the queue is empty and nothing new comes."""
        while True:
            read = Read(asked_at=time.monotonic())
            self._history.reads.append(read)
            wait_s = 0.0 if self._is_last else WAIT_S
            try:
                found = await asyncio.to_thread(self._clerk.receive, self._queue, wait_s=wait_s)
            except CUT_OFF:
                read.is_cut_off, read.over_at = True, time.monotonic()
                await asyncio.sleep(PAUSE_S)
                continue
            if found is not None:
                read.told_at = time.monotonic()
                read.identity, read.place = found.id, found.lookup_id
                self._history.events["messages read"] += 1
            elif wait_s == 0.0:
                return
            if not self._is_last:
                await asyncio.sleep(PAUSE_S)

    async def look(self, *, is_last: bool = False) -> bool:
        """The whole queue now, if somebody answers."""
        at = time.monotonic()
        try:
            found = await asyncio.to_thread(self._clerk.peek, self._queue)
        except CUT_OFF:
            return False
        self._history.looks.append(Look(at, [_place_of(one) for one in found], is_last))
        return True

    async def finish(self) -> None:
        """All is healed and the senders are quiet: take what is left, and look once more."""
        self._is_last = True
        waiting = {*self._tasks, *self._remote.finish()}
        while waiting:
            count = len(self._history.reads)
            done, waiting = await asyncio.wait(waiting, timeout=PATIENCE_S)
            for task in done:
                task.result()
            if not done and len(self._history.reads) == count:
                raise TimeoutError("readers wait for ever")
        assert await self.look(is_last=True), "the last look was not answered"

    async def stop(self) -> None:
        await self._remote.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _place_of(seen: Seen) -> tuple[str, int]:
    return seen.id, seen.lookup_id
