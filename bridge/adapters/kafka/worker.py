"""One thread for the blocking calls of one shard, in order; never in the way of an exit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")


class Worker:
    """A daemon: a call that hangs in a dead broker must not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    async def run(self, call: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def answer() -> None:
            try:
                result = call()
            except BaseException as error:
                tell(future.set_exception, error)
            else:
                tell(future.set_result, result)

        def tell(how: Callable[[Any], None], what: object) -> None:
            with suppress(RuntimeError):  # the loop is gone: nobody waits any more
                loop.call_soon_threadsafe(lambda: None if future.done() else how(what))

        self._calls.put(answer)
        return await future

    def stop(self) -> None:
        """After the calls that wait."""
        self._calls.put(None)
