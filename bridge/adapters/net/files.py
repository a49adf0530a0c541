"""File descriptors: how many there may be, and how many of them connections may take.

When none is left `accept` fails, and not only for strangers: the admin port answers nobody either
and Kafka cannot be reached anew. (asyncio of Python 3.11 moreover tries and logs it a whole backlog
of times every second.) So connections never take the last ones.
"""

from __future__ import annotations

import resource
import sys
from typing import Final

ENOUGH: Final = 131_072
SPARE: Final = (
    512  # for Kafka, the admin port, the index, and what is accepted before it is counted
)


def raise_file_limit() -> None:
    """To what the system lets us have: the usual 1,024 is for programs that use select()."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """As the limit is now; an operator may change it while we run (prlimit)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    return soft - min(SPARE, soft // 2)
