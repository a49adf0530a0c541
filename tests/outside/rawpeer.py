"""The sender's queue manager as the bridge finds it when it calls: a listener on another address.

`RawPeer` holds its port all the time. While it is away the port is bound and nobody listens, so
that a call is refused at once and nobody else gets the port. `PeerSession` is an accepted session:
from the handshake on it counts, acks and checks like any `RawSender`.
"""

import select
import socket
from collections.abc import Callable
from typing import Self
from uuid import UUID, uuid4

from tests.outside.expected import expected_cp_response, expected_ec_response
from tests.outside.rawconnection import HungUpError, soon
from tests.outside.rawmsmq import ZERO
from tests.outside.rawparse import Establish, Packet, Parameters, Received
from tests.outside.rawsender import RawSender


class Recorder(RawSender):
    """A sender that keeps every user message it was sent."""

    kept: list[Received]

    def read_packet(self, deadline: float | None = None) -> Packet:
        packet = super().read_packet(deadline)
        if isinstance(packet, Received):
            self.kept.append(packet)
        return packet

    def _reset(self) -> None:
        super()._reset()
        self.kept = []

    def until(self, enough: Callable[[], object], seconds: float = 15) -> None:
        deadline = soon(seconds)
        while not enough():
            self.read_packet(deadline)

    @property
    def administration(self) -> list[Received]:
        """What came that is no order and no final ack."""
        return [one for one in self.kept if not (one.is_order_ack or one.is_final_ack)]


class PeerSession(Recorder):
    """A session that the bridge opened to us."""

    def __init__(self, accepted: socket.socket, guid: UUID, *, window: int, auto_ack: bool) -> None:
        super().__init__(accepted.getsockname(), guid, window=window, auto_ack=auto_ack)
        self._socket = accepted
        self.request: Establish | None = None

    def answer(self, deadline: float | None = None) -> None:
        """The acceptor's side of the handshake. QB-12, QB-13, QB-15, QB-16"""
        request = self.read_packet(deadline)
        assert isinstance(request, Establish), request
        assert request.system & 0xFF == 0x10, hex(request.system)
        assert len(request.raw) == 572
        self.request = request
        self.server = request.client
        refused = request.server not in (ZERO, self.guid)
        self.send(
            expected_ec_response(
                client=request.client,
                server=self.guid,
                timestamp=request.timestamp,
                no_ping=bool(request.system & 0x100),
                refused=refused,
            )
        )
        assert not refused, f"a call for {request.server} came to {self.guid}"
        self._answer_parameters(deadline)

    def _answer_parameters(self, deadline: float | None) -> None:
        asked = self.read_packet(deadline)
        assert isinstance(asked, Parameters), asked
        assert 500 <= asked.recoverable_ack_ms <= 120_000, asked  # QB-25
        assert 20_000 <= asked.ack_ms <= 120_000, asked
        assert asked.window >= 1
        self.recoverable_ack_ms, self.ack_ms = asked.recoverable_ack_ms, asked.ack_ms
        self.peer_window = asked.window
        self.open = True
        self.send(
            expected_cp_response(
                recoverable_ack_ms=asked.recoverable_ack_ms,
                ack_ms=asked.ack_ms,
                window=self.window,
            )
        )


class RawPeer:
    def __init__(self, ip: str, guid: UUID | None = None, port: int = 0) -> None:
        self.guid = guid or uuid4()
        self.sessions: list[PeerSession] = []
        self._listener = self._bind(ip, port)
        self.ip, self.port = self._listener.getsockname()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        self._listener.close()

    @staticmethod
    def _bind(ip: str, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ip, port))
        return listener

    @property
    def address(self) -> str:
        """As `peers` wants it."""
        return f"{self.ip}:{self.port}"

    def listen(self) -> Self:
        self._listener.listen(16)
        return self

    def go_away(self) -> None:
        """Hang up and refuse calls; `listen` comes back."""
        self.hang_up()
        self._listener.close()
        self._listener = self._bind(self.ip, self.port)

    def hang_up(self) -> None:
        for session in self.sessions:
            session.close()
        self.sessions.clear()

    def accept(
        self, seconds: float = 20, *, window: int = 64, auto_ack: bool = True
    ) -> PeerSession:
        """The next session of the bridge, up to its open state."""
        self._listener.settimeout(seconds)
        accepted, _ = self._listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = PeerSession(accepted, self.guid, window=window, auto_ack=auto_ack)
        self.sessions.append(session)
        session.answer(soon(seconds))
        return session

    def expect_no_call(self, seconds: float) -> None:
        """The other wait of fixed length."""
        called, _, _ = select.select([self._listener], [], [], seconds)
        assert not called, "the bridge called"

    def receive(self, count: int, seconds: float = 20) -> list[Received]:
        """So many user messages, over as many sessions as the bridge needs."""
        deadline = soon(seconds)
        received: list[Received] = []
        session = self.sessions[-1] if self.sessions else self.accept(seconds)
        while len(received) < count:
            try:
                received.append(session.read_user(deadline))
            except HungUpError:
                session = self.accept(deadline - soon(0))
        return received
