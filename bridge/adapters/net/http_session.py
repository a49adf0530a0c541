"""One connection of a client: requests in, answers out, one after the other.

The task of a session reads one request, has it handled, answers, and reads the next. While a
request is handled nothing ends it: what the handler has begun is finished, whether or not somebody
is left to hear the answer.

Time-outs and crowds are never answered with 400: a sender would throw its message away (srmp.md
1.4). It tries again after 503, or after no answer.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

import msgspec

from bridge.adapters.net.http_request import (
    LARGE_HEAD,
    MALFORMED,
    ChunkedBody,
    Head,
    HttpRequest,
    Refusal,
    Refused,
    read_head,
)
from bridge.adapters.net.served_stream import GONE, ServedStream
from bridge.adapters.telemetry import SessionFacts, Telemetry
from bridge.wire.srmp.request import MAX_BODY

_log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[HttpRequest], Awaitable[int]]
"""Returns the status: 200, 400, 500 or 503."""

SILENT: Final = Refusal(0, "http-silent")
SLOW_HEAD: Final = Refusal(503, "http-slow-head")
SLOW_BODY: Final = Refusal(503, "http-slow-body")
SLOW_READER: Final = Refusal(0, "http-slow-reader")
UNFINISHED: Final = Refusal(503, "http-unfinished")  # too much of all bodies together
FAULT: Final = "http-fault"  # of the handler
CROWDED: Final = "http-crowded"

_END: Final = re.compile(rb"\n\r?\n")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES: Final = {
    200: "OK",
    400: "Bad Request",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_TAKEN: Final = 200
_STAY, _STAY_10, _CLOSE = "", "Connection: keep-alive\r\n", "Connection: close\r\n"
_ANSWERS: Final = {
    (status, line): f"HTTP/1.1 {status} {phrase}\r\nContent-Length: 0\r\n{line}\r\n".encode()
    for status, phrase in _PHRASES.items()
    for line in (_STAY, _STAY_10, _CLOSE)
}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes, seconds, numbers."""

    head: int = 64 << 10
    head_s: float = 15.0  # from its first byte; the first head: from the start of the connection
    body: int = MAX_BODY
    body_s: float = 30.0  # and one more for every `rate` bytes that have come
    rate: int = 8 << 10
    bodies: int = 128 << 20  # of all connections together, until they are answered
    idle_s: float = 360.0  # longer than a sender keeps it: 300 s (SR-78)
    answer_s: float = 15.0  # for a peer to take its answers
    linger_s: float = 5.0  # for a peer to see why it is refused
    linger: int = 8 << 20  # bytes that it may still send meanwhile
    connections: int = 2000
    per_peer: int = 256
    hang_up_s: float = 5.0  # for answers that are being made when all ends


class Owner(Protocol):
    """Who keeps the sessions and shares the room among them."""

    handle: Handler
    telemetry: Telemetry
    limits: Limits

    def made(self, session: HttpSession) -> bool:
        """Whether it may stay."""

    def served(self, session: HttpSession) -> None: ...

    def holds(self, session: HttpSession, size: int) -> None:
        """So much has come of a body that is not whole."""

    def takes(self, session: HttpSession, size: int) -> bool:
        """A whole body, if there is room for it; until `gives_back`."""

    def gives_back(self, size: int) -> None: ...

    def lost(self, session: HttpSession) -> None: ...


class HttpSession(ServedStream):
    def __init__(self, owner: Owner, tls: ssl.SSLContext | None) -> None:
        super().__init__(tls, self._count)
        self._owner, self._limits = owner, owner.limits
        self._bytes = self._requests = 0
        self._reason = "peer-closed"
        self._unix, self._mono = time.time(), time.monotonic()
        self.busy = False  # a request is handled
        self._leaving = False  # as soon as nothing is handled
        self.task: asyncio.Task[None]

    def made(self) -> None:
        if self._owner.made(self):
            self.task = self._loop.create_task(self._run())
        else:
            if not self.secure:
                self.write(_ANSWERS[503, _CLOSE])
            self.close(self._limits.linger_s)

    def _count(self, nbytes: int) -> None:
        self._bytes += nbytes
        self._owner.telemetry.bytes_received(nbytes)

    # -- the owner --------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return not self.busy

    def give_way(self) -> None:
        """Another needs the place; nothing of this one is being handled."""
        self.idle = False
        self.interrupt(Refusal(0, CROWDED))
        self.abort()

    def leave(self) -> None:
        """An answer that is being made is the last one."""
        self._leaving, self._reason = True, "shutdown"
        if not self.busy:
            self.interrupt(GONE)

    def cancel(self) -> None:
        self.task.cancel()
        self.abort()

    # -- the conversation -------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            try:
                await self._converse()
            except Refused as refused:
                self._refuse(refused)
            await self._part()
        except Exception:
            _log.exception("%s: a fault of ours", self.peer)
            self._owner.telemetry.refusal(FAULT)
            self._reason = FAULT
        finally:
            self._forget()
            self.close(self._limits.linger_s)
            try:
                await self.closed
            finally:
                self._owner.lost(self)
                self._tell()

    @property
    def _transport_name(self) -> str:
        return "https" if self.secure else "http"

    def _tell(self) -> None:
        self._owner.telemetry.session_over(
            SessionFacts(
                transport=self._transport_name,
                peer=self.peer,
                messages=self._requests,
                bytes=self._bytes,
                began=self._unix,
                seconds=time.monotonic() - self._mono,
                reason=self._reason,
                was_open=self._requests > 0,
            )
        )

    async def _converse(self) -> None:
        by, late = self._loop.time() + self._limits.head_s, SILENT
        while True:
            head = await self._read_head(by, late)
            stays = await self._answer(head, await self._read_body(head))
            if not stays:
                return
            self.check()
            self._owner.served(self)
            if self.choked:
                await self.heard(self._loop.time() + self._limits.answer_s, SLOW_READER)
            if self.buffer:
                await asyncio.sleep(0)  # who sends many at once is not the only one
            self.idle = True
            by, late = self._loop.time() + self._limits.idle_s, GONE

    async def _read_head(self, by: float, late: Refusal) -> Head:
        buffer, limits = self.buffer, self._limits
        while not _begins(buffer):
            await self.more(by, late)
        self.idle = False
        by, searched = min(by, self._loop.time() + limits.head_s), 0
        while (end := _END.search(buffer, searched)) is None and len(buffer) <= limits.head:
            if buffer[0] <= 0x20:  # no method: TLS, or anything else
                raise Refused(MALFORMED)
            searched = max(0, len(buffer) - 2)
            await self.more(by, SLOW_HEAD)
        if end is None or end.end() > limits.head:
            raise Refused(LARGE_HEAD)
        raw = bytes(buffer[: end.end()])
        del buffer[: end.end()]
        return read_head(raw, limits.body)

    async def _read_body(self, head: Head) -> bytes:
        if head.expects and not self.buffer and (head.length or head.chunked):
            self.write(_CONTINUE)
        if head.chunked:
            return await self._read_chunks(head)
        buffer, size = self.buffer, head.length
        if len(buffer) < size:
            began = self._loop.time()
            while len(buffer) < size:
                await self._more_of_body(began, len(buffer))
        with memoryview(buffer) as view:
            body = bytes(view[:size])
        del buffer[:size]
        return body

    async def _read_chunks(self, head: Head) -> bytes:
        began, found = self._loop.time(), ChunkedBody(head, self._limits.body)
        while not found.feed(bytes(self.buffer)):
            self.buffer.clear()
            await self._more_of_body(began, len(found.body))
        self.buffer[:] = found.rest
        return bytes(found.body)

    async def _more_of_body(self, began: float, size: int) -> None:
        self._owner.holds(self, size)
        limits = self._limits
        await self.more(began + limits.body_s + size / limits.rate, SLOW_BODY)

    async def _answer(self, head: Head, body: bytes) -> bool:
        """Whether the conversation goes on."""
        if not self._owner.takes(self, len(body)):
            raise Refused(UNFINISHED)
        self.busy, stays = True, head.stays
        if not self._requests:
            self._owner.telemetry.session_began(self._transport_name, self.peer)
        self._requests += 1
        came = self._loop.time()
        try:
            request = head.request(body, self.peer, self.local, self.secure, self.peer_names)
            status = await self._owner.handle(request)
            if status not in _PHRASES:
                raise ValueError(f"{status} is not a status that SRMP has")
        except Exception:
            _log.exception("%s: %s was not handled", self.peer, head.target)
            self._owner.telemetry.refusal(FAULT)
            stays, status = False, 500
        finally:
            self.busy = False
            self._owner.gives_back(len(body))
        stays = stays and not self._leaving
        self.write(_ANSWERS[status, (_STAY if head.modern else _STAY_10) if stays else _CLOSE])
        if status == _TAKEN:
            seconds = self._loop.time() - came
            self._owner.telemetry.ack_seconds[self._transport_name].observe(seconds)
        return stays

    def _refuse(self, refused: Refused) -> None:
        status, reason = refused.refusal
        if reason:
            self._reason = reason
            self._owner.telemetry.refused(reason, self.peer, refused.detail, self._transport_name)
        if status:
            self.write(_ANSWERS[status, _CLOSE])
        else:
            self._leaving = True  # there is nothing to wait for

    async def _part(self) -> None:
        self._forget()
        if not self._leaving:
            await self.linger(self._loop.time() + self._limits.linger_s, self._limits.linger)

    def _forget(self) -> None:
        self.buffer.clear()
        self._owner.holds(self, 0)


def _begins(buffer: bytearray) -> bool:
    """Blank lines before a request mean nothing. RFC 9112 2.2"""
    if buffer and buffer[0] in b"\r\n":
        buffer[:] = buffer.lstrip(b"\r\n")
    return bool(buffer)
