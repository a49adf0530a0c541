"""Messages for one peer, over as many sessions as it takes. MS-MQQB 3.1.7.1, 3.1.5.6

A message has been handed over when the peer's session ack covers it and, if it is transactional,
the order ack too (QB-48). With it it is done, unless it asks for a final ack: then it is not sent
again but stays in the table until that has come (QB-98, QB-99). A new session sends all that is
not handed over, in the old order (QB-53).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Final

import msgspec

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, Cursor
from bridge.protocol.binary.handshake import InitiatorHandshake
from bridge.protocol.binary.session import Session, SessionSettings, SessionState
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
from bridge.protocol.events import Decided, Event, Instant, Tick
from bridge.protocol.timers import Timers
from bridge.wire.binary.convert import packet_from_message
from bridge.wire.binary.packet import UserMessage

RESEND_S: Final = (30.0,) * 3 + (300.0,) * 3 + (1800.0,) * 3 + (21600.0,)  # QB-97


class _Timer(Enum):
    RESEND = auto()


class _Entry:
    """One message that is not done yet."""

    __slots__ = (
        "before",
        "final_due",
        "message",
        "number",
        "order_acked",
        "sent",
        "sequence_id",
        "session_acked",
        "token",
    )

    def __init__(self, token: int, message: Message) -> None:
        self.token, self.message = token, message
        self.sequence_id = self.number = 0
        self.before: _Entry | None = None  # in the sequence
        self.sent = self.session_acked = self.final_due = False
        self.order_acked = True

    def join(self, sequence_id: int, number: int, before: _Entry | None) -> None:
        """A transactional one gets its place."""
        self.sequence_id, self.number, self.before = sequence_id, number, before
        self.order_acked = False
        tx = self.message.transaction
        self.final_due = bool(self.message.journal or (tx and tx.final_ack))  # QB-91

    @property
    def handed_over(self) -> bool:
        return self.session_acked and self.order_acked

    def previous(self) -> int:
        """First n - 1, later the number before it that is not handed over. QB-95"""
        while self.before is not None and self.before.handed_over:
            self.before = self.before.before
        if not self.sent:
            return self.number - 1
        return 0 if self.before is None else self.before.number


class Outgoing:
    """Pure: told what happened and when, answers what to write."""

    def __init__(
        self,
        *,
        local: Guid,
        remote: Guid = NULL_GUID,
        sequence_timestamp: int,
        sequence_ordinal: int = 1,
        ordinals: Callable[[], int],
        settings: SessionSettings | None = None,
    ) -> None:
        self._local, self._remote = local, remote
        self._ordinals = ordinals
        self._settings = settings or SessionSettings()
        self._sequence_id = sequence_timestamp << 32 | sequence_ordinal  # QB-96
        self._numbers = 0
        self._order_due = 0  # messages that wait for their order ack
        self._tokens = 0
        self._table: dict[int, _Entry] = {}
        self._unsent: deque[_Entry] = deque()
        self._last: _Entry | None = None  # of the sequence
        self._finals: dict[tuple[Guid, int], _Entry] = {}  # by message id. QB-99
        self._timers = Timers[_Timer]()
        self._resends = 0
        self._session: Session | None = None
        self.done = self.session_acked = self.order_acked = 0
        self.told: list[Message | FinalAcked] = []  # what the peer said of our messages

    # -- the outside ------------------------------------------------------------------------

    def add(self, messages: list[Message]) -> None:
        """To be sent in this order; a transactional one gets its place in the stream here."""
        for message in messages:
            self._tokens += 1
            entry = self._table[self._tokens] = _Entry(self._tokens, message)
            if message.transaction is not None:
                self._append(entry)
            self._unsent.append(entry)

    @property
    def waiting(self) -> int:
        """How many are not done; the last is not before the peer has our session ack of what it
        said of them, or it would have to say it again (QB-6)."""
        return len(self._table) or int(self._owes_ack)

    @property
    def all_handed_over(self) -> bool:
        """Only express messages are left, and all of them are sent: at most once is their lot,
        and the peer may take ten seconds to acknowledge the last few (QB-41)."""
        if self._unsent or self._owes_ack:
            return False
        return all(not e.message.delivery for e in self._table.values())

    def forget_express(self) -> None:
        """The peer has read to the end of the connection: nothing more will be heard."""
        for entry in [e for e in self._table.values() if e.sent and not e.message.delivery]:
            entry.session_acked = True
            self._finish(entry)

    def connected(self, peer: str, now: Instant) -> list[Command]:
        """A connection was made: begin a session and send all that is left."""
        handshake = InitiatorHandshake(
            self._local,
            self._remote,
            self._settings.window,
            int(self._settings.ack_timeout * 1000),
        )
        self._session = Session(
            handshake,
            local=self._local,
            peer=peer,
            ordinals=self._ordinals,
            now=now,
            settings=self._settings,
        )
        left = [entry for entry in self._table.values() if not entry.handed_over]
        for entry in left:
            self.session_acked -= entry.session_acked
            entry.session_acked = False
        self._unsent = deque(left)
        self._timers.stop(_Timer.RESEND)  # it starts with what is sent now
        return self._session.open(now)

    def handle(self, event: Event, now: Instant) -> list[Command]:
        if self._session is None:
            return []
        commands = list(self._digest(self._session.handle(event, now), now))
        if isinstance(event, Tick) and self._timers.due(now.mono):
            self._resend(now)
        return commands + self.pump(now)

    def next_wakeup(self) -> float | None:
        session = None if self._session is None else self._session.next_wakeup()
        due = (session, self._timers.next_wakeup())
        return min((at for at in due if at is not None), default=None)

    def pump(self, now: Instant) -> list[Command]:
        """Send what the window allows."""
        session = self._session
        if session is None or session.state is not SessionState.OPEN:
            return []
        batch: list[tuple[UserMessage, int]] = []
        while self._unsent and len(batch) < session.room:
            entry = self._unsent.popleft()
            if not entry.handed_over:
                batch.append((self._packet(entry), entry.token))
        if not batch:
            return []
        if any(packet.transaction is not None for packet, _ in batch):
            self._timers.start_if_idle(_Timer.RESEND, now.mono + self._patience)
        return list(self._digest(session.deliver(batch, now), now))

    # -- inside -----------------------------------------------------------------------------

    def _append(self, entry: _Entry) -> None:
        """When all before it are order-acked, a new sequence begins with it. QB-96"""
        if self._numbers and not self._order_due:
            self._sequence_id += 1
            self._numbers, self._last = 0, None
        self._numbers += 1
        self._order_due += 1
        entry.join(self._sequence_id, self._numbers, self._last)
        self._last = entry
        if entry.final_due:
            self._finals[entry.message.source, entry.message.ordinal] = entry

    @property
    def _owes_ack(self) -> bool:
        session = self._session
        if session is None or session.state is not SessionState.OPEN:
            return False
        return session.received.recoverable_received > session.received.recoverable_acked

    def _packet(self, entry: _Entry) -> UserMessage:
        message = entry.message
        if message.transaction is not None:
            numbers = msgspec.structs.replace(
                message.transaction,
                sequence_id=entry.sequence_id,
                number=entry.number,
                previous=entry.previous(),
            )
            message = msgspec.structs.replace(message, transaction=numbers)
        entry.sent = True
        return packet_from_message(message)

    def _digest(self, commands: list[Command], now: Instant) -> Iterator[Command]:
        for command in commands:
            match command:
                case Delivered():
                    for token in command.tokens:
                        self._session_acked(token)
                case OrderAcked():
                    self._order_acked(command.cursor, now)
                case FinalAcked():
                    self.told.append(command)
                    self._final_acked(command)
                case Accept():
                    self.told += command.messages
                    assert self._session is not None
                    verdicts = [ACCEPTED] * len(command.messages)
                    yield from self._session.handle(Decided(command.batch, verdicts), now)
                case Send() | Opened() | Close():
                    yield command

    def _session_acked(self, token: int) -> None:
        entry = self._table.get(token)
        if entry is not None and not entry.session_acked:
            entry.session_acked = True
            self.session_acked += 1
            self._finish(entry)

    def _final_acked(self, ack: FinalAcked) -> None:
        """Whatever its class says of the message: it is the last word. QB-99"""
        entry = self._finals.pop((ack.source, ack.ordinal), None)
        if entry is not None:
            entry.final_due = False
            self._finish(entry)

    def _order_acked(self, cursor: Cursor, now: Instant) -> None:
        if cursor.sequence_id != self._sequence_id:  # QB-98
            return
        fresh = [e for e in self._table.values() if not e.order_acked and e.number <= cursor.number]
        if not fresh:
            return
        self._order_due -= len(fresh)
        self.order_acked += len(fresh)
        for entry in fresh:
            entry.order_acked = True
            self._finish(entry)
        self._resends = 0  # on progress only. CONFLICT-11
        self._timers.stop(_Timer.RESEND)
        if any(e.sent and not e.order_acked for e in self._table.values()):
            self._timers.start(_Timer.RESEND, now.mono + self._patience)

    def _finish(self, entry: _Entry) -> None:
        done = entry.handed_over and not entry.final_due
        if done and self._table.pop(entry.token, None) is not None:
            self.done += 1

    @property
    def _patience(self) -> float:
        return RESEND_S[min(self._resends, len(RESEND_S) - 1)]

    def _resend(self, now: Instant) -> None:
        """No order ack came: all of them again, in order, on the same session. QB-97"""
        unsent = {entry.token for entry in self._unsent}
        self._unsent = deque(
            e for e in self._table.values() if not e.order_acked or e.token in unsent
        )
        self._resends += 1
        self._timers.start(_Timer.RESEND, now.mono + self._patience)
