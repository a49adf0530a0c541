"""Work beside the event loop: the loop goes on, and few threads work at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from bridge.adapters.beside import AT_ONCE, beside_the_loop


def test_the_loop_goes_on_and_few_work_at_once() -> None:
    release, started = threading.Event(), threading.Semaphore(0)
    working: list[int] = []
    most: list[int] = []

    def work() -> int:
        working.append(1)
        most.append(len(working))
        started.release()
        assert release.wait(30)
        working.pop()
        return 7

    async def scene() -> None:
        tasks = [asyncio.create_task(beside_the_loop(work)) for _ in range(3 * AT_ONCE)]
        for _ in range(AT_ONCE):  # the loop goes on while they work
            assert await asyncio.to_thread(started.acquire, True, 30)
        assert not any(task.done() for task in tasks)
        release.set()
        assert await asyncio.gather(*tasks) == [7] * len(tasks)

    asyncio.run(scene())
    assert max(most) == AT_ONCE


def test_what_it_raises_arrives() -> None:
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(beside_the_loop(broken))
