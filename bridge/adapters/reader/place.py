"""Which host to read from, and as whom."""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.adapters.net.rpc_auth import Credentials
from bridge.protocol.rpc.reader.opening import Client

CALL_S: Final = 60.0  # for an answer, beside what the server was asked to wait
CONNECT_S: Final = 30.0
IN_FLIGHT: Final = 128  # calls on one connection: what is sent always fits into its buffers


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A port that is given is RemoteRead's own; without one the endpoint mapper is asked."""

    host: str
    port: int | None = None
    mapper_port: int = 135
    credentials: Credentials | None = None  # None: anonymous, which few hosts allow
    exclusive: bool = False  # open queues so that nobody else can receive from them
    call_s: float = CALL_S
    connect_s: float = CONNECT_S

    @property
    def client(self) -> Client:
        """RR-45: honest. Only Kerberos needs a domain that knows us."""
        package = self.credentials.package if self.credentials else ""
        return Client(workgroup=package != "kerberos", exclusive=self.exclusive)
