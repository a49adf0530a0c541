"""One thread for blocking calls: in order, with their errors, never in the way of an exit."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from bridge.adapters.kafka.worker import Worker
from tests.support.waiting import eventually


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_calls_run_in_order_in_one_thread() -> None:
    ran: list[tuple[int, str]] = []

    def call(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        ran.append((number, threading.current_thread().name))
        return number

    async def test() -> None:
        worker = Worker("shard-order")
        answers = await asyncio.gather(*(worker.run(lambda n=n: call(n)) for n in range(30)))  # type: ignore[misc]
        assert answers == list(range(30))
        assert ran == [(n, "shard-order") for n in range(30)]
        worker.stop()

    asyncio.run(test())


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_reaches_the_caller_and_the_next_call_runs(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def test() -> None:
        worker = Worker("shard-error")
        caught: BaseException | None = None
        try:
            await worker.run(fail)
        except BaseException as raised:
            caught = raised
        assert caught is error
        assert await worker.run(lambda: 5) == 5
        worker.stop()

    asyncio.run(test())


def test_the_loop_goes_on_while_a_call_blocks() -> None:
    async def test() -> None:
        worker, release = Worker("shard-block"), threading.Event()
        call = asyncio.create_task(worker.run(lambda: release.wait(30)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not call.done()
        release.set()
        assert await call is True
        worker.stop()

    asyncio.run(test())


def test_stop_comes_after_the_calls_that_wait() -> None:
    async def test() -> None:
        worker, release = Worker("shard-stop"), threading.Event()
        first = asyncio.create_task(worker.run(lambda: release.wait(30)))
        second = asyncio.create_task(worker.run(lambda: "second"))
        await asyncio.sleep(0)
        worker.stop()
        assert len(threads("shard-stop")) == 1
        release.set()
        assert (await first, await second) == (True, "second")

    asyncio.run(test())
    eventually(lambda: not threads("shard-stop"))


def test_who_does_not_wait_any_more_is_not_told() -> None:
    async def test() -> None:
        worker, release = Worker("shard-cancel"), threading.Event()
        call = asyncio.create_task(worker.run(lambda: release.wait(30)))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        release.set()
        assert await worker.run(lambda: 1) == 1  # so the answer of the first has been given
        worker.stop()

    asyncio.run(test())


def test_a_loop_that_is_gone_is_no_error() -> None:
    release, done = threading.Event(), threading.Event()
    worker = Worker("shard-late")

    async def test() -> None:
        call = asyncio.create_task(worker.run(lambda: release.wait(30)))
        await asyncio.sleep(0)
        call.cancel()

    asyncio.run(test())
    release.set()
    worker._calls.put(done.set)
    assert done.wait(30)
    worker.stop()
    eventually(lambda: not threads("shard-late"))


HANGS = """
import asyncio, threading
from bridge.adapters.kafka.worker import Worker

async def main():
    worker, began = Worker("hangs"), asyncio.Event()
    loop = asyncio.get_running_loop()
    def hang():
        loop.call_soon_threadsafe(began.set)
        threading.Event().wait()
    call = asyncio.create_task(worker.run(hang))
    await began.wait()
    worker.stop()
    call.cancel()

asyncio.run(main())
print("leaving")
"""


def test_a_call_that_hangs_does_not_keep_the_process() -> None:  # design D3
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")
