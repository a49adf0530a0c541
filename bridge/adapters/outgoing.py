"""What waits for one URL, an outgoing queue of MSMQ over HTTP. SR-70, SR-75 to SR-78

One connection: POST, wait for the answer, next. Who does not answer, or not well, is tried again
after the retransmission time; nothing overtakes it. Whose time is over goes without being sent.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from bridge.adapters.net.http_client import HttpConnection
from bridge.adapters.receipt_targets import Target
from bridge.wire.srmp.head import request_headers

RETRANSMISSION_S: Final = 20.0
CLEANUP_S: Final = 300.0  # an idle connection is closed. SR-78

_log = logging.getLogger(__name__)


class Item(Protocol):
    @property
    def expires(self) -> int:
        """Unix seconds; 0 is never."""


Key = TypeVar("Key")
Sent = TypeVar("Sent", bound=Item)


class Carrier:
    """The connection to a host, made anew when the host is found elsewhere."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._connection: HttpConnection | None = None
        self._to: tuple[str, int, str] = ("", 0, "")

    async def post(
        self, target: Target, content_type: str, body: bytes, via: Sequence[str] = ()
    ) -> int:
        """The status. Raises what `HttpConnection.post` does."""
        endpoint = target.endpoint
        to = target.address, target.port, target.tls_name
        if self._connection is None or self._to != to:
            self.close()
            self._connection = HttpConnection(
                (target.address, target.port),
                tls=self._tls if target.tls_name else None,
                server_name=target.tls_name,
            )
            self._to = to
        headers = request_headers(endpoint.authority, content_type, len(body), via)
        return await self._connection.post(endpoint.target, headers, body)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class OutgoingQueue(Generic[Key, Sent]):
    """`deliver` tells whether there is nothing more to do; `expire` is told whose time is over,
    `leave` when nothing has come for a while."""

    def __init__(
        self,
        carrier: Carrier,
        deliver: Callable[[Carrier, Sent], Awaitable[bool]],
        expire: Callable[[Sent], None],
        leave: Callable[[], None],
        retransmission_s: float,
    ) -> None:
        self._carrier, self._retransmission_s = carrier, retransmission_s
        self._deliver, self._expire, self._leave = deliver, expire, leave
        self._came = asyncio.Event()
        self.waiting: dict[Key, Sent] = {}
        self.is_inactive = False  # the last attempt failed
        self.task = asyncio.create_task(self._serve())
        self.task.add_done_callback(_complain)

    def put(self, key: Key, item: Sent) -> None:
        self.waiting[key] = item
        self._came.set()

    async def _serve(self) -> None:
        try:
            while True:
                while self.waiting:
                    await self._next()
                self._came.clear()
                try:
                    async with asyncio.timeout(CLEANUP_S):
                        await self._came.wait()
                except TimeoutError:
                    if not self.waiting:  # some may have come in this very moment
                        return
        finally:
            self._carrier.close()
            self._leave()

    async def _next(self) -> None:
        key, item = next(iter(self.waiting.items()))
        if _is_over(item):
            del self.waiting[key]
            self._expire(item)
            return
        self.is_inactive = not await self._deliver(self._carrier, item)
        if self.is_inactive:
            self._carrier.close()
            self._drop_late()
            await asyncio.sleep(self._retransmission_s)
        elif self.waiting.get(key) is item:
            del self.waiting[key]

    def _drop_late(self) -> None:
        """Also those that stand behind one that can wait for ever."""
        for key in [key for key, item in self.waiting.items() if _is_over(item)]:
            self._expire(self.waiting.pop(key))


def _is_over(item: Item) -> bool:
    return 0 < item.expires < int(time.time())  # SR-63: strictly later


def _complain(task: asyncio.Task[None]) -> None:
    """A bug of ours ends one queue, loudly; what waits in it is in Kafka."""
    if not task.cancelled() and (fault := task.exception()) is not None:
        _log.error("what goes to one URL has stopped", exc_info=fault)
