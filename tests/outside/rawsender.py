"""A sending MSMQ queue manager on a blocking socket: one session, its counters, its outgoing table.

Time: every read has a deadline on the monotonic clock (`soon`), and only `expect_nothing` waits a
fixed time. What a Windows sender enforces on its peer (QB-49, the counts in each SessionHeader) is
asserted on every packet.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self
from uuid import UUID, uuid4

from tests.outside.rawconnection import LOCAL, Address, HungUpError, RawConnection, soon
from tests.outside.rawmsmq import (
    ZERO,
    Message,
    SessionHeader,
    build,
    cp_request,
    ec_request,
    session_ack,
)
from tests.outside.rawparse import (
    Establish,
    Packet,
    Parameters,
    Received,
    SessionAck,
    parse,
)

__all__ = ["LOCAL", "Address", "HungUpError", "RawSender", "Sent", "soon"]


@dataclass(slots=True)
class Sent:
    """One entry of the outgoing table: a message this session carried and still keeps."""

    message: Message
    number: int
    recoverable_number: int
    session_acked: bool = False
    durable: bool = False
    order_acked: bool = False

    @property
    def done(self) -> bool:  # QB-48
        if not self.message.is_recoverable:
            return self.session_acked
        return self.durable and (self.message.tx is None or self.order_acked)


class RawSender(RawConnection):
    def __init__(
        self,
        address: Address,
        guid: UUID | None = None,
        *,
        window: int = 64,
        recoverable_ack_ms: int = 500,
        ack_ms: int = 20_000,
        auto_ack: bool = True,
    ) -> None:
        super().__init__(address)
        self.guid = guid or uuid4()
        self.window = window
        self.recoverable_ack_ms = recoverable_ack_ms
        self.ack_ms = ack_ms
        self.auto_ack = auto_ack
        self.server = ZERO  # the bridge's GUID, learned by the handshake
        self.table: list[Sent] = []
        self.unsent: deque[Message] = deque()
        self._reset()

    def _reset(self) -> None:
        """Counters live and die with the session. QB-40"""
        self.sent = self.sent_recoverable = self.acked = 0
        self.received = self.received_recoverable = 0
        self.recoverable_acked = 0  # how many of theirs we have acked
        self.peer_window = 64
        self.open = False

    @property
    def in_flight(self) -> int:
        return self.sent - self.acked

    def connect(self) -> Self:
        self.open_socket()
        self._reset()
        return self

    def establish(self, server: UUID = ZERO) -> Establish:
        self.send(ec_request(self.guid, server))
        answer = self.read_packet()
        assert isinstance(answer, Establish), answer
        return answer

    def handshake(self, server: UUID = ZERO) -> tuple[Establish, Parameters]:
        established = self.establish(server)
        assert not established.refused
        self.send(
            cp_request(
                recoverable_ack_ms=self.recoverable_ack_ms,
                ack_ms=self.ack_ms,
                window=self.window,
            )
        )
        parameters = self.read_packet()
        assert isinstance(parameters, Parameters), parameters
        self.server = established.server
        self.peer_window = parameters.window
        self.open = True
        return established, parameters

    def transmit(self, messages: Sequence[Message], *, keep: bool = True) -> None:
        """Send user messages in one write and count them."""
        data = b"".join([build(self._register(message, keep=keep)) for message in messages])
        self.send(data)

    def transmit_with_header(self, message: Message, *, counted: bool = False) -> None:
        """A message that carries our SessionHeader; its count includes the carrier. QB-47"""
        self._register(message, keep=True)
        self.send(build(message, self.next_header(), counted=counted))

    def _register(self, message: Message, *, keep: bool) -> Message:
        self.sent += 1
        self.sent_recoverable += message.is_recoverable
        if keep:
            self.table.append(Sent(message, self.sent, self.sent_recoverable))
        return message

    def next_header(self) -> SessionHeader:
        """What we owe the bridge: everything it sent so far is acked by it. QB-43"""
        fresh = self.received_recoverable - self.recoverable_acked
        assert fresh <= 32, "ack earlier: the flags have 32 bits"
        header = SessionHeader(
            ack=self.received,
            recoverable_ack=self.recoverable_acked + 1 if fresh else 0,
            flags=(1 << fresh) - 1,
            sent=self.sent,
            sent_recoverable=self.sent_recoverable,
            window=self.window,
        )
        self.recoverable_acked = self.received_recoverable
        return header

    def ack(self) -> None:
        self.send(session_ack(self.next_header()))

    def read_packet(self, deadline: float | None = None) -> Packet:
        """The next packet, with its effects on our counters and table."""
        packet = parse(self.read_bytes(deadline or soon()))
        if isinstance(packet, Received):
            self._on_user_message(packet)
        elif isinstance(packet, SessionAck):
            self._on_header(packet.session)
        return packet

    def read_user(self, deadline: float | None = None) -> Received:
        """The next order, final or administration ack; session acks before it are only counted."""
        deadline = deadline or soon()
        while not isinstance(packet := self.read_packet(deadline), Received):
            pass
        return packet

    def read_to_end(self, deadline: float | None = None) -> list[Packet]:
        """Everything until the bridge hangs up."""
        packets: list[Packet] = []
        deadline = deadline or soon()
        try:
            while True:
                packets.append(self.read_packet(deadline))
        except HungUpError:
            return packets

    def expect_closed(self, deadline: float | None = None) -> None:
        """The bridge closes, and says nothing before it does. QB-3"""
        try:
            packet = self.read_packet(deadline)
        except HungUpError:
            assert not self.buffer, bytes(self.buffer).hex(" ")
        else:
            raise AssertionError(f"expected the end of the connection, got {packet}")

    def _on_user_message(self, packet: Received) -> None:
        assert self.open, packet
        self.received += 1
        self.received_recoverable += packet.is_recoverable
        if packet.session:
            self._on_header(packet.session)
        if packet.is_order_ack:
            sequence, number, _ = packet.sequence
            for entry in self.table:
                tx = entry.message.tx
                if tx and tx.sequence_id == sequence and tx.number <= number:
                    entry.order_acked = True
            self._forget()
        if self.auto_ack:
            self.ack()

    def _on_header(self, header: SessionHeader) -> None:
        assert self.open, header
        progress = (header.ack - self.acked) & 0xFFFF
        assert progress <= self.in_flight, f"acks {header.ack}, never sent; {self.acked} acked"
        self.acked += progress
        counts = (self.received & 0xFFFF, self.received_recoverable & 0xFFFF)
        assert (header.sent, header.sent_recoverable) == counts, f"QB-49: {header}, {counts}"
        assert header.window >= 1, header
        self.peer_window = header.window
        for entry in self.table:
            entry.session_acked = entry.number <= self.acked
            entry.durable = entry.durable or self._is_durable(entry, header)
        self._forget()

    def _is_durable(self, entry: Sent, header: SessionHeader) -> bool:
        """QB-48: everything up to RecoverableMsgAckSeqNumber, and what has its flag."""
        if not entry.message.is_recoverable or header.flags == 0:
            return False
        distance = entry.recoverable_number - header.recoverable_ack & 0xFFFF
        return distance >= 0x8000 or distance == 0 or bool(header.flags >> min(distance, 32) & 1)

    def _forget(self) -> None:
        self.table = [entry for entry in self.table if not entry.done]

    def send_all_windowed(
        self,
        messages: Iterable[Message] = (),
        deadline: float | None = None,
        *,
        until_acked: int | None = None,
    ) -> None:
        """Send all, never more than the window ahead of the acks; returns when none is kept.

        With `until_acked` it stops in the middle, when that many of this session are acked.
        """
        deadline = deadline or soon(60)
        self.unsent.extend(messages)
        while self.unsent or self.table:
            room = max(0, min(self.window, self.peer_window) - self.in_flight)  # QB-50
            burst = [self.unsent.popleft() for _ in range(min(room, len(self.unsent)))]
            if burst:
                self.transmit(burst)
            self.read_packet(deadline)
            if until_acked is not None and self.acked >= until_acked:
                return

    def resume(self, address: Address | None = None) -> None:
        """A new session that starts with all we still keep, in the old order. QB-53, QB-95"""
        self.address = address or self.address
        kept = [entry.message for entry in self.table]
        last: dict[tuple[object, ...], int] = {}
        resent: list[Message] = []
        for message in kept:
            if message.tx:
                stream = (message.source, message.destination, message.tx.sequence_id)
                previous = last.get(stream, 0)
                message = replace(message, tx=replace(message.tx, previous=previous))
                last[stream] = message.tx.number if message.tx else 0
            resent.append(message)
        self.table = []
        self.unsent.extendleft(reversed(resent))
        self.connect()
        self.handshake()
