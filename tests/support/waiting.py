"""Waiting for something that no event tells about, with a deadline."""

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
