"""What a sending queue manager keeps until it is told that it may forget. No socket, no clock.

Express messages are dropped when the session ends under them. Recoverable ones are kept until a
session ack says that they are on disk, transactional ones until they are order-acked too, those
that asked for a FinalAck until it comes. A new session starts with all that is kept, in order, with
the same ids. QB-40 to QB-53, QB-95 to QB-99
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from tests.chaos.history import History, Mode, Op
from tests.outside.rawmsmq import Message, SessionHeader, Tx, build, sequence_id
from tests.outside.rawparse import Received

WINDOW: Final = 64
RECENT: Final = 48  # done with, and repeated by a sender whose disk came back old
POSITIVE: Final = 0x4000
_INSTALLED: Final = 0x65000000  # TimeStamp of the sequence ids. QB-96


@dataclass(slots=True)
class Entry:
    op: Op
    message: Message
    number: int = 0  # on this session
    recoverable_number: int = 0

    @property
    def stream(self) -> str:
        return self.op.stream


@dataclass(slots=True)
class _Sequence:
    """One outgoing stream's place in its sequence."""

    ordinal: int = 0
    number: int = 0


class ViolationError(Exception):
    """The bridge said what a peer must not say."""


class Outgoing:
    def __init__(self, history: History) -> None:
        self.history = history
        self.waiting: deque[Entry] = deque()  # not on this session yet
        self.table: list[Entry] = []  # on this session, and kept
        self.finals: dict[int, Entry] = {}  # only their FinalAck is missing
        self.recent: deque[Entry] = deque(maxlen=RECENT)
        self.session = 0
        self._ordinal = 0  # of the latest sequence
        self._sequences: dict[str, _Sequence] = {}
        self._reset()

    def _reset(self) -> None:
        """Counters live and die with the session. QB-40"""
        self.sent = self.sent_recoverable = self.acked = 0
        self.received = self.received_recoverable = self.told_recoverable = 0
        self.peer_window = WINDOW
        self._last: dict[str, tuple[int, int]] = {}  # sequence and number, by stream

    @property
    def kept(self) -> int:
        return len(self.waiting) + len(self.table) + len(self.finals)

    def place_of(self, stream: str) -> tuple[int, int]:
        """The sequence id and the last number of a stream: what a stranger would guess."""
        place = self._sequences.get(stream, _Sequence())
        return sequence_id(_INSTALLED, place.ordinal), place.number

    # -- sessions ---------------------------------------------------------------------------

    def add(self, op: Op, message: Message) -> None:
        self.history.ops.append(op)
        self.waiting.append(Entry(op, message))

    def begin_session(self, window: int) -> None:
        self._reset()
        self.session += 1
        self.peer_window = window

    def end_session(self) -> None:
        """Express messages under way are gone, the rest goes first next time. QB-53"""
        again: list[Entry] = []
        for entry in self.table:
            if entry.op.mode is Mode.EXPRESS:
                entry.op.dropped = True
            else:
                again.append(entry)
        self.table = []
        self.waiting.extendleft(reversed(again))

    def forget_memory(self) -> None:
        """The machine of the sender restarts: what it had in memory only is gone."""
        for entry in self.waiting:
            entry.op.dropped = entry.op.mode is Mode.EXPRESS
        self.waiting = deque(e for e in self.waiting if not e.op.dropped)

    # -- sending ----------------------------------------------------------------------------

    def burst(self, now: float) -> bytes:
        """As much as the window takes. QB-50"""
        room = min(WINDOW, self.peer_window) - (self.sent - self.acked)
        packets: list[bytes] = []
        while self.waiting and len(packets) < room:
            entry = self.waiting.popleft()
            packets.append(self._send(entry, now))
            self.table.append(entry)
        return b"".join(packets)

    def replay(self) -> bytes:
        """What was acked long ago, as it was sent then: every one of them is a duplicate."""
        packets = []
        for entry in self.recent:
            self._count(entry)
            entry.op.sends += 1
            packets.append(build(entry.message))
        return b"".join(packets)

    def resend_unordered(self, now: float) -> bytes:
        """The timer of those without an order ack; the session goes on. QB-97"""
        self._last = {}
        return b"".join([self._send(entry, now) for entry in self.unordered])

    @property
    def unordered(self) -> list[Entry]:
        """On disk there, as we were told, and not yet in order."""
        return [e for e in self.table if e.message.tx and e.op.stored_at and not e.op.ordered_at]

    def _send(self, entry: Entry, now: float) -> bytes:
        op = entry.op
        if op.mode is Mode.TRANSACTIONAL:
            entry.message = replace(entry.message, tx=self._step(entry))
        self._count(entry)
        entry.number, entry.recoverable_number = self.sent, self.sent_recoverable
        op.sends += 1
        if op.sent_at is None:
            op.sent_at, op.session = now, self.session
        return build(entry.message)

    def _count(self, entry: Entry) -> None:
        self.sent += 1
        self.sent_recoverable += entry.message.is_recoverable

    def _step(self, entry: Entry) -> Tx:
        """QB-95: a number of its own the first time; Prev is the one before it that is kept."""
        tx = entry.message.tx
        assert tx is not None
        if entry.op.sent_at is None:
            tx = self._first_step(entry, tx)
        sequence, number = self._last.get(entry.stream, (0, 0))
        self._last[entry.stream] = tx.sequence_id, tx.number
        return replace(tx, previous=number if sequence == tx.sequence_id else 0)

    def _first_step(self, entry: Entry, tx: Tx) -> Tx:
        """When all before it are order-acked a new sequence starts. QB-96"""
        place = self._sequences.setdefault(entry.stream, _Sequence())
        if not any(e.stream == entry.stream and e.op.ordered_at is None for e in self.table):
            self._ordinal += 1  # of all streams: an order ack names the sequence, not the queue
            place.ordinal, place.number = self._ordinal, 0
            self._last.pop(entry.stream, None)
        place.number += 1
        return replace(tx, sequence_id=sequence_id(_INSTALLED, place.ordinal), number=place.number)

    # -- acks -------------------------------------------------------------------------------

    def header(self) -> SessionHeader:
        """What we owe the bridge: all it sent so far is acked by it. QB-43"""
        fresh = self.received_recoverable - self.told_recoverable
        first = self.told_recoverable + 1 if fresh else 0
        self.told_recoverable = self.received_recoverable
        return SessionHeader(
            ack=self.received,
            recoverable_ack=first,
            flags=(1 << min(fresh, 32)) - 1,
            sent=self.sent,
            sent_recoverable=self.sent_recoverable,
            window=WINDOW,
        )

    def on_header(self, header: SessionHeader, now: float) -> None:
        """QB-48, and QB-49 as Windows enforces it."""
        progress = (header.ack - self.acked) & 0xFFFF
        if progress > self.sent - self.acked:
            raise ViolationError(f"acks {header.ack}, sent {self.sent}, acked {self.acked}")
        counted = self.received & 0xFFFF, self.received_recoverable & 0xFFFF
        if (header.sent, header.sent_recoverable) != counted or header.window < 1:
            raise ViolationError(f"QB-49: {header}, we counted {counted}")
        self.acked += progress
        self.peer_window = header.window
        for entry in self.table:
            if entry.op.stored_at is None and self._is_stored(entry, header):
                entry.op.stored_at = now
        self._forget(now)

    def _is_stored(self, entry: Entry, header: SessionHeader) -> bool:
        if entry.op.mode is Mode.EXPRESS:
            return entry.number <= self.acked
        if header.flags == 0:
            return False
        distance = entry.recoverable_number - header.recoverable_ack & 0xFFFF
        return distance >= 0x8000 or bool(header.flags >> min(distance, 32) & 1)

    def on_order_ack(self, sequence: int, number: int, now: float) -> None:
        """Also of those that wait to be sent again: it may be faster than we are."""
        for entry in (*self.table, *self.waiting):
            tx = entry.message.tx
            if tx and tx.sequence_id == sequence and tx.number <= number:
                entry.op.ordered_at = entry.op.ordered_at or now
        self._forget(now)

    def on_user(self, packet: Received, now: float) -> None:
        """An order or final ack of the bridge; it counts as a message of its session. QB-6"""
        self.received += 1
        self.received_recoverable += packet.is_recoverable
        if packet.session:
            self.on_header(packet.session, now)
        if packet.is_order_ack:
            sequence, number, _ = packet.sequence
            self.on_order_ack(sequence, number, now)
        elif packet.is_final_ack:
            self._on_final_ack(packet, now)
        else:
            raise ViolationError(f"nobody asked for {packet.message_class:#x} {packet.label!r}")

    def _on_final_ack(self, packet: Received, now: float) -> None:
        ordinal = int.from_bytes(packet.body[32:36], "little")
        if packet.message_class != POSITIVE:
            raise ViolationError(f"{ordinal} is refused: {packet.message_class:#x}")
        for entry in (*self.finals.values(), *self.table, *self.waiting):
            if entry.message.message_id == ordinal:
                entry.op.final_at = entry.op.final_at or now
        if ordinal in self.finals:
            self._complete(self.finals.pop(ordinal), now)

    def _forget(self, now: float) -> None:
        self.table = [entry for entry in self.table if not self._settle(entry, now)]
        if any(self._is_done(entry) for entry in self.waiting):
            self.waiting = deque(e for e in self.waiting if not self._settle(e, now))

    def _settle(self, entry: Entry, now: float) -> bool:
        """Whether it leaves the table: done, or waiting for its FinalAck only."""
        if not self._is_done(entry):
            return False
        if self._wants_final(entry):
            self.finals[entry.message.message_id] = entry
        else:
            self._complete(entry, now)
        return True

    @staticmethod
    def _is_done(entry: Entry) -> bool:
        op = entry.op
        ordered = op.mode is not Mode.TRANSACTIONAL or op.ordered_at is not None
        return op.stored_at is not None and ordered

    @staticmethod
    def _wants_final(entry: Entry) -> bool:
        tx = entry.message.tx
        return tx is not None and tx.final_ack and entry.op.final_at is None

    def _complete(self, entry: Entry, now: float) -> None:
        self.history.complete(entry.op, now)
        if entry.op.mode is not Mode.EXPRESS:
            self.recent.append(entry)
