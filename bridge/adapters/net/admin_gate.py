"""The connections of the admin port: how many there may be, and how long each has for a request.

aiohttp speaks HTTP; what it does not do is done here. A connection is counted as soon as it is
accepted, before TLS, in the same hall as those of all other listeners (`crowd`): half requests take
no file descriptor that a sender or Kafka needs. A peer has `HEAD_S` for TLS, for the head of each
request and to take each answer; while a request is handled it has as long as that takes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final, cast

from bridge.adapters.net.crowd import Crowd, Hall
from bridge.adapters.net.listening import listen
from bridge.adapters.telemetry import Telemetry

HEAD_S: Final = 15.0
PER_ADDRESS: Final = 64
MOST: Final = 256
CROWDED: Final = "admin-crowded"
SLOW: Final = "admin-slow"

MakeHandler = Callable[[], asyncio.Protocol]


class AdminGate:
    """Accepts connections and hands them to handlers that `make` makes."""

    def __init__(
        self, telemetry: Telemetry, hall: Hall | None = None, head_s: float = HEAD_S
    ) -> None:
        self.telemetry, self.head_s = telemetry, head_s
        self.crowd: Crowd[Visitor] = Crowd(hall, per_address=PER_ADDRESS, strangers=MOST, most=MOST)
        self._visitors: dict[object, Visitor] = {}  # by their handlers
        self._server: asyncio.Server | None = None

    async def start(
        self, make: MakeHandler, host: str, port: int, tls: ssl.SSLContext | None
    ) -> str:
        """Listen; returns `host:port` as it really is."""
        self._server, address = await listen(
            lambda: Visitor(self, make, tls), host, port, "listen.admin"
        )
        return address

    def stop(self) -> None:
        """Take no more."""
        if self._server is not None:
            self._server.close()

    def began(self, handler: object) -> None:
        """The handler has the head of a request."""
        if (visitor := self._visitors.get(handler)) is not None:
            visitor.began()

    def ended(self, handler: object) -> None:
        """Its answer is made."""
        if (visitor := self._visitors.get(handler)) is not None:
            visitor.ended()

    def joined(self, visitor: Visitor, handler: object) -> None:
        self._visitors[handler] = visitor

    def left(self, visitor: Visitor, handler: object) -> None:
        self._visitors.pop(handler, None)
        self.crowd.leave(visitor)


class Visitor(asyncio.Protocol):
    """One connection; all that happens to it is told to its handler."""

    def __init__(self, gate: AdminGate, make: MakeHandler, tls: ssl.SSLContext | None) -> None:
        self._gate, self._make, self._tls = gate, make, tls
        self._loop = asyncio.get_running_loop()
        self._handler: asyncio.Protocol | None = None  # once it has a transport
        self._raw: asyncio.Transport | None = None
        self._host = ""
        self._early: list[bytes] = []  # what came with the end of the TLS handshake
        self._upgrade: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_busy = False  # a request is handled
        self._is_unfinished = False  # something came of the next one

    # -- the crowd --------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return not self._is_busy

    def give_way(self) -> None:
        self._gate.telemetry.refused(CROWDED, self._host, transport="admin")
        self._abort()

    # -- requests ---------------------------------------------------------------------------

    def began(self) -> None:
        self._is_busy, self._is_unfinished = True, False
        self._stop_timer()
        self._gate.crowd.opened(self)
        self._gate.crowd.used(self)

    def ended(self) -> None:
        self._is_busy = False
        self._start_timer()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(self._gate.head_s, self._on_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_late(self) -> None:
        if self._is_unfinished:
            self._gate.telemetry.refused(SLOW, self._host, transport="admin")
        self._abort()

    def _abort(self) -> None:
        if self._raw is not None:
            self._raw.abort()

    # -- the connection ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self._host = (transport.get_extra_info("peername") or ("",))[0]
        if not self._gate.crowd.arrive(self, self._host):
            self.give_way()
            return
        self._start_timer()
        if self._tls is None:
            self._join(self._raw)
        else:
            self._upgrade = self._loop.create_task(self._secure(self._raw, self._tls))

    async def _secure(self, raw: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secured = await self._loop.start_tls(
                raw, self, tls, server_side=True, ssl_handshake_timeout=self._gate.head_s
            )
        except (OSError, ssl.SSLError):  # that was no TLS, or it hung up
            secured = None
        if secured is None:
            self._raw = raw
            raw.abort()
            self._leave(None)
            return
        self._join(secured)

    def _join(self, transport: asyncio.Transport) -> None:
        self._handler = handler = self._make()
        self._gate.joined(self, handler)
        handler.connection_made(transport)
        early, self._early = self._early, []
        for data in early:
            handler.data_received(data)

    def data_received(self, data: bytes) -> None:
        self._is_unfinished = not self._is_busy
        if self._handler is None:
            self._early.append(data)
        else:
            self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._handler is None else self._handler.eof_received()

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave(exc)

    def _leave(self, exc: Exception | None) -> None:
        self._stop_timer()
        handler, self._handler = self._handler, None
        self._gate.left(self, handler)
        if handler is not None:
            handler.connection_lost(exc)
