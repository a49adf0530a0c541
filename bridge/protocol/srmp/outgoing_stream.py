"""One stream as its sender sees it: numbers, gaps, and who still waits for which receipt.

A message that left the queue without having arrived (expired, or refused with 400) leaves a gap
in the numbers. `previous` of the next one bridges it: it names the last number before it that the
receiver must have, and so the receiver takes it (SR-30 c).
"""

from __future__ import annotations

from typing import Final

from bridge.model.message import JOURNAL_NEGATIVE, Message
from bridge.wire.srmp.values import StreamId

RESEND_S: Final = (30.0,) * 3 + (300.0,) * 3 + (1800.0,) * 3 + (21600.0,)  # <17> to <24>


class Entry:
    """One message in the outgoing queue."""

    __slots__ = ("before", "gone", "message", "number", "ready", "token")

    def __init__(self, token: int, message: Message) -> None:
        self.token, self.message = token, message
        self.number = 0  # in its stream; 0 before it is sent for the first time
        self.before: Entry | None = None  # the one with the number below
        self.ready = True  # to be sent
        self.gone = False  # out of the queue


class OutgoingStream:
    """Lives as long as one of its messages waits for a receipt (SR-54)."""

    def __init__(self, stream_id: StreamId, waits_s: tuple[float, ...] = RESEND_S) -> None:
        self.id = stream_id
        self.number = 0  # Stream.SequenceNumber
        self.unacked: dict[int, Entry] = {}  # AwaitingStreamReceipt, by number
        self.undecided: dict[int, Entry] = {}  # AwaitingFinalStreamReceipt
        self.last_ack = self.ack_count = 0  # EodLastAck.SeqNo, EodLastAckCount
        self.last_ack_time = 0.0  # EodLastAckTime
        self._waits_s, self._resends = waits_s, 0  # ResendTimerTable and the place in it
        self._last: Entry | None = None

    @property
    def is_over(self) -> bool:
        """MC-MQSRM 3.1.7.6"""
        return not (self.unacked or self.undecided)

    @property
    def first_unacked(self) -> int:
        """EodFirstNonAck; 0 if all are."""
        return next(iter(self.unacked), 0)

    @property
    def unread_count(self) -> int:
        """EodNoReadCount: those that arrived and wait for their final receipt."""
        return sum(number not in self.unacked for number in self.undecided)

    @property
    def patience_s(self) -> float:
        """EodResendInterval"""
        return self._waits_s[min(self._resends, len(self._waits_s) - 1)]

    def lose_patience(self) -> None:
        """SR-52: the next wait is longer."""
        self._resends += 1

    def is_named(self, stream_id: StreamId) -> bool:
        return (stream_id.guid, stream_id.number) == (self.id.guid, self.id.number)

    def append(self, entry: Entry) -> None:
        """It is sent for the first time and gets its number. MC-MQSRM 3.1.7.2.3"""
        self.number += 1
        entry.number, entry.before = self.number, self._last
        self._last = self.unacked[self.number] = entry
        if entry.message.journal & JOURNAL_NEGATIVE:
            self.undecided[self.number] = entry

    def previous(self, entry: Entry) -> int:
        """The highest lower number that is still queued (SR-72) or has arrived. A 0 lets the
        receiver take it wherever it stands, as nothing before it will come any more."""
        while entry.before is not None and entry.before.gone:
            entry.before = entry.before.before
        queued = 0 if entry.before is None else entry.before.number
        return max(queued, self.last_ack)

    def acknowledge(self, last: int, now: float) -> list[Entry]:
        """Those for which this is news. SR-51"""
        self.last_ack_time = now
        self.ack_count += 1
        self._resends = 0  # SR-52
        self.last_ack = max(self.last_ack, min(last, self.number))
        fresh: list[Entry] = []
        while self.unacked and (number := self.first_unacked) <= last:
            entry = self.unacked.pop(number)
            entry.before = None  # all before it have arrived too
            fresh.append(entry)
        return fresh

    def find(self, number: int) -> Entry | None:
        return self.unacked.get(number) or self.undecided.get(number)

    def remove(self, entry: Entry) -> None:
        self.unacked.pop(entry.number, None)
        self.undecided.pop(entry.number, None)
