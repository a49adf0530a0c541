"""Waiting for something that no event tells about, with a deadline."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T], timeout_s: float = 30.0) -> T:
    """The first truthy answer of `check`; fails when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (answer := check()):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {check}"
        time.sleep(0.02)
    return answer


async def until(check: Callable[[], T], timeout_s: float = 30.0) -> T:
    """`eventually`, while the loop goes on."""
    async with asyncio.timeout(timeout_s):
        while not (answer := check()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return answer
