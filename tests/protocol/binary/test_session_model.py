"""A session against a model of what an acceptor owes its peer, in any order of events.

The peer sends express, recoverable and transactional messages in chunks of any size; verdicts
come back in any order; time passes; the way to Kafka jams; we send messages of our own. After
every step each header that left is held against the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, DUPLICATE, Cursor, Verdict
from bridge.protocol.binary.session import SessionSettings, SessionState
from bridge.protocol.commands import Accept, Close, Command, Delivered, Send
from bridge.protocol.events import BytesReceived, Congested, Decided, Event, Tick
from tests.outside.expected import expected_order_ack
from tests.outside.rawmsmq import ZERO, SessionHeader, Tx, build, direct, private, session_ack
from tests.outside.rawparse import Received, SessionAck, parse
from tests.protocol.binary.peer import (
    ADDRESS,
    CLIENT,
    LOCAL,
    SEQUENCE,
    SERVER,
    at,
    message,
    open_acceptor,
    taken,
    user_message,
)

OTHER = UUID("99999999-2222-3333-4444-555555555555")
STREAMS = (
    (CLIENT, direct("OS:appl\\private$\\q1"), ZERO, "DIRECT=OS:appl\\private$\\q1"),
    (CLIENT, direct("OS:appl\\private$\\q2"), ZERO, "DIRECT=OS:appl\\private$\\q2"),
    (OTHER, private(7), SERVER, f"PRIVATE={LOCAL}\\00000007"),
)
KINDS = st.sampled_from(("express", "recoverable", "stream 0", "stream 1", "stream 2"))
ACK_PERIOD = 60.0  # half of the ack timeout
RECOVERABLE_DELAY = 2.0


class SessionModel(RuleBasedStateMachine):
    @initialize(
        window=st.sampled_from((64, 10, 1)),
        own=st.sampled_from((64, 200)),
    )
    def open(self, window: int, own: int) -> None:
        self.own = own
        self.session = open_acceptor(
            window=window if own == 64 else 400,
            recoverable_ack_ms=int(RECOVERABLE_DELAY * 1000),
            ack_ms=int(ACK_PERIOD * 2000),
            settings=SessionSettings(window=own, idle_timeout=1e9),
        )
        self.peer_window = window if own == 64 else 400
        self.now = 0.0
        self.jammed = False
        # What the peer sent, and what of it has its verdict.
        self.ordinals = 0
        self.numbers = [0] * len(STREAMS)
        self.pending = b""
        self.modes: list[int] = []  # delivery modes, in the order sent
        self.expected: list[int] = []  # ordinals that no Accept has shown yet
        self.batches: dict[int, tuple[Sequence[Message], list[Verdict]]] = {}
        self.decided: dict[int, int] = {}  # batch -> messages, for batches out of order
        self.order: list[int] = []  # batches not settled, in the order of arrival
        self.prefix = 0  # messages decided without a hole
        self.durable: dict[tuple[str, str], list[Cursor]] = {}  # of the settled batches
        self.acked = 0
        # What we sent.
        self.sent = self.sent_recoverable = 0
        self.tokens = 0
        self.undelivered: set[int] = set()
        self.peer_acked = self.peer_stored = 0
        self.unheard = 0.0  # since when the peer owes us an ack
        self.order_acked: dict[tuple[str, str], Cursor] = {}

    # -- events -----------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        self.watch(self.session.handle(event, at(self.now)))

    @rule(kinds=st.lists(KINDS, min_size=1, max_size=40), data=st.data())
    def the_peer_sends(self, kinds: list[str], data: st.DataObject) -> None:
        raw = self.pending + b"".join(map(self.make, kinds))
        cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=4))
        if not data.draw(st.booleans()):
            cuts.append(len(raw))  # else the rest stays in the pipe
        start = 0
        for cut in sorted(cuts):
            if cut > start:
                self.apply(BytesReceived(raw[start:cut]))
                start = cut
        self.pending = raw[start:]

    def make(self, kind: str) -> bytes:
        self.ordinals += 1
        self.expected.append(self.ordinals)
        self.modes.append(int(kind != "express"))
        if kind in ("express", "recoverable"):
            return build(message(self.ordinals, recoverable=kind == "recoverable"))
        index = int(kind[-1])
        source, queue, manager, _ = STREAMS[index]
        self.numbers[index] += 1
        number = self.numbers[index]
        tx = Tx(sequence_id=SEQUENCE + index, number=number, previous=number - 1)
        return build(message(self.ordinals, tx=tx, queue=queue, manager=manager, source=source))

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def a_batch_is_decided(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.batches)))
        self.decide(number)

    def decide(self, number: int) -> None:
        messages, verdicts = self.batches.pop(number)
        self.decided[number] = len(messages)
        settled = []
        while self.order and self.order[0] in self.decided:
            first = self.order.pop(0)
            self.prefix += self.decided.pop(first)
            settled.append(first)
        for batch in settled:
            self.settle(*self.done.pop(batch) if batch in self.done else (messages, verdicts))
        if number not in settled:
            self.done[number] = messages, verdicts
        self.apply(Decided(number, verdicts))

    done: dict[int, tuple[Sequence[Message], list[Verdict]]]

    def settle(self, messages: Sequence[Message], verdicts: Sequence[Verdict]) -> None:
        for got, verdict in zip(messages, verdicts, strict=True):
            if verdict.cursor is not None:
                key = str(got.source), got.destination
                self.durable.setdefault(key, []).append(verdict.cursor)

    @rule(seconds=st.sampled_from((0.0, 0.1, 0.5, 1.0, 1.9, 2.0, 10.0, 45.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.session.next_wakeup()) is not None and due <= until:
            self.now = max(self.now, due)
            self.apply(Tick())
        self.now = until
        if self.owed and self.now - self.unheard > 90.0:
            self.the_peer_acks(stored=True)

    @rule(jammed=st.booleans())
    def kafka(self, jammed: bool) -> None:
        self.jammed = jammed
        self.apply(Congested(jammed))

    @rule(stored=st.lists(st.booleans(), min_size=1, max_size=20))
    def we_send(self, stored: list[bool]) -> None:
        packets = []
        for recoverable in stored:
            self.tokens += 1
            self.undelivered.add(self.tokens)
            raw = build(message(self.tokens, recoverable=recoverable, source=SERVER))
            packets.append((user_message(raw), self.tokens))
        self.watch(self.session.deliver(packets, at(self.now)))

    @property
    def owed(self) -> bool:
        return (self.peer_acked, self.peer_stored) != (self.sent, self.sent_recoverable)

    @rule(stored=st.booleans())
    def the_peer_acks(self, stored: bool) -> None:
        """It has taken all we sent; of recoverable messages up to 32 per header."""
        fresh = min(self.sent_recoverable - self.peer_stored, 32) if stored else 0
        base = self.peer_stored + 1 if fresh else 0
        self.peer_stored += fresh
        self.peer_acked = self.sent
        self.unheard = self.now
        flags = (1 << fresh) - 1
        received = len(self.modes) - len(self.unread())
        header = SessionHeader(
            ack=self.sent,
            recoverable_ack=base,
            flags=flags,
            sent=received,
            sent_recoverable=sum(self.modes[:received]),
            window=self.peer_window,
        )
        if not self.pending:  # a header between two halves of a message would not be one
            self.apply(BytesReceived(session_ack(header)))
        else:
            self.peer_stored -= fresh
            self.peer_acked = -1

    def unread(self) -> list[int]:
        return self.expected

    # -- what must hold ---------------------------------------------------------------------

    def watch(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send():
                    self.on_packet(command.data)
                case Accept():
                    self.on_accept(command)
                case Delivered():
                    tokens = set(command.tokens)
                    assert len(tokens) == len(command.tokens)
                    assert tokens <= self.undelivered
                    self.undelivered -= tokens
                case Close():
                    raise AssertionError(command)
                case _:
                    raise AssertionError(command)
        assert self.session.state is SessionState.OPEN

    def on_accept(self, command: Accept) -> None:
        """In order, each message once. Its verdicts are made now and told later."""
        ordinals = [m.ordinal for m in command.messages]
        assert ordinals == self.expected[: len(ordinals)]
        del self.expected[: len(ordinals)]
        verdicts = [
            taken(m.transaction.number, m.transaction.sequence_id)
            if m.transaction
            else (ACCEPTED, DUPLICATE)[m.ordinal % 2]
            for m in command.messages
        ]
        self.batches[command.batch] = command.messages, verdicts
        self.order.append(command.batch)

    def on_packet(self, raw: bytes) -> None:
        packet = parse(raw)
        if isinstance(packet, Received):
            if not self.owed:
                self.unheard = self.now
            self.sent += 1
            self.sent_recoverable += packet.is_recoverable
            assert self.sent - max(self.peer_acked, 0) <= max(64, self.own)
            if packet.is_order_ack:
                self.on_order_ack(packet)
            if packet.session is not None:
                self.on_header(packet.session)
        else:
            assert isinstance(packet, SessionAck)
            self.on_header(packet.session)

    def on_header(self, header: SessionHeader) -> None:
        """QB-43, QB-46: never beyond the decided prefix; base and flags exact; true counts."""
        assert self.acked <= header.ack <= self.prefix
        before = sum(self.modes[: self.acked])
        fresh = sum(self.modes[self.acked : header.ack])
        assert fresh <= 32
        assert header == SessionHeader(
            ack=header.ack,
            recoverable_ack=before + 1 if fresh else 0,
            flags=(1 << fresh) - 1,
            sent=self.sent,
            sent_recoverable=self.sent_recoverable,
            window=1 if self.jammed else self.own,
        )
        self.acked = header.ack

    def on_order_ack(self, ack: Received) -> None:
        """QB-86: a cursor that is durable, never one back; and the right bytes."""
        sequence, number, _ = ack.sequence
        index = sequence - SEQUENCE
        source, _, manager, name = STREAMS[index]
        assert ack.raw == expected_order_ack(
            ack,
            server=SERVER,
            peer=source if manager == SERVER else ADDRESS,
            sequence_id=sequence,
            number=number,
        )
        key = str(source), name
        cursor = Cursor(sequence, number)
        assert cursor in self.durable[key]
        assert number >= self.order_acked.get(key, Cursor()).number
        self.order_acked[key] = cursor

    def teardown(self) -> None:
        """In the end everything is decided, acknowledged and delivered."""
        if not hasattr(self, "session"):
            return
        if self.pending:
            raw, self.pending = self.pending, b""
            self.apply(BytesReceived(raw))
        while self.batches:
            self.decide(min(self.batches))
        assert not self.expected
        for _ in range(40 + self.tokens):
            if not self.owed and self.tokens and not self.undelivered:
                break
            self.the_peer_acks(stored=True)
            self.time_passes(1.0)
        self.time_passes(61.0)
        self.time_passes(10.5)
        assert self.prefix == len(self.modes)
        assert self.acked == len(self.modes)
        assert not self.undelivered
        assert self.order_acked == {key: cursors[-1] for key, cursors in self.durable.items()}


TestSessionModel = SessionModel.TestCase
TestSessionModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
