"""A session against a model of what an acceptor owes its peer, in any order of events.

The peer sends express, recoverable and transactional messages in chunks of any size; verdicts
come back in any order; time passes; the way to Kafka jams; we send messages of our own. After
every step each header that left is held against the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bridge.model.verdict import ACCEPTED, DUPLICATE
from bridge.protocol.binary.session import SessionSettings, SessionState
from bridge.protocol.commands import Accept, Command, Delivered, Send
from bridge.protocol.events import BytesReceived, Congested, Decided, Event, Tick
from tests.outside.expected import expected_order_ack
from tests.outside.rawmsmq import ZERO, SessionHeader, Tx, build, direct, private, session_ack
from tests.outside.rawparse import Packet, Received, SessionAck, parse
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
KINDS = st.text("er012", min_size=1, max_size=40)  # express, recoverable, one of the streams
ACK_TIMEOUT_MS = 120_000
RECOVERABLE_MS = 2_000


class Batch:
    """What one Accept held. Its verdicts are made at once, as the core does, and told later."""

    def __init__(self, accept: Accept) -> None:
        self.number, self.messages = accept.batch, accept.messages
        self.verdicts = [
            taken(m.transaction.number, m.transaction.sequence_id)
            if m.transaction
            else (ACCEPTED, DUPLICATE)[m.ordinal % 2]
            for m in accept.messages
        ]
        self.decided = False


class Sender:
    """The peer's side: what it sent, and what it was told of that."""

    def __init__(self) -> None:
        self.modes: list[int] = []  # delivery mode of each message, in order
        self.numbers = [0] * len(STREAMS)
        self.pipe = b""  # bytes that have not arrived
        self.accepted = 0
        self.batches: deque[Batch] = deque()  # not all before them is decided
        self.prefix = 0  # messages decided without a hole
        self.durable: dict[int, list[int]] = {}  # stream -> numbers its cursor stood at
        self.acked = 0
        self.order_acked: dict[int, int] = {}

    def make(self, kind: str) -> bytes:
        self.modes.append(int(kind != "e"))
        ordinal = len(self.modes)
        if kind in "er":
            return build(message(ordinal, recoverable=kind == "r"))
        index = int(kind)
        source, queue, manager, _ = STREAMS[index]
        self.numbers[index] += 1
        number = self.numbers[index]
        tx = Tx(sequence_id=SEQUENCE + index, number=number, previous=number - 1)
        return build(message(ordinal, tx=tx, queue=queue, manager=manager, source=source))

    def on_accept(self, accept: Accept) -> None:
        """In order, each message once."""
        upto = self.accepted + len(accept.messages)
        assert [m.ordinal for m in accept.messages] == [*range(self.accepted + 1, upto + 1)]
        self.accepted = upto
        self.batches.append(Batch(accept))

    def decide(self, batch: Batch) -> None:
        batch.decided = True
        while self.batches and self.batches[0].decided:
            first = self.batches.popleft()
            self.prefix += len(first.messages)
            for verdict in first.verdicts:
                if verdict.cursor is not None:
                    index = verdict.cursor.sequence_id - SEQUENCE
                    self.durable.setdefault(index, []).append(verdict.cursor.number)

    def on_header(self, header: SessionHeader) -> None:
        """QB-43, QB-46: never beyond the decided prefix; base and flags are exact."""
        assert self.acked <= header.ack <= self.prefix
        before = sum(self.modes[: self.acked])
        fresh = sum(self.modes[self.acked : header.ack])
        assert fresh <= 32
        assert header.recoverable_ack == (before + 1 if fresh else 0)
        assert header.flags == (1 << fresh) - 1
        self.acked = header.ack

    def on_order_ack(self, ack: Received) -> None:
        """QB-86: never beyond the decided cursor, never one back; and the right bytes."""
        sequence, number, _ = ack.sequence
        index = sequence - SEQUENCE
        source, _, manager, _ = STREAMS[index]
        assert ack.raw == expected_order_ack(
            ack,
            server=SERVER,
            peer=source if manager == SERVER else ADDRESS,
            sequence_id=sequence,
            number=number,
        )
        assert number in self.durable[index]
        assert number >= self.order_acked.get(index, 0)
        self.order_acked[index] = number


class Receiver:
    """The peer's other side: what we sent to it, and what it told us of that."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.sent = self.sent_recoverable = 0
        self.acked = self.stored = 0
        self.owes_since = 0.0
        self.tokens = 0
        self.undelivered: set[int] = set()

    @property
    def owes(self) -> bool:
        return (self.acked, self.stored) != (self.sent, self.sent_recoverable)

    def on_message(self, packet: Received, now: float) -> None:
        if not self.owes:
            self.owes_since = now
        self.sent += 1
        self.sent_recoverable += packet.is_recoverable
        assert self.sent - self.acked <= self.window  # QB-50

    def on_delivered(self, tokens: Sequence[int]) -> None:
        assert len(set(tokens)) == len(tokens)
        assert self.undelivered.issuperset(tokens)
        self.undelivered.difference_update(tokens)

    def ack(self, sender: Sender, now: float, *, store: bool) -> bytes:
        """It counts all that came; of recoverable messages it stores up to 32 per header."""
        fresh = min(self.sent_recoverable - self.stored, 32) if store else 0
        header = SessionHeader(
            ack=self.sent,
            recoverable_ack=self.stored + 1 if fresh else 0,
            flags=(1 << fresh) - 1,
            sent=len(sender.modes),
            sent_recoverable=sum(sender.modes),
            window=self.window,
        )
        self.stored += fresh
        self.acked = self.sent
        self.owes_since = now
        return session_ack(header)


class SessionModel(RuleBasedStateMachine):
    @initialize(windows=st.sampled_from(((64, 64), (64, 10), (64, 1), (200, 400))))
    def open(self, windows: tuple[int, int]) -> None:
        self.own, theirs = windows
        self.session = open_acceptor(
            window=theirs,
            recoverable_ack_ms=RECOVERABLE_MS,
            ack_ms=ACK_TIMEOUT_MS,
            settings=SessionSettings(window=self.own, idle_timeout=1e9),
        )
        self.sender, self.receiver = Sender(), Receiver(min(self.own, theirs))
        self.now, self.jammed = 0.0, False

    # -- events -----------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        self.watch(self.session.handle(event, at(self.now)))

    @rule(kinds=KINDS, cuts=st.lists(st.floats(0, 1), max_size=4), all_of_it=st.booleans())
    def the_peer_sends(self, kinds: str, cuts: list[float], all_of_it: bool) -> None:
        raw = self.sender.pipe + b"".join(map(self.sender.make, kinds))
        places = {int(cut * len(raw)) for cut in cuts} | ({len(raw)} if all_of_it else set())
        start = 0
        for place in sorted(places - {0}):
            self.apply(BytesReceived(raw[start:place]))
            start = place
        self.sender.pipe = raw[start:]

    def the_pipe_empties(self) -> None:
        raw, self.sender.pipe = self.sender.pipe, b""
        if raw:
            self.apply(BytesReceived(raw))

    @rule(pick=st.integers(0, 20))
    def a_batch_is_decided(self, pick: int) -> None:
        waiting = [batch for batch in self.sender.batches if not batch.decided]
        if waiting:
            batch = waiting[pick % len(waiting)]
            self.sender.decide(batch)
            self.apply(Decided(batch.number, batch.verdicts))

    @rule(seconds=st.sampled_from((0.1, 0.5, 1.0, 1.9, 2.0, 10.0, 45.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.session.next_wakeup()) is not None and due <= until:
            self.now = max(self.now, due)
            self.apply(Tick())
        self.now = until
        if self.receiver.owes and self.now - self.receiver.owes_since > 90.0:
            self.the_peer_acks(store=True)

    @rule(jammed=st.booleans())
    def kafka_jams(self, jammed: bool) -> None:
        self.jammed = jammed
        self.apply(Congested(jammed))

    @rule(modes=st.text("er", min_size=1, max_size=20))
    def we_send(self, modes: str) -> None:
        packets = []
        for mode in modes:
            self.receiver.tokens += 1
            token = self.receiver.tokens
            self.receiver.undelivered.add(token)
            raw = build(message(token, recoverable=mode == "r", source=SERVER))
            packets.append((user_message(raw), token))
        self.watch(self.session.deliver(packets, at(self.now)))

    @rule(store=st.booleans())
    def the_peer_acks(self, store: bool) -> None:
        self.the_pipe_empties()
        self.apply(BytesReceived(self.receiver.ack(self.sender, self.now, store=store)))

    # -- what must hold ---------------------------------------------------------------------

    def watch(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send():
                    self.on_packet(parse(command.data))
                case Accept():
                    self.sender.on_accept(command)
                case Delivered():
                    self.receiver.on_delivered(command.tokens)
                case _:
                    raise AssertionError(command)

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, Received):
            self.receiver.on_message(packet, self.now)
            if packet.is_order_ack:
                self.sender.on_order_ack(packet)
            header = packet.session
        else:
            assert isinstance(packet, SessionAck)
            header = packet.session
        if header is not None:  # after its carrier was counted: QB-47
            self.sender.on_header(header)
            counts = (self.receiver.sent, self.receiver.sent_recoverable)
            assert (header.sent, header.sent_recoverable) == counts
            assert header.window == (1 if self.jammed else self.own)

    @invariant()
    def no_ack_is_owed_for_long(self) -> None:
        """QB-41, QB-45: half a window of decided messages never waits."""
        assert self.session.state is SessionState.OPEN
        assert self.sender.prefix - self.sender.acked < max(1, self.receiver.window // 2)

    def teardown(self) -> None:
        """In the end everything is decided, acknowledged and delivered."""
        if not hasattr(self, "session"):
            return
        self.the_pipe_empties()
        while self.sender.batches:
            self.a_batch_is_decided(0)
        for _ in range(len(self.sender.modes) + self.receiver.tokens):
            self.time_passes(1.0)
            if not (self.receiver.owes or self.receiver.undelivered):
                break
            self.the_peer_acks(store=True)
        self.time_passes(61.0)
        self.the_peer_acks(store=True)
        assert self.sender.accepted == self.sender.prefix == self.sender.acked
        assert self.sender.acked == len(self.sender.modes)
        assert not self.receiver.undelivered
        assert self.sender.order_acked == {
            index: numbers[-1] for index, numbers in self.sender.durable.items()
        }


TestSessionModel = SessionModel.TestCase
TestSessionModel.settings = settings(max_examples=250, stateful_step_count=30, deadline=None)
