"""One MS-MQQB session, from first byte to close: events in, commands out.

Acceptor and initiator differ in the handshake only; once OPEN both are peers. A user message is
counted when it comes, handed on in one `Accept` per read, and acknowledged after `Decided` came
back for it: nothing else moves an ack. Session acks leave in the order of arrival, by window
(QB-45) or by timer (QB-41, QB-42); order acks have their own clock (order_acks.py). A sender that
fills half a window again and again within a second need not wait for either: it hears of every
commit at once, so that under load an ack takes as long as a commit does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, IntEnum, auto
from itertools import groupby, takewhile
from math import inf
from typing import Final, assert_never, cast

import msgspec

from bridge.model.errors import ProtocolError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import (
    ACCEPTED,
    BUSY,
    NOT_OF_SESSION,
    OTHER_QUEUE_MANAGER,
    Cursor,
    Outcome,
    Verdict,
)
from bridge.protocol.binary.acks import MAX_FLAGS, ReceiveWindow, SendWindow
from bridge.protocol.binary.handshake import (
    AcceptorHandshake,
    InitiatorHandshake,
    Refused,
    Terms,
)
from bridge.protocol.binary.order_acks import (
    ORDER_ACK_CLASS,
    OrderAcks,
    OrderStream,
    StreamRoom,
    order_ack,
)
from bridge.protocol.commands import (
    Accept,
    Close,
    Command,
    Delivered,
    FinalAcked,
    Opened,
    OrderAcked,
    Send,
)
from bridge.protocol.events import (
    BytesReceived,
    Congested,
    Decided,
    Event,
    Instant,
    PeerClosed,
    Tick,
)
from bridge.protocol.timers import Timers
from bridge.wire.binary.acks import FinalAckBody, OrderAckBody
from bridge.wire.binary.base import MAX_PACKET
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.internal import SessionAck
from bridge.wire.binary.packet import Packet, PacketReader, UserMessage
from bridge.wire.binary.session import SessionHeader

HANDSHAKE_PACKET: Final = 572  # the largest that may come before OPEN
BUSY_S: Final = 1.0
PIGGYBACK_AFTER: Final = 0.75  # of the ack timer. MS-MQQB 3.1.7.11
INTERNAL_TOKEN: Final = 0  # our own order acks: nobody waits for their delivery


class SessionState(Enum):
    WAITING_EC_MSG = auto()  # acceptor's handshake; the initiator's is WAITING_ECR_MSG
    OPEN = auto()
    CLOSED = auto()


class Timer(IntEnum):  # of int: quick to hash
    INIT = auto()
    CLEANUP = auto()
    ACK_SEND = auto()
    ACK_WAIT = auto()


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of MS-MQQB's product notes; seconds."""

    window: int = 64
    init_timeout: float = 60.0
    idle_timeout: float = 300.0
    ack_timeout: float = 20.0


class _Batch:
    """What one read brought, in order; an int (its delivery mode) needs no verdict."""

    __slots__ = ("entries", "messages", "number", "recoverable", "verdicts")

    def __init__(self, number: int, entries: Sequence[Message | int], recoverable: int) -> None:
        self.number, self.entries = number, entries
        self.recoverable = recoverable  # so many of them
        self.messages = [entry for entry in entries if type(entry) is Message]
        self.verdicts: Sequence[Verdict] | None = None


def _closing(message: Message, verdict: Verdict) -> ProtocolError:
    """Why the session ends at a message that is left to its sender."""
    if verdict.reason == NOT_OF_SESSION.reason:
        return ProtocolError(
            "not-a-router",
            f"it hands on a message of queue manager {message.source}; hint: if {message.peer} is "
            "a router of yours, list it under `routers`",
        )
    if verdict.reason == OTHER_QUEUE_MANAGER.reason:
        return ProtocolError(
            verdict.reason,
            f"it sends messages for queue manager {message.destination_qm}, and they stay at their "
            "sender; hint: if this appliance replaces that queue manager, its GUID belongs into "
            "queue_manager.id; else correct the DNS or HOSTS entry that leads its messages here",
        )
    reason = "quota" if verdict.reason == BUSY.reason else verdict.reason
    return ProtocolError(reason, verdict.reason)


def _delivery(entry: Message | int) -> int:
    return entry.delivery if type(entry) is Message else cast(int, entry)


class Session:
    """Events in, commands out; no socket, no clock."""

    def __init__(
        self,
        handshake: AcceptorHandshake | InitiatorHandshake,
        *,
        local: Guid,
        peer: str,
        ordinals: Callable[[], int],
        now: Instant,
        settings: SessionSettings,
        bar: Callable[[Guid, str], str] = lambda _remote, _peer: "",
        room: StreamRoom | None = None,
    ) -> None:
        """`bar` tells why a queue manager may not have a session from that address, or nothing."""
        self.state = SessionState.WAITING_EC_MSG
        self.peer = peer
        self.remote = NULL_GUID
        self.received = ReceiveWindow()
        self.sent = SendWindow()
        self._handshake = handshake
        self._local = local
        self._ordinals = ordinals
        self._settings = settings
        self._bar = bar
        self._terms: Terms | None = None
        self._packets = PacketReader()
        self._packets.max_packet = HANDSHAKE_PACKET
        self._timers = Timers[Timer]()
        self._timers.start(Timer.INIT, now.mono + settings.init_timeout)
        self._order_acks = OrderAcks(now.mono, room)
        self._order_acks_waiting = 0  # of the outgoing
        self._arrived: list[Message | int] = []
        self._batches: deque[_Batch] = deque()
        self._batch_number = 0
        self._handed_over = 0  # recoverable ones
        self._outgoing: deque[tuple[UserMessage, int]] = deque()
        self._window = self._told_window = settings.window  # what the peer may have under way
        self._peer_window = settings.window
        self._ack_started = 0.0  # of the running ack timer
        self._ack_delay = 0.0
        self._ack_overdue = False  # the timer ran out before there was a verdict to tell
        self._since = now.mono  # when the second began in which we count
        self._decided_before = 0  # until then
        self._was_busy = False
        self._active = False  # a user message since the cleanup timer last looked
        self._heard = False  # any packet since the ack wait timer last looked
        self._commands: list[Command] = []

    # -- the outside ------------------------------------------------------------------------

    def open(self, now: Instant) -> list[Command]:
        """Initiator: say hello. The connection has just been made."""
        assert isinstance(self._handshake, InitiatorHandshake)
        return [Send(self._handshake.open(now))]

    def handle(self, event: Event, now: Instant) -> list[Command]:
        if self.state is SessionState.CLOSED:
            return []
        try:
            self._react(event, now)
        except ProtocolError as fault:  # what came before it still counts
            if isinstance(fault, Refused):
                self._commands.append(Send(fault.reply))
            self._close(fault.reason, fault.detail)
        return self._take()

    def deliver(self, packets: Iterable[tuple[UserMessage, int]], now: Instant) -> list[Command]:
        """Send user messages of ours as the window allows; `Delivered` names their tokens."""
        if self.state is SessionState.CLOSED:
            return []
        self._outgoing.extend(packets)
        self._pump(now)
        return self._take()

    def next_wakeup(self) -> float | None:
        if self.state is SessionState.CLOSED:
            return None
        due = self._timers.next_wakeup()
        if self._order_ack_room > 0:
            order_acks = self._order_acks.next_wakeup()
            if order_acks is not None and (due is None or order_acks < due):
                return order_acks
        return due

    @property
    def room(self) -> int:
        """How many more messages of ours may be under way. QB-50, CONFLICT-10"""
        if self.state is not SessionState.OPEN:
            return 0
        return max(0, self._send_window - self.sent.unacked - len(self._outgoing))

    @property
    def _send_window(self) -> int:
        """ConnectionParameters may say 0, but who waits for a window of 0 waits for ever."""
        return max(1, min(self._settings.window, self._peer_window))

    @property
    def is_idle(self) -> bool:
        """Nothing is unacknowledged in either direction, and no packet is half there."""
        received = self.received
        return received.received == received.acked and self.sent.idle and not self.unfinished

    @property
    def unfinished(self) -> int:
        """Bytes that wait for the rest of their packet."""
        return self._packets.unfinished

    def close(self, reason: str) -> list[Command]:
        """End it for a reason of the owner's."""
        self._close(reason)
        return self._take()

    def finish(self, reason: str, now: Instant) -> list[Command]:
        """End it, all told: acks that wait for their timer (QB-41, QB-85) leave before."""
        if self.state is SessionState.OPEN:
            if self.received.unacked:
                self._send_session_ack(now)
            self._send_order_acks(inf, now)
        self._close(reason)
        return self._take()

    def _close(self, reason: str, detail: str = "") -> None:
        if self.state is not SessionState.CLOSED:
            self.state = SessionState.CLOSED
            self._outgoing.clear()
            self._batches.clear()
            self._order_acks.close()
            self._commands.append(Close(reason, detail))

    def _take(self) -> list[Command]:
        commands, self._commands = self._commands, []
        return commands

    # -- events -----------------------------------------------------------------------------

    def _react(self, event: Event, now: Instant) -> None:
        match event:
            case BytesReceived():
                self._on_bytes(event.data, now)
            case Decided():
                self._on_decided(event, now)
            case Congested():
                self._on_congested(event.jammed, now)
            case Tick():
                self._on_tick(now)
            case PeerClosed():
                self._close("peer-closed")
            case _:
                assert_never(event)

    def _on_bytes(self, data: bytes, now: Instant) -> None:
        self._heard = True  # QB-1
        is_open = self.state is SessionState.OPEN
        received = self.received
        packets: Iterable[Packet | list[Message]] = (
            self._packets.feed_open(data, self.peer, int(now.unix * 1000))
            if is_open
            else self._packets.feed(data)
        )
        try:
            for packet in packets:
                if type(packet) is list:
                    received.received += len(packet)
                    received.recoverable_received += sum([m.delivery for m in packet])
                    self._arrived += packet
                elif type(packet) is UserMessage and self.state is SessionState.OPEN:
                    self._on_user_message(packet, now)
                else:
                    self._on_internal(cast(Packet, packet), now)
        finally:  # one hand-over per read, and a fault takes nothing back
            if self._arrived:
                self._hand_over(now)

    def _on_internal(self, packet: Packet, now: Instant) -> None:
        if self.state is SessionState.OPEN:
            if type(packet) is not SessionAck:  # QB-11, QB-17
                raise ProtocolError("unexpected-packet", type(packet).__name__)
            self._on_session_header(packet.session, now)
            return
        reply = self._handshake.on_packet(packet, now)
        if reply:
            self._commands.append(Send(reply))
        if terms := self._handshake.terms:
            self._on_open(terms, now)

    def _on_open(self, terms: Terms, now: Instant) -> None:
        if why := self._bar(terms.remote, self.peer):
            raise ProtocolError(why, f"queue manager {terms.remote}")
        self.state = SessionState.OPEN
        self.remote = terms.remote
        self._terms = terms
        self._peer_window = terms.window
        self._packets.max_packet = MAX_PACKET
        self._timers.stop(Timer.INIT)
        self._timers.start(Timer.CLEANUP, now.mono + self._settings.idle_timeout)
        self._commands.append(Opened(terms.remote))
        self._pump(now)

    def _on_user_message(self, packet: UserMessage, now: Instant) -> None:
        recoverable = packet.user.delivery
        self.received.arrive(recoverable)  # before anything can refuse it: QB-60, CONFLICT-6
        if packet.properties.message_class >= ORDER_ACK_CLASS and (
            packet.is_order_ack or packet.is_final_ack
        ):
            self._arrived.append(recoverable)
            self._on_transactional_ack(packet)
        else:
            self._arrived.append(message_from_packet(packet, self.peer, int(now.unix * 1000)))
        if packet.session is not None:
            self._on_session_header(packet.session, now)

    def _on_transactional_ack(self, packet: UserMessage) -> None:
        body = packet.properties.body
        if packet.is_order_ack:
            ack = OrderAckBody.unpack(body)
            self._commands.append(OrderAcked(Cursor(ack.sequence_id, ack.number)))
        else:
            final = FinalAckBody.unpack(body)
            self._commands.append(
                FinalAcked(final.source, final.message_id, packet.properties.message_class)
            )

    def _hand_over(self, now: Instant) -> None:
        entries, self._arrived = self._arrived, []
        self._active = True
        self._batch_number += 1
        fresh = self.received.recoverable_received - self._handed_over
        self._handed_over = self.received.recoverable_received
        batch = _Batch(self._batch_number, entries, fresh)
        self._batches.append(batch)
        self._arm_ack_timer(fresh, now)
        if batch.messages:
            self._commands.append(Accept(batch.number, batch.messages))
        else:
            self._on_decided(Decided(batch.number, ()), now)

    def _on_session_header(self, header: SessionHeader, now: Instant) -> None:
        taken = [token for token in self.sent.on_header(header) if token != INTERNAL_TOKEN]
        if taken:
            self._commands.append(Delivered(taken))
        self._peer_window = header.window_size
        if self.sent.idle:
            self._timers.stop(Timer.ACK_WAIT)
        else:
            self._start_ack_wait(now)  # MS-MQQB 3.1.5.5.5
        self.received.check(header)
        self._pump(now)

    def _on_congested(self, jammed: bool, now: Instant) -> None:
        """QB-51: acks that leave while it is jammed say 1; after it the peer hears at once."""
        self._window = 1 if jammed else self._settings.window
        if self._told_window < self._window and self.state is SessionState.OPEN:
            self._send_session_ack(now)

    # -- verdicts and what follows from them ------------------------------------------------

    def _on_decided(self, event: Decided, now: Instant) -> None:
        is_busy = self._is_busy(now.mono)
        if self._batches:
            index = event.batch - self._batches[0].number
            if 0 <= index < len(self._batches):
                self._batches[index].verdicts = event.verdicts
        while self._batches and self._batches[0].verdicts is not None:
            self._settle(self._batches.popleft(), now)
        if self.received.unacked and (
            self._ack_overdue or self.received.unacked >= self._ack_threshold or is_busy
        ):
            self._send_session_ack(now)

    def _is_busy(self, now: float) -> bool:
        """It had half a window of verdicts in this second, or in the one before."""
        decided = self.received.decided
        if not now - self._since < BUSY_S:
            passed = now - self._since < 2 * BUSY_S
            self._was_busy = passed and decided - self._decided_before >= self._ack_threshold
            self._since, self._decided_before = now, decided
        return self._was_busy or decided - self._decided_before >= self._ack_threshold

    def _settle(self, batch: _Batch, now: Instant) -> None:
        """As if its messages had come one by one. QB-42, QB-45, QB-85"""
        entries, busy = batch.entries, None
        streams: dict[tuple[Guid, str], tuple[Message, Cursor]] = {}
        for message, verdict in zip(batch.messages, batch.verdicts or (), strict=True):
            if verdict is ACCEPTED:
                continue
            if verdict.outcome is Outcome.BUSY:  # QB-67: unacknowledged, the peer keeps it
                busy = message, verdict
                entries = list(takewhile(lambda entry: entry is not message, entries))  # noqa: B023 - used at once
                break
            if (cursor := verdict.cursor) is not None:
                streams[message.source, message.destination] = message, cursor
        if batch.recoverable in (0, len(batch.entries)):  # all of one kind
            self._count_decided(batch.recoverable, len(entries), now)
        else:
            for recoverable, run in groupby(entries, _delivery):
                self._count_decided(recoverable, len(list(run)), now)
        if busy is not None:
            if self.received.unacked:  # what came before it is decided
                self._send_session_ack(now)
            raise _closing(*busy)
        for message, cursor in streams.values():
            early = self._order_acks.schedule(message, cursor, now.mono)
            if early is not None and self._order_ack_room > 0:
                self._send_order_ack(early, now)

    def _count_decided(self, recoverable: int, count: int, now: Instant) -> None:
        """An ack leaves when half a window is full, or one more would not fit into its flags."""
        received = self.received
        while count:
            threshold = self._ack_threshold  # an ack that says another window changes it
            step = min(count, max(1, threshold - received.unacked))
            if recoverable:
                stored = received.recoverable_decided - received.recoverable_acked
                if stored >= MAX_FLAGS:
                    self._send_session_ack(now)
                    continue
                step = min(step, MAX_FLAGS - stored)
                received.recoverable_decided += step
            received.decided += step
            count -= step
            if received.unacked >= threshold:
                self._send_session_ack(now)

    @property
    def _ack_threshold(self) -> int:
        """Half a window, so that the peer never stalls at a full one. QB-45"""
        return max(1, min(self._told_window, self._peer_window) // 2)

    def _arm_ack_timer(self, fresh: int, now: Instant) -> None:
        """QB-41; QB-42: the first recoverable since the last ack shortens the wait."""
        assert self._terms is not None
        if not self._timers.running(Timer.ACK_SEND):
            self._start_ack_timer(self._terms.ack_timeout / 2, now)
        received = self.received
        if fresh and received.recoverable_received - fresh == received.recoverable_acked:
            self._start_ack_timer(self._terms.recoverable_ack_delay, now)

    def _start_ack_timer(self, delay: float, now: Instant) -> None:
        self._ack_started, self._ack_delay = now.mono, delay
        self._timers.start(Timer.ACK_SEND, now.mono + delay)

    def _session_header(self, now: Instant) -> SessionHeader:
        """Tell all that is decided. The timer starts anew for what is not."""
        received = self.received
        header = received.acknowledge(self.sent, self._window)
        self._told_window = self._window
        self._ack_overdue = False
        assert self._terms is not None
        if received.received == received.acked:
            self._timers.stop(Timer.ACK_SEND)  # CONFLICT-12
        elif received.recoverable_received > received.recoverable_acked:
            self._start_ack_timer(self._terms.recoverable_ack_delay, now)
        else:
            self._start_ack_timer(self._terms.ack_timeout / 2, now)
        return header

    def _send_session_ack(self, now: Instant) -> None:
        self._commands.append(Send(SessionAck(session=self._session_header(now)).pack()))

    # -- sending ----------------------------------------------------------------------------

    def _pump(self, now: Instant) -> None:
        if self.state is not SessionState.OPEN:
            return
        while self._outgoing and self.sent.unacked < self._send_window:
            packet, token = self._outgoing.popleft()
            self._order_acks_waiting -= token == INTERNAL_TOKEN
            self._send_user_message(packet, token, now)

    def _send_user_message(self, packet: UserMessage, token: int, now: Instant) -> None:
        self._active = True
        self.sent.send(token, packet.user.delivery)
        elapsed = now.mono - self._ack_started
        if (
            self.received.unacked
            and self._timers.running(Timer.ACK_SEND)
            and elapsed > PIGGYBACK_AFTER * self._ack_delay
            and not (packet.is_order_ack or packet.is_final_ack)  # MS-MQQB 2.2.4, 2.2.5: no flags
        ):  # MS-MQQB 3.1.7.11: it counts the carrying message itself
            packet = msgspec.structs.replace(packet, session=self._session_header(now))
        self._commands.append(Send(packet.pack()))
        if not self._timers.running(Timer.ACK_WAIT):
            self._heard = True  # the first period is always granted
            self._start_ack_wait(now)

    def _start_ack_wait(self, now: Instant) -> None:
        assert self._terms is not None
        patience = self._terms.ack_timeout * (2 if self._terms.direct else 1)
        self._timers.start(Timer.ACK_WAIT, now.mono + patience)

    # -- timers -----------------------------------------------------------------------------

    def _on_tick(self, now: Instant) -> None:
        for timer in self._timers.due(now.mono):
            self._on_timer(timer, now)
            if self.state is SessionState.CLOSED:
                return
        if self.state is SessionState.OPEN:
            self._send_order_acks(now.mono, now)

    @property
    def _order_ack_room(self) -> int:
        """A peer that acknowledges nothing does not make us pile up order acks: a later one says
        all that an earlier one would have said."""
        return self._settings.window - self._order_acks_waiting

    def _send_order_acks(self, due: float, now: Instant) -> None:
        streams = self._order_acks.due(due)
        while self._order_ack_room > 0 and (stream := next(streams, None)) is not None:
            self._send_order_ack(stream, now)

    def _send_order_ack(self, stream: OrderStream, now: Instant) -> None:
        packet = order_ack(
            stream,
            local=self._local,
            peer=self.peer,
            ordinal=self._ordinals(),
            now=int(now.unix),
        )
        self._outgoing.append((packet, INTERNAL_TOKEN))
        self._order_acks_waiting += 1
        self._pump(now)

    def _on_timer(self, timer: Timer, now: Instant) -> None:
        match timer:
            case Timer.INIT:
                self._close("init-timeout")
            case Timer.CLEANUP if not self._active:  # QB-151
                self._close("idle")
            case Timer.CLEANUP:
                self._active = False
                self._timers.start(Timer.CLEANUP, now.mono + self._settings.idle_timeout)
            case Timer.ACK_SEND if self.received.unacked:
                self._send_session_ack(now)
            case Timer.ACK_SEND:  # QB-44, but late verdicts are told as soon as they come
                self._ack_overdue = self.received.received != self.received.decided
            case Timer.ACK_WAIT:
                self._on_ack_wait(now)
            case _:
                assert_never(timer)

    def _on_ack_wait(self, now: Instant) -> None:
        """QB-52"""
        if self.sent.idle:
            return
        if not self._heard:
            self._close("ack-wait")
            return
        self._heard = False
        self._start_ack_wait(now)
