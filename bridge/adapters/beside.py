"""Work that takes too long for the event loop, in a few threads beside it.

Large documents are parsed here. The interpreter runs one thread at a time and changes every few
milliseconds, so the event loop goes on in between; more threads would only slow it down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

AT_ONCE: Final = 2

T = TypeVar("T")
_threads: Final = ThreadPoolExecutor(AT_ONCE, "parse")


async def beside_the_loop(work: Callable[[], T]) -> T:
    """Wait for the result, and for a thread if all are busy; first come, first served."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
