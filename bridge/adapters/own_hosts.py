"""Which hosts in a URL are this machine: its names, its addresses, and what stands for it.
MC-MQSRM 3.1.5.1.3

A message for any other host is refused with 400, and its sender deletes it. So with
`queue_manager.names: auto` the name service decides about names that are not listed; while it does
not answer, the answer is open, and the sender keeps its message.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from bridge.model.cache import Cache, text_size

_CACHE: Final = 10_000  # hosts come from outside: bounded, in bytes too
_CACHE_BYTES: Final = 4 << 20
LOOKUP_S: Final = 5.0
MOST_LOOKUPS: Final = 64  # at a time; the sender of one more tries again later
OURS_S: Final = 600.0  # an answer of the name service counts for so long
NOT_OURS_S: Final = 60.0
MOST_REJECTED: Final = 100
SHOWN: Final = 20
MAX_HOST: Final = 255
_TEMPORARY: Final = frozenset((socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_SYSTEM))


class OwnHosts:
    def __init__(self, names: Iterable[str], lookups: Lookups | None = None) -> None:
        """`lookups`: ask the name service about other names."""
        self._names = {name.lower().strip("[]").removesuffix(".") for name in names} | {"localhost"}
        self._addresses: Cache[str, bool] = Cache(_CACHE, _CACHE_BYTES)
        self._lookups = lookups

    async def include(self, host: str) -> bool | None:
        """As `in`, with the name service; None: it does not answer now."""
        if host in self:
            return True
        if self._lookups is None or not host or len(host) > MAX_HOST or _is_address(host):
            return False
        return await self._lookups.lead_here(host)

    def __contains__(self, host: str) -> bool:
        """`host` as `redirection.host_of` gives it."""
        if host in self._names:
            return True
        known = self._addresses.get(host)
        if known is None:
            known = self._addresses.keep(host, _is_own_address(host), text_size(host))
        return known


class Lookups:
    """Asks the name service whether a name leads to this machine.

    Names come from strangers: the answers are bounded and age, and lookups run in threads of their
    own, so that a slow name service holds up nothing else.
    """

    def __init__(self) -> None:
        self._known: Cache[str, tuple[bool, float]] = Cache(1_000, 1 << 20)
        self._running: dict[str, asyncio.Task[bool | None]] = {}
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="own-hosts")

    async def lead_here(self, host: str) -> bool | None:
        known = self._known.get(host)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        task = self._running.get(host)
        if task is None:
            if len(self._running) >= MOST_LOOKUPS:
                return None
            task = self._running[host] = asyncio.create_task(self._look_up(host))
            task.add_done_callback(lambda _: self._running.pop(host, None))
        return await asyncio.shield(task)

    async def _look_up(self, host: str) -> bool | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LOOKUP_S):
                found = await loop.run_in_executor(self._threads, _leads_here, host)
        except TimeoutError:
            return None
        if found is not None:
            until = time.monotonic() + (OURS_S if found else NOT_OURS_S)
            self._known.keep(host, (found, until), text_size(host))
        return found

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class RejectedHosts:
    """Host names that messages were refused for, so that the operator sees what to add.

    At the bound the one with the fewest messages gives way, of several the oldest."""

    def __init__(self, most: int = MOST_REJECTED) -> None:
        self._most = most
        self._rows: dict[str, tuple[int, float]] = {}  # how often, and when last

    def add(self, host: str, at: float) -> None:
        host = host[:MAX_HOST]
        count, _ = self._rows.pop(host, (0, 0.0))
        if len(self._rows) >= self._most:
            del self._rows[min(self._rows, key=lambda one: self._rows[one][0])]
        self._rows[host] = count + 1, at

    def rows(self) -> list[dict[str, Any]]:
        """The most frequent first."""
        found = sorted(self._rows.items(), key=lambda item: -item[1][0])[:SHOWN]
        return [
            {
                "host": host,
                "messages": count,
                "last": datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z"),
            }
            for host, (count, at) in found
        ]


def _leads_here(host: str) -> bool | None:
    """In a thread: a name service may be slow."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except socket.gaierror as error:
        return None if error.errno in _TEMPORARY else False
    except (OSError, ValueError):  # also a label that is empty or too long, and NUL
        return False
    return any(_is_own_address(str(info[4][0]).partition("%")[0]) for info in found)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_own_address(text: str) -> bool:
    """Only an address of this machine can be bound."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_unspecified or address.is_multicast:
        return False
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True
