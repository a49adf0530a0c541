"""An outgoing queue of SRMP: one destination, one POST at a time. Digest srmp.md 5.2

    state        event                 what happens                       next
    NO_STREAM    message               _post: a stream begins             SENDING
    AWAIT_ACK    message               _post: number + 1                  SENDING
    SENDING      200                   _on_outcome: kept for its receipt  AWAIT_ACK
    SENDING      400                   _on_outcome: gone, a gap           AWAIT_ACK, NO_STREAM
    SENDING      else, no answer       _fall_silent                       INACTIVE
    INACTIVE     retransmission timer  what had no answer again           SENDING
    AWAIT_ACK    stream receipt        _on_stream_receipt                 or AWAIT_FINAL, NO_STREAM
    AWAIT_ACK    wait timer            _resend: all without a receipt     SENDING
    AWAIT_FINAL  final receipt         _on_final_receipt                  or NO_STREAM
    any          message expires       _send_next: gone, a gap            same or NO_STREAM
    any          pause                 _on_pause                          ON_HOLD
    ON_HOLD      resume                all that wait again                SENDING

A plain message is done with its 200, and changes none of the states but SENDING and INACTIVE.
Messages leave in the order in which they came, also after a failure: what is to be sent stands in
a heap by its token. A message of a stream gets its number when it is sent for the first time, not
before: so a stream begins with a message that was sent, even if those before it have expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from heapq import heappop, heappush
from typing import Final, assert_never

import msgspec

from bridge.model.classes import MessageClass
from bridge.model.guid import Guid
from bridge.model.message import INFINITE, Message
from bridge.protocol.commands import Close
from bridge.protocol.events import Instant, Tick
from bridge.protocol.srmp.outgoing_stream import RESEND_S, Entry, OutgoingStream
from bridge.protocol.srmp.sending import (
    Answered,
    Command,
    Event,
    Fate,
    FinalReceipted,
    NoAnswer,
    Paused,
    Post,
    Resumed,
    Settled,
    StreamReceipted,
    keep_in,
)
from bridge.protocol.timers import Timers
from bridge.wire.srmp.convert import envelope_from_message
from bridge.wire.srmp.request import pack_body
from bridge.wire.srmp.values import U32, make_stream_id
from bridge.wire.srmp.writer import STREAM_TAG

OK: Final = range(200, 300)
BAD_REQUEST: Final = 400
_BOUNDARIES: Final = range(100, 100_000)  # three to five digits, as Windows


class State(Enum):
    """Digest srmp.md 5.2"""

    NO_STREAM = auto()
    SENDING = auto()
    AWAIT_ACK = auto()
    AWAIT_FINAL = auto()
    INACTIVE = auto()
    ON_HOLD = auto()


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Digest srmp.md 4.1"""

    retransmit_s: float = 20.0
    receipt_wait_s: tuple[float, ...] = RESEND_S
    cleanup_s: float = 300.0


class _Timer(Enum):
    RETRANSMISSION = auto()
    RECEIPT_WAIT = auto()
    CLEANUP = auto()


class Sender:
    """Pure: told what happened and when, answers what to do."""

    def __init__(
        self,
        *,
        local: Guid,
        receipts_to: str,
        stream_ordinals: Callable[[], int],
        timing: Timing | None = None,
        stream_tag: str = STREAM_TAG,
    ) -> None:
        self._local, self._receipts_to = local, receipts_to
        self._stream_tag = stream_tag
        self._stream_ordinals = stream_ordinals
        self._timing = timing or Timing()
        self._timers = Timers[_Timer]()
        self._queue: dict[int, Entry] = {}
        self._dispatch: list[int] = []  # a heap of tokens
        self._tokens = self._posts = 0
        self._posting: Entry | None = None
        self._connected = self._on_hold = False
        self.stream: OutgoingStream | None = None
        self.done = 0

    # -- the outside ------------------------------------------------------------------------

    def add(self, messages: Iterable[Message]) -> None:
        """To be sent in this order; `pump` says when. WireError if SRMP cannot carry one."""
        for message in messages:
            self._request(message, number=1, previous=0)
            self._tokens += 1
            self._queue[self._tokens] = Entry(self._tokens, message)
            heappush(self._dispatch, self._tokens)

    @property
    def waiting(self) -> int:
        """How many are not done with."""
        return len(self._queue)

    @property
    def state(self) -> State:
        if self._on_hold:
            return State.ON_HOLD
        if self._timers.running(_Timer.RETRANSMISSION):
            return State.INACTIVE
        if self._posting is not None:
            return State.SENDING
        if self.stream is None:
            return State.NO_STREAM
        return State.AWAIT_ACK if self.stream.unacked else State.AWAIT_FINAL

    @property
    def is_connected(self) -> bool:
        """False is what the specification calls Disconnected."""
        return self._connected

    def next_wakeup(self) -> float | None:
        return self._timers.next_wakeup()

    def handle(self, event: Event, now: Instant) -> list[Command]:
        return [*self._react(event, now), *self.pump(now)]

    def pump(self, now: Instant) -> list[Command]:
        """Send the next one if it is its turn. SR-70"""
        return list(self._send_next(now))

    # -- 5.2, row by row --------------------------------------------------------------------

    def _react(self, event: Event, now: Instant) -> Iterator[Command]:
        match event:
            case Answered() | NoAnswer():
                entry = self._posting
                if entry is not None and event.post == self._posts:
                    self._posting = None
                    yield from self._on_outcome(entry, event, now)
            case StreamReceipted():
                yield from self._on_stream_receipt(event, now)
            case FinalReceipted():
                yield from self._on_final_receipt(event)
            case Tick():
                for timer in self._timers.due(now.mono):
                    yield from self._on_timer(timer, now)
            case Paused():
                yield from self._on_pause()
            case Resumed() if self._on_hold:
                self._on_hold = False
                self._make_ready(self._queue.values())  # SR-77: all that are there
            case Resumed():
                pass
            case _:
                assert_never(event)

    def _on_outcome(
        self, entry: Entry, outcome: Answered | NoAnswer, now: Instant
    ) -> Iterator[Command]:
        """SR-75. A receipt may have been faster than the answer: then it is what counts."""
        if isinstance(outcome, NoAnswer):
            yield self._fall_silent(entry, outcome.why, now)
            return
        if outcome.status not in OK and outcome.status != BAD_REQUEST:
            yield self._fall_silent(entry, f"HTTP {outcome.status}", now)
            return
        self._timers.start(_Timer.CLEANUP, now.mono + self._timing.cleanup_s)
        if outcome.status == BAD_REQUEST and self._is_to_send(entry):
            yield from self._settle(entry, Fate.REFUSED, 0)
        elif not entry.number:  # not of a stream
            yield from self._settle(entry, Fate.REACHED, MessageClass.ACK_REACH_QUEUE)
        self._await_receipt(now)

    def _fall_silent(self, entry: Entry, why: str, now: Instant) -> Close:
        """Inactive until the retransmission timer; what already had its 200 is not sent again
        for this (SR-76), its own timer starts anew with the next answer."""
        self._make_ready([entry])
        self._timers.stop(_Timer.RECEIPT_WAIT)
        self._timers.start(_Timer.RETRANSMISSION, now.mono + self._timing.retransmit_s)
        return self._close("inactive", why)

    def _on_stream_receipt(self, event: StreamReceipted, now: Instant) -> Iterator[Command]:
        """SR-51"""
        stream = self.stream
        if stream is None or not stream.is_named(event.stream_id):
            return
        fresh = stream.acknowledge(event.last, now.unix)
        if fresh:
            self._timers.stop(_Timer.RECEIPT_WAIT)  # it starts anew for those that are left
        for entry in fresh:
            entry.ready = False
            if entry.number not in stream.undecided:
                yield from self._settle(entry, Fate.REACHED, MessageClass.ACK_REACH_QUEUE)

    def _on_final_receipt(self, event: FinalReceipted) -> Iterator[Command]:
        """SR-53. It may overtake the stream receipt, which the receiver holds back a while."""
        stream = self.stream
        if stream is None or not stream.is_named(event.stream_id):
            return
        entry = stream.find(event.number)
        if entry is not None:
            fate = Fate.RECEIVED if event.positive else Fate.DIED
            yield from self._settle(entry, fate, event.message_class)

    def _on_timer(self, timer: _Timer, now: Instant) -> Iterator[Command]:
        match timer:
            case _Timer.RETRANSMISSION:
                pass  # its end is what makes the queue active again. SR-76
            case _Timer.RECEIPT_WAIT:
                self._resend(now)
            case _Timer.CLEANUP:  # SR-78
                if self._connected and self._posting is None:
                    yield self._close("idle")
            case _:
                assert_never(timer)

    def _resend(self, now: Instant) -> None:
        """All that wait for a stream receipt, in order, before what was never sent. SR-76"""
        stream = self.stream
        if stream is not None:
            stream.lose_patience()
            self._make_ready(e for e in stream.unacked.values() if e is not self._posting)
            self._timers.start(_Timer.RECEIPT_WAIT, now.mono + stream.patience_s)

    def _on_pause(self) -> Iterator[Command]:
        """SR-77"""
        self._on_hold = True
        self._timers.stop(_Timer.RECEIPT_WAIT)
        self._timers.stop(_Timer.RETRANSMISSION)
        if self._posting is not None:
            self._make_ready([self._posting])
            self._posting = None
        if self._connected:
            yield self._close("paused")

    # -- inside -----------------------------------------------------------------------------

    def _send_next(self, now: Instant) -> Iterator[Command]:
        if self._posting is not None or self.state in (State.ON_HOLD, State.INACTIVE):
            return
        while self._dispatch:
            entry = self._queue.get(heappop(self._dispatch))
            if entry is None or not entry.ready:
                continue  # acknowledged while it stood in line
            entry.ready = False
            if not _is_expired(entry.message, now):
                yield self._post(entry, now)
                return
            timeout = MessageClass.NACK_REACH_QUEUE_TIMEOUT
            yield from self._settle(entry, Fate.EXPIRED, timeout)  # SR-63
        self._await_receipt(now)

    def _post(self, entry: Entry, now: Instant) -> Post:
        if entry.message.transaction is None:
            content_type, body = self._request(entry.message)
        else:
            stream = self._open_stream(now)
            if not entry.number:
                stream.append(entry)
            content_type, body = self._request(
                entry.message, stream.id.number, entry.number, stream.previous(entry)
            )
        self._posting, self._connected = entry, True
        self._posts += 1
        self._timers.stop(_Timer.CLEANUP)
        return Post(self._posts, content_type, body)

    def _open_stream(self, now: Instant) -> OutgoingStream:
        """SR-54, SR-72: an old id is never used again."""
        if self.stream is None:
            number = (int(now.unix) & U32) << 32 | self._stream_ordinals() & U32
            stream_id = make_stream_id(self._local, number)
            self.stream = OutgoingStream(stream_id, self._timing.receipt_wait_s)
        return self.stream

    def _request(
        self, message: Message, stream: int = 0, number: int = 0, previous: int = 0
    ) -> tuple[str, bytes]:
        """The same bytes for each attempt, but for `previous`: SR-71."""
        if message.transaction is not None:
            place = msgspec.structs.replace(
                message.transaction, sequence_id=stream, number=number, previous=previous
            )
            message = msgspec.structs.replace(
                message, transaction=place, status_queue=self._receipts_to
            )
        return pack_body(
            envelope_from_message(message),
            body=message.body or None,
            extension=message.extension or None,
            number=_BOUNDARIES[message.ordinal % len(_BOUNDARIES)],
            stream_tag=self._stream_tag,
        )

    def _settle(self, entry: Entry, fate: Fate, message_class: int) -> Iterator[Command]:
        """Out of the queue; with the last of a stream goes the stream (3.1.7.6)."""
        entry.gone = True
        entry.ready = False
        del self._queue[entry.token]
        self.done += fate in (Fate.REACHED, Fate.RECEIVED)
        stream = self.stream
        if entry.number and stream is not None:
            stream.remove(entry)
            if not stream.unacked:
                self._timers.stop(_Timer.RECEIPT_WAIT)
            if stream.is_over:
                self.stream = None
        yield Settled(entry.message, fate, message_class, keep_in(entry.message, fate))

    def _is_to_send(self, entry: Entry) -> bool:
        """It is in the queue, and waits for more than its final receipt."""
        if entry.gone:
            return False
        return not entry.number or (self.stream is not None and entry.number in self.stream.unacked)

    def _make_ready(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if not entry.ready and self._is_to_send(entry):
                entry.ready = True
                heappush(self._dispatch, entry.token)

    def _await_receipt(self, now: Instant) -> None:
        if self.stream is not None and self.stream.unacked:
            due = now.mono + self.stream.patience_s
            self._timers.start_if_idle(_Timer.RECEIPT_WAIT, due)

    def _close(self, reason: str, detail: str = "") -> Close:
        self._connected = False
        self._timers.stop(_Timer.CLEANUP)
        return Close(reason, detail)


def _is_expired(message: Message, now: Instant) -> bool:
    """MC-MQSRM 3.1.7.2.1"""
    lasts = message.time_to_reach_queue
    return lasts != INFINITE and int(now.unix) - message.sent_time > lasts
