"""The two halves of a session's bookkeeping: what came in, and what we sent.

Numbers are implicit: the n-th user message in one direction has number n, and the wire shows the
low 16 bits (QB-40). We count in full and cut when a header is built.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from bridge.model.errors import ProtocolError
from bridge.wire.binary.session import SessionHeader

_LOW: Final = 0xFFFF
MAX_FLAGS: Final = 32  # RecoverableMsgAckFlags is one word


class ReceiveWindow:
    """Counts what arrived on the wire, what has its verdict, and what the peer was told.

    `decided` only ever moves over messages in the order they came, so neither the ack number nor
    the base of the recoverable flags can pass one that is not durable (QB-46).
    """

    def __init__(self) -> None:
        self.received = self.recoverable_received = 0
        self.decided = self.recoverable_decided = 0
        self.acked = self.recoverable_acked = 0

    def arrive(self, recoverable: int) -> None:
        self.received += 1
        if recoverable:
            self.recoverable_received += 1

    @property
    def unacked(self) -> int:
        return self.decided - self.acked

    def check(self, header: SessionHeader) -> None:
        """The peer's count of what it sent must be ours of what came. MS-MQQB 3.1.5.5.5"""
        theirs = header.user_sequence_number, header.recoverable_sequence_number
        ours = self.received & _LOW, self.recoverable_received & _LOW
        if theirs != ours:
            raise ProtocolError("count-mismatch", f"peer sent {theirs}, we received {ours}")

    def acknowledge(self, sent: SendWindow, window_size: int) -> SessionHeader:
        """Build the header that tells the peer all we have decided, and remember it (QB-43)."""
        stored = self.recoverable_decided - self.recoverable_acked
        header = SessionHeader(
            ack_sequence_number=self.decided & _LOW,
            recoverable_ack_number=(self.recoverable_acked + 1) & _LOW if stored else 0,
            recoverable_ack_flags=(1 << stored) - 1,
            user_sequence_number=sent.sent & _LOW,
            recoverable_sequence_number=sent.recoverable_sent & _LOW,
            window_size=window_size,
        )
        self.acked, self.recoverable_acked = self.decided, self.recoverable_decided
        return header


class SendWindow:
    """Counts what we sent and finds out from session headers what the peer has taken."""

    def __init__(self) -> None:
        self.sent = self.recoverable_sent = 0
        self._acked = 0
        self._recoverable_base = 0  # every recoverable up to it is stored at the peer
        self._express: deque[tuple[int, int]] = deque()  # number, token
        self._recoverable: dict[int, int] = {}  # recoverable number -> token

    @property
    def unacked(self) -> int:
        return self.sent - self._acked

    @property
    def idle(self) -> bool:
        return not self.unacked and not self._recoverable

    def send(self, token: int, recoverable: int) -> None:
        self.sent += 1
        if recoverable:
            self.recoverable_sent += 1
            self._recoverable[self.recoverable_sent] = token
        else:
            self._express.append((self.sent, token))

    def on_header(self, header: SessionHeader) -> list[int]:
        """Free what the peer acknowledges; the tokens of what it has taken. MS-MQQB 3.1.5.5"""
        step = (header.ack_sequence_number - self._acked) & _LOW
        if step > self.unacked:
            raise ProtocolError("bad-ack", f"{header.ack_sequence_number} was never sent")
        self._acked += step
        taken = []
        while self._express and self._express[0][0] <= self._acked:
            taken.append(self._express.popleft()[1])
        if header.recoverable_ack_flags:
            taken += self._stored(header)
        return taken

    def _stored(self, header: SessionHeader) -> list[int]:
        base = self._recoverable_base
        first = base + ((header.recoverable_ack_number - base) & _LOW)
        flags = header.recoverable_ack_flags
        if first + flags.bit_length() - 1 > self.recoverable_sent:
            raise ProtocolError("bad-ack", f"recoverable {first} flags {flags:#x} was never sent")
        numbers = [*range(base + 1, first + 1)]  # all up to the base are stored (QB-48)
        numbers += [first + bit for bit in range(1, flags.bit_length()) if flags >> bit & 1]
        self._recoverable_base = first
        return [self._recoverable.pop(n) for n in numbers if n in self._recoverable]
