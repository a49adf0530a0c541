"""A sender with the retry timer of Windows: what a hand-over is to one that is not in a hurry.

It opens a session and keeps it. When that breaks it waits for its Session Retry Connect timer,
which is 5 s, and tries once; if nobody is there, again 5 s later. MS-MQQB 3.1.6.1, QB-27
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import uuid4

from tests.chaos.history import Break
from tests.outside.rawconnection import Address
from tests.outside.rawmsmq import cp_request, ec_request

RETRY_S: Final = 5.0
ANSWER_S: Final = 10.0


class Patient:
    def __init__(self, place: Callable[[], Address | None], breaks: list[Break]) -> None:
        self._place, self._breaks = place, breaks
        self._guid = uuid4()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """With an open session."""
        assert await self._get_in()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()

    async def _run(self) -> None:
        while True:
            assert self._reader is not None
            with suppress(ConnectionError):
                while await self._reader.read(1024):
                    pass
            at, tries, is_in = time.monotonic(), 0, False
            while not is_in:
                await asyncio.sleep(RETRY_S)
                is_in = await self._get_in()
                tries += 1
            self._breaks.append(Break(at, tries, time.monotonic()))

    async def _get_in(self) -> bool:
        """One attempt: connected, and greeted with an EstablishConnection packet."""
        address = self._place()
        if address is None:
            return False
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                self._reader, writer = await asyncio.open_connection(*address)
                if self._writer is not None:
                    self._writer.close()
                self._writer = writer
                writer.write(ec_request(self._guid))
                answer = await self._reader.read(1024)
                writer.write(cp_request())
                return bool(answer)
        return False
