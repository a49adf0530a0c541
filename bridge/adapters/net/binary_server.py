"""MSMQ sessions on TCP 1801."""

from __future__ import annotations

import asyncio

from bridge.adapters.intake import Intake
from bridge.adapters.net.connection import Connection
from bridge.adapters.telemetry import Telemetry
from bridge.config import Address
from bridge.core.identity import Ordinals
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.protocol.binary.handshake import AcceptorHandshake
from bridge.protocol.binary.session import Session, SessionSettings
from bridge.protocol.events import Instant


class BinaryServer:
    def __init__(
        self,
        local: Guid,
        ordinals: Ordinals,
        intake: Intake,
        telemetry: Telemetry,
        settings: SessionSettings | None = None,
    ) -> None:
        self._local = local
        self._ordinals = ordinals
        self._intake = intake
        self._telemetry = telemetry
        self._settings = settings or SessionSettings()
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> str:
        """Listen; returns `host:port` as it really is."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: Connection(self._accept, self._intake, self._telemetry, self.connections),
                host,
                port,
                backlog=1024,
            )
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {Address(host, port)} ({error.strerror or error})",
                where="listen.binary",
                mend="choose another port or address, or stop what uses it",
            ) from error
        bound = self._server.sockets[0].getsockname()
        return str(Address(bound[0], bound[1]))

    def _accept(self, peer: str, now: Instant) -> Session:
        return Session(
            AcceptorHandshake(self._local, self._settings.window),
            local=self._local,
            peer=peer,
            ordinals=self._ordinals,
            now=now,
            settings=self._settings,
        )

    def jam(self, jammed: bool) -> None:
        for connection in list(self.connections):
            connection.jam(jammed)

    def stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    def hang_up(self) -> None:
        for connection in list(self.connections):
            connection.hang_up("shutdown")
