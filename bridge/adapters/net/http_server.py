"""The HTTP listener, plain and TLS: who may connect, and how much all may send together.

When there is no room another connection of the same address makes place, or one of the address
that has the most (`crowd`), unless its request is being handled: it is idle, and HTTP lets a server
close it, or it is slow, and a sender that hears nothing tries again. If all are being handled, the
newcomer is turned away with 503.
"""

from __future__ import annotations

import asyncio
import ssl

from bridge.adapters.net.crowd import Crowd, Hall
from bridge.adapters.net.http_request import HttpRequest
from bridge.adapters.net.http_session import CROWDED, UNFINISHED, Handler, HttpSession, Limits
from bridge.adapters.net.listening import listen
from bridge.adapters.telemetry import Telemetry

__all__ = ["Handler", "HttpRequest", "HttpServer", "Limits"]


class HttpServer:
    def __init__(
        self,
        handle: Handler,
        telemetry: Telemetry,
        limits: Limits | None = None,
        hall: Hall | None = None,
    ) -> None:
        self.handle = handle
        self.telemetry = telemetry
        self.limits = limits or Limits()
        self._listeners: list[asyncio.Server] = []
        self._sessions: dict[HttpSession, None] = {}
        self._crowd: Crowd[HttpSession] = Crowd(
            hall,
            per_address=self.limits.per_peer,
            strangers=self.limits.connections,
            most=self.limits.connections,
            forces=False,
        )
        self._unfinished: dict[HttpSession, int] = {}  # bodies, who began first comes first
        self._held = 0  # bytes of these, and of those that are handled
        self._leaving = False

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> str:
        """Listen; returns `host:port` as it really is. Once for each port."""
        where = "listen.srmp" if tls is None else "listen.srmp_tls"
        server, address = await listen(lambda: HttpSession(self, tls), host, port, where)
        self._listeners.append(server)
        return address

    def stop_listening(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def hang_up(self) -> None:
        """Answers that are being made may go out; then all is closed."""
        self._leaving = True
        for session in list(self._sessions):
            session.leave()
        await self._all_over(self.limits.hang_up_s)
        for session in list(self._sessions):
            session.cancel()
        await self._all_over(self.limits.hang_up_s)

    async def _all_over(self, timeout_s: float) -> None:
        if self._sessions:
            await asyncio.wait([each.task for each in self._sessions], timeout=timeout_s)

    @property
    def connections(self) -> int:
        return len(self._sessions)

    # -- what a session tells its owner -----------------------------------------------------

    def made(self, session: HttpSession) -> bool:
        if self._leaving or not self._crowd.arrive(session, session.peer):
            self.telemetry.refused(CROWDED, session.peer, transport="http")
            return False
        self._sessions[session] = None
        return True

    def served(self, session: HttpSession) -> None:
        self._crowd.used(session)

    def lost(self, session: HttpSession) -> None:
        del self._sessions[session]
        self._crowd.leave(session)

    def holds(self, session: HttpSession, size: int) -> None:
        self._held += size - self._unfinished.get(session, 0)
        if size:
            self._unfinished[session] = size
            self._make_room()
        else:
            self._unfinished.pop(session, None)

    def takes(self, session: HttpSession, size: int) -> bool:
        self._held += size - self._unfinished.pop(session, 0)
        self._make_room()
        if self._held <= self.limits.bodies:
            self._crowd.opened(session)  # a whole request: it is not a stranger
            return True
        self._held -= size
        return False

    def gives_back(self, size: int) -> None:
        self._held -= size

    def _make_room(self) -> None:
        """Who has been at it longest is probably not going to finish."""
        while self._held > self.limits.bodies and self._unfinished:
            oldest = next(iter(self._unfinished))
            self._held -= self._unfinished.pop(oldest)
            oldest.interrupt(UNFINISHED)
