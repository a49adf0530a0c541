"""Establish connection, connection parameters: both sides. MS-MQQB 3.1.5.3, 3.1.5.4"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.model.errors import ProtocolError
from bridge.model.guid import NULL_GUID, Guid
from bridge.protocol.events import Instant
from bridge.wire.binary.internal import ConnectionParameters, EstablishConnection
from bridge.wire.binary.packet import Packet

MIN_ACK_TIMEOUT_MS: Final = 20_000
MIN_RECOVERABLE_MS: Final = 500
MAX_TIMEOUT_MS: Final = 120_000
NO_PING_SENT: Final = 0x0100  # OperatingSystem.SE
SERVER_CLASS: Final = 0x0210  # OperatingSystem.OS and the constant RE


class Terms(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What both sides agreed on."""

    remote: Guid
    ack_timeout: float  # seconds a sender waits for an ack
    recoverable_ack_delay: float  # seconds a receiver may sit on a recoverable one
    window: int  # the peer's
    direct: bool = False  # the peer addressed us by a direct name


class Refused(ProtocolError):
    """The peer gets `reply` (CS=1) before the connection goes (QB-15)."""

    def __init__(self, detail: str, reply: bytes) -> None:
        super().__init__("refused", detail)
        self.reply = reply


def _terms(remote: Guid, packet: ConnectionParameters, *, direct: bool) -> Terms:
    """The initiator dictates both timeouts (QB-16); what we use is clamped (QB-18)."""
    ack = min(max(packet.ack_timeout, MIN_ACK_TIMEOUT_MS), MAX_TIMEOUT_MS)
    recoverable = min(max(packet.recoverable_ack_timeout, MIN_RECOVERABLE_MS), MAX_TIMEOUT_MS)
    return Terms(
        remote=remote,
        ack_timeout=ack / 1000,
        recoverable_ack_delay=recoverable / 1000,
        window=packet.window_size,
        direct=direct,
    )


class AcceptorHandshake:
    """WAITING_EC, then WAITING_CP; each packet gives a reply, the last one the terms."""

    def __init__(self, local: Guid, window: int) -> None:
        self._local, self._window = local, window
        self._request: EstablishConnection | None = None
        self.terms: Terms | None = None

    def on_packet(self, packet: Packet, _now: Instant) -> bytes:
        if self._request is None:
            if isinstance(packet, EstablishConnection):
                return self._on_establish(packet)
        elif isinstance(packet, ConnectionParameters):
            direct = self._request.server == NULL_GUID
            self.terms = _terms(self._request.client, packet, direct=direct)
            return msgspec.structs.replace(packet, window_size=self._window, refused=False).pack()
        raise ProtocolError("handshake", f"{type(packet).__name__} out of turn")  # QB-17

    def _on_establish(self, packet: EstablishConnection) -> bytes:
        self._request = packet
        accepted = packet.server in (self._local, NULL_GUID)  # QB-12
        reply = msgspec.structs.replace(
            packet,
            server=self._local,
            operating_system=packet.operating_system & NO_PING_SENT | SERVER_CLASS,
            refused=not accepted,
        ).pack()
        if not accepted:
            raise Refused(f"asked for queue manager {packet.server}", reply)
        return reply


class InitiatorHandshake:
    """Sends the requests and judges the answers."""

    def __init__(self, local: Guid, remote: Guid, window: int, ack_timeout_ms: int) -> None:
        self._local, self._remote = local, remote  # remote NULL: a direct name, learn it (QB-24)
        self._window, self._ack_timeout_ms = window, ack_timeout_ms
        self._server = NULL_GUID
        self._offer: ConnectionParameters | None = None
        self._sent_at = 0.0
        self.terms: Terms | None = None

    def open(self, now: Instant) -> bytes:
        self._sent_at = now.mono
        return EstablishConnection(
            client=self._local,
            server=self._remote,
            timestamp=int(now.mono * 1000) & 0xFFFFFFFF,
            operating_system=SERVER_CLASS | NO_PING_SENT,
        ).pack()

    def on_packet(self, packet: Packet, now: Instant) -> bytes:
        if self._offer is None:
            if isinstance(packet, EstablishConnection):
                return self._on_establish(packet, now)
        elif isinstance(packet, ConnectionParameters):
            self._on_parameters(packet, self._offer)
            return b""
        raise ProtocolError("handshake", f"{type(packet).__name__} out of turn")

    def _on_parameters(self, packet: ConnectionParameters, offer: ConnectionParameters) -> None:
        """Of the answer only the window counts. MS-MQQB 3.1.5.4.2"""
        if packet.refused:
            raise ProtocolError("refused", f"by queue manager {self._server}")
        agreed = msgspec.structs.replace(offer, window_size=packet.window_size)
        self.terms = _terms(self._server, agreed, direct=self._remote == NULL_GUID)

    def _on_establish(self, packet: EstablishConnection, now: Instant) -> bytes:
        if packet.refused or packet.client != self._local:
            raise ProtocolError("refused", f"by queue manager {packet.server}")
        if self._remote not in (NULL_GUID, packet.server):
            raise ProtocolError("refused", f"{packet.server} answered for {self._remote}")
        self._server = packet.server
        round_trip = 8000 * (now.mono - self._sent_at)  # QB-25
        self._offer = ConnectionParameters(
            recoverable_ack_timeout=int(min(max(round_trip, MIN_RECOVERABLE_MS), MAX_TIMEOUT_MS)),
            ack_timeout=self._ack_timeout_ms,
            window_size=self._window,
        )
        return self._offer.pack()
