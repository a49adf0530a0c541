"""A connection that somebody made to us: bytes in and out, plain or TLS, no wait without its end.

All waiting is in `more`. Whatever ends a connection (time, the peer, the server) is noted and
raised there; a task that is busy elsewhere is not disturbed.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from bridge.adapters.net.http_request import Refusal, Refused
from bridge.adapters.net.tls_stream import TlsStream
from bridge.model.hosts import canonical, without_scope

AHEAD: Final = 64 << 10  # bytes that are read before anybody asks for them

GONE: Final = Refusal(0, "")  # in peace
CUT: Final = Refusal(0, "http-cut")
BAD_TLS: Final = Refusal(0, "http-tls")

# One for all: a read and what follows from it are not interrupted.
_BUFFER: Final = memoryview(bytearray(64 << 10))


class ServedStream(asyncio.BufferedProtocol):
    def __init__(self, tls: ssl.SSLContext | None, count_bytes: Callable[[int], None]) -> None:
        self._context = tls
        self._count_bytes = count_bytes
        self._tls: TlsStream | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = math.inf
        self._late = GONE
        self._timer: asyncio.TimerHandle | None = None
        self._end: tuple[Refusal, str] | None = None
        self._eof = False
        self.buffer = bytearray()  # what has come and is not taken yet
        self.idle = True  # whoever goes now leaves nothing undone
        self.lost = False
        self.choked = False  # it does not read what we write
        self.peer = self.local = ""
        self.closed: asyncio.Future[None]

    @property
    def secure(self) -> bool:
        return self._context is not None

    def made(self) -> None:
        """It is there; to be overridden."""

    # -- asyncio.BufferedProtocol -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self.closed = self._loop.create_future()
        self.peer = _ip(transport.get_extra_info("peername"))
        self.local = _ip(transport.get_extra_info("sockname"))
        self.made()
        if self._context is not None and not transport.is_closing():
            self._tls = TlsStream(self._context)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as large as it is
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self._count_bytes(nbytes)
        if self._tls is None:
            self.buffer += _BUFFER[:nbytes]
        else:
            self._decrypt(self._tls, _BUFFER[:nbytes])
        if self._waiter is not None:
            self._wake()
        elif len(self.buffer) > AHEAD:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._eof = True
        self._wake()
        return True  # who has said all may still hear

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a reset hangs up too
        self.lost = True
        self.interrupt(GONE if self.idle else CUT)
        self._set_deadline(math.inf)
        self.closed.set_result(None)

    def pause_writing(self) -> None:
        self.choked = True
        self._transport.pause_reading()  # TLS, too, answers what it reads

    def resume_writing(self) -> None:
        self.choked = False
        self._wake()

    @property
    def peer_names(self) -> tuple[str, ...]:
        """Of the certificate that the client has shown."""
        return () if self._tls is None else self._tls.peer_names

    # -- waiting ----------------------------------------------------------------------------

    async def more(self, by: float, late: Refusal) -> None:
        """Return when something has come; Refused when nothing will, or not in time."""
        if self._eof:
            raise Refused(GONE if self.idle else CUT)
        if not self.choked:
            self._transport.resume_reading()
        await self._wait(by, late)

    async def heard(self, by: float, late: Refusal) -> None:
        """Return when the peer has read most of what we wrote; meanwhile we read nothing."""
        while self.choked:
            await self._wait(by, late)

    async def _wait(self, by: float, late: Refusal) -> None:
        if self._end is None:
            self._late = late
            self._waiter = self._loop.create_future()
            self._set_deadline(by)
            try:
                await self._waiter
            finally:
                self._waiter = None
                self._deadline = math.inf  # its timer may go on
        self.check()

    def check(self) -> None:
        """Refused if something has ended it meanwhile."""
        if self._end is not None:
            raise Refused(*self._end)

    def interrupt(self, why: Refusal, detail: str = "") -> None:
        """Ends the wait, or the next one; what came first counts."""
        self._end = self._end or (why, detail)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _set_deadline(self, by: float) -> None:
        """The timer is not armed anew for every read: when it is too early it goes on."""
        self._deadline = by
        if self._timer is not None and (by < self._timer.when() or self.lost):
            self._timer.cancel()
            self._timer = None
        if self._timer is None and by < math.inf:
            self._timer = self._loop.call_at(by, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._deadline > self._loop.time():
            self._set_deadline(self._deadline)
        else:
            self.interrupt(self._late)

    async def linger(self, by: float, most: int) -> None:
        """Read on for a while: closing on unread bytes resets, and our last words would be lost."""
        self._end_tls()
        with suppress(OSError):  # it is gone already
            self._transport.write_eof()
        self._end = None
        with suppress(Refused):
            while most > 0 and not self.lost:
                most -= len(self.buffer)
                self.buffer.clear()
                await self.more(by, GONE)

    # -- bytes out --------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._tls is not None:
            try:
                self._tls.write(data)
            except ssl.SSLError as fault:
                self.interrupt(BAD_TLS, str(fault))
            data = self._tls.take()
        self._send(data)

    def close(self, linger_s: float) -> None:
        """What is written may still go out."""
        self._end_tls()
        self._transport.close()
        if self._transport.get_write_buffer_size():  # who does not read does not stay either
            self._loop.call_later(linger_s, self._transport.abort)

    def abort(self) -> None:
        self._transport.abort()

    def _decrypt(self, tls: TlsStream, data: memoryview) -> None:
        try:
            tls.feed(data, self.buffer)
        except ssl.SSLError as fault:
            self.interrupt(BAD_TLS, str(fault))
        self._eof = self._eof or tls.ended
        self._send(tls.take())

    def _end_tls(self) -> None:
        if self._tls is not None:
            self._tls.end()
            self._send(self._tls.take())

    def _send(self, data: bytes) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)


def _ip(address: Any) -> str:
    """None if the other side has gone already."""
    if address is None:
        return ""
    return without_scope(canonical(str(address[0])))
