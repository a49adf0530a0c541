"""Whole conversations: the example of the specification, long ones, and two sessions in a row."""

from __future__ import annotations

import random
from collections import deque
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.verdict import ACCEPTED
from bridge.protocol.binary.handshake import AcceptorHandshake, InitiatorHandshake
from bridge.protocol.binary.session import Session, SessionSettings, SessionState
from bridge.protocol.commands import Accept, Command, Delivered, Opened, OrderAcked, Send
from bridge.protocol.events import BytesReceived, Decided, Tick
from tests.outside.expected import expected_session_ack
from tests.outside.rawmsmq import SessionHeader, Tx, build
from tests.protocol.binary.peer import (
    CLIENT,
    LOCAL,
    REMOTE,
    SEQUENCE,
    SERVER,
    accepted,
    acks,
    at,
    decide,
    express,
    feed,
    message,
    only,
    open_acceptor,
    peer_ack,
    receive,
    recoverable,
    sent,
    taken,
    tick,
    transactional,
    user_message,
    user_messages,
)
from tests.vectors.binary import PACKETS


def as_we_write(raw: bytes) -> bytes:
    """BaseHeader.Reserved is arbitrary; ours is 0."""
    return raw[:1] + b"\0" + raw[2:]


def test_the_example_of_the_specification() -> None:  # MS-MQQB 4.1.3 to 4.1.8
    f3, f7 = PACKETS["F3"].data, PACKETS["F7 mended"].data
    local = Guid(f3[36:52])
    session = Session(
        AcceptorHandshake(local, 64),
        local=local,
        peer="192.0.2.10",
        ordinals=count(1).__next__,
        now=at(0),
        settings=SessionSettings(),
    )
    assert sent(feed(session, f3, 0.0)) == [as_we_write(f3)]  # not F4: it is of another pair
    assert sent(feed(session, PACKETS["F5"].data, 0.1)) == [as_we_write(PACKETS["F6"].data)]
    (accept,) = only(Accept, feed(session, f7, 0.2))
    (got,) = accept.messages
    assert got.label == "mqsender label"
    assert got.body == b"a\0" * 1000
    assert decide(session, accepted(accept.batch), 0.3) == []
    assert session.next_wakeup() == pytest.approx(60.2)  # AckTimeout 120 s
    assert tick(session, 60.2) == [Send(as_we_write(PACKETS["F8"].data))]


def test_a_day_in_the_life_of_an_acceptor() -> None:
    """Every SessionHeader counts all that we sent, order acks too. MS-MQQB 3.1.6.4"""
    session = open_acceptor()
    feed(session, transactional(1) + transactional(2) + express(3), 0.0)
    assert decide(session, Decided(1, [taken(1), taken(2), ACCEPTED]), 0.1) == []
    assert tick(session, 0.5) == [
        Send(expected_session_ack(ack=3, recoverable_ack=1, flags=0b11)),
    ]
    (ack,) = user_messages(tick(session, 0.6))
    assert (ack.sequence, ack.session) == ((SEQUENCE, 2, 1), None)
    assert feed(session, peer_ack(ack=1, sent=3, sent_recoverable=2), 1.0) == []
    receive(session, recoverable(4), 2.0)
    assert tick(session, 2.5) == [
        Send(expected_session_ack(ack=4, recoverable_ack=3, flags=0b1, sent=1)),
    ]
    feed(session, transactional(3), 3.0)
    assert decide(session, Decided(3, [taken(3)]), 3.4) == []
    assert acks(tick(session, 3.5)) == [
        SessionHeader(ack=5, recoverable_ack=4, flags=0b1, sent=1),
    ]
    receive(session, recoverable(6), 3.5)
    assert tick(session, 3.8) == []
    (ack,) = user_messages(tick(session, 3.9))  # 80 % of the ack timer are gone
    assert (ack.sequence, ack.session) == ((SEQUENCE, 3, 2), None)  # MS-MQQB 2.2.4: no flags
    assert tick(session, 4.0) == [
        Send(expected_session_ack(ack=6, recoverable_ack=5, flags=0b1, sent=2)),
    ]
    assert session.next_wakeup() == pytest.approx(43.9)  # nothing unacked: only the ack wait
    carrier = recoverable(7, SessionHeader(ack=2, sent=7, sent_recoverable=6))
    assert [type(c) for c in feed(session, carrier, 5.0)] == [Accept]


def test_both_counters_wrap_while_a_session_lasts() -> None:  # QB-40
    """77,000 messages, 70,000 of them recoverable: the counters wrap at different times."""
    session = open_acceptor()
    modes = ([1] * 10 + [0]) * 7000
    made = {0: express(1), 1: recoverable(2)}
    received = stored = 0
    chunk = 1100
    for start in range(0, len(modes), chunk):
        part = modes[start : start + chunk]
        data = b"".join(made[m] for m in part)
        for header in acks(receive(session, data, 2.0 * start / chunk)):  # never busy
            fresh = sum(modes[received : received + 32])
            received, before = received + 32, stored
            stored += fresh
            assert header == SessionHeader(
                ack=received & 0xFFFF, recoverable_ack=(before + 1) & 0xFFFF, flags=(1 << fresh) - 1
            )
    last = peer_ack(sent=len(modes), sent_recoverable=sum(modes))
    assert feed(session, last, 0.0) == []  # QB-49, cut to 16 bits
    assert received == len(modes) - len(modes) % 32
    assert stored > 0x10000


def test_our_own_counters_wrap_too() -> None:  # QB-40, QB-48
    session = open_acceptor()
    total = stored = 0
    packets = [user_message(build(message(1, recoverable=mode == 1))) for mode in (0, 1)]
    while stored < 66_000:
        modes = [1] * 31 + [0]
        tokens = range(total + 1, total + 33)
        batch = [(packets[mode], token) for mode, token in zip(modes, tokens, strict=True)]
        assert len(session.deliver(batch, at(0.0))) == 32
        total += 32
        header = peer_ack(
            ack=total & 0xFFFF, recoverable_ack=(stored + 1) & 0xFFFF, flags=(1 << 31) - 1
        )
        stored += 31
        (delivered,) = feed(session, header, 0.0)
        assert isinstance(delivered, Delivered)
        assert sorted(delivered.tokens) == [*tokens]
    receive(session, recoverable(1), 0.0)
    (ack,) = acks(tick(session, 0.5))
    assert (ack.sent, ack.sent_recoverable) == (total & 0xFFFF, stored & 0xFFFF)


def test_any_split_of_the_bytes_gives_the_same_dialogue() -> None:
    raw = b"".join(
        (express(1), recoverable(2), peer_ack(sent=2, sent_recoverable=1), transactional(3))
    )
    for size in (1, 3, 16, 17, 36, 200):
        session = open_acceptor()
        commands: list[Command] = []
        for start in range(0, len(raw), size):
            commands += feed(session, raw[start : start + size], 0.0)
        ordinals = [m.ordinal for a in only(Accept, commands) for m in a.messages]
        assert ordinals == [1, 2, 3]
        assert len(commands) == len(only(Accept, commands))


# -- two sessions back to back ----------------------------------------------------------------


class End:
    """One end: its session, its outgoing bytes, the messages it took, the tokens it got back."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.wire = bytearray()  # sent, not yet read by the other end
        self.undecided: deque[Accept] = deque()
        self.took: list[int] = []
        self.delivered: list[int] = []
        self.order_acked: list[int] = []

    def execute(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send():
                    self.wire += command.data
                case Accept():
                    self.took += [m.ordinal for m in command.messages]
                    self.undecided.append(command)
                case Delivered():
                    self.delivered += command.tokens
                case OrderAcked():
                    self.order_acked.append(command.cursor.number)
                case Opened():
                    pass
                case _:
                    raise AssertionError(command)

    def decide(self, index: int, now: float) -> None:
        if self.undecided:
            index %= len(self.undecided)
            accept = self.undecided[index]
            del self.undecided[index]
            verdicts = [
                taken(m.transaction.number, m.transaction.sequence_id)
                if m.transaction
                else ACCEPTED
                for m in accept.messages
            ]
            self.execute(self.session.handle(Decided(accept.batch, verdicts), at(now)))

    def tick(self, now: float) -> None:
        while (due := self.session.next_wakeup()) is not None and due <= now:
            self.execute(self.session.handle(Tick(), at(due)))


class Pair:
    def __init__(self, windows: tuple[int, int], *, direct: bool) -> None:
        initiator = InitiatorHandshake(LOCAL, NULL_GUID if direct else REMOTE, windows[0], 20_000)
        acceptor = AcceptorHandshake(REMOTE, windows[1])
        self.now = 0.0
        self.ends = [
            End(
                Session(
                    handshake,
                    local=local,
                    peer="192.0.2.1",
                    ordinals=count(1_000_000).__next__,
                    now=at(0),
                    settings=SessionSettings(window=window),
                )
            )
            for handshake, local, window in (
                (initiator, LOCAL, windows[0]),
                (acceptor, REMOTE, windows[1]),
            )
        ]
        self.made: list[list[str]] = [[], []]
        self.numbers = [0, 0]
        self.ends[0].execute(self.ends[0].session.open(at(0)))

    def move(self, end: int, size: int) -> None:
        """Some bytes of this end arrive at the other."""
        wire = self.ends[end].wire
        if wire:
            data = bytes(wire[:size])
            del wire[:size]
            other = self.ends[1 - end]
            other.execute(other.session.handle(BytesReceived(data), at(self.now)))

    def deliver(self, end: int, kinds: str) -> None:
        packets = []
        for kind in kinds:
            self.made[end].append(kind)
            token = len(self.made[end])
            tx = None
            if kind == "t":
                self.numbers[end] += 1
                number = self.numbers[end]
                tx = Tx(sequence_id=SEQUENCE, number=number, previous=number - 1)
            source = (SERVER, CLIENT)[end]
            raw = build(message(token, recoverable=kind == "r", tx=tx, source=source))
            packets.append((user_message(raw), token))
        self.ends[end].execute(self.ends[end].session.deliver(packets, at(self.now)))

    def pass_time(self, seconds: float) -> None:
        """Not much before OPEN: with a round trip above 2.5 s the acks come later than a sender
        waits for them, since one is eight round trips and the other 20 s (QB-25, QB-52)."""
        is_open = all(end.session.state is SessionState.OPEN for end in self.ends)
        self.now += seconds if is_open else 0.01
        for end in self.ends:
            end.tick(self.now)

    def finish(self) -> None:
        while True:
            for end in (0, 1):
                while self.ends[end].wire:
                    self.move(end, 1 << 20)
                self.ends[1 - end].decide(0, self.now)
            if any(end.wire or end.undecided for end in self.ends):
                continue
            if self.all_done:
                return
            assert self.now < 2000
            self.pass_time(0.5)

    @property
    def all_done(self) -> bool:
        return all(
            len(end.delivered) == len(made) and max(end.order_acked, default=0) == number
            for end, made, number in zip(self.ends, self.made, self.numbers, strict=True)
        )

    def check(self) -> None:
        for index, end in enumerate(self.ends):
            kinds = self.made[index]
            assert self.ends[1 - index].took == [*range(1, len(kinds) + 1)]  # once, in order
            assert sorted(end.delivered) == [*range(1, len(kinds) + 1)]
            for express_ones in (True, False):
                tokens = [t for t in end.delivered if (kinds[t - 1] == "e") is express_ones]
                assert tokens == sorted(tokens)
            assert end.order_acked == sorted(end.order_acked)
            assert end.session.state is SessionState.OPEN


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("move"), st.integers(0, 1), st.sampled_from((1, 7, 16, 36, 200, 5000))),
        st.tuples(st.just("deliver"), st.integers(0, 1), st.text("ert", min_size=1, max_size=50)),
        st.tuples(st.just("decide"), st.integers(0, 1), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.just(0), st.sampled_from((0.1, 0.4, 0.5, 3.0))),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=250)
@given(STEPS, st.sampled_from(((64, 64), (64, 3), (1, 64), (1, 1))), st.booleans())
def test_everything_arrives_once_and_in_order(
    steps: list[tuple[str, int, int | str | float]], windows: tuple[int, int], direct: bool
) -> None:
    pair = Pair(windows, direct=direct)
    for step in steps:
        match step:
            case "move", int(end), int(size):
                pair.move(end, size)
            case "deliver", int(end), str(kinds):
                pair.deliver(end, kinds)
            case "decide", int(end), int(index):
                pair.ends[end].decide(index, pair.now)
            case "wait", _, float(seconds):
                pair.pass_time(seconds)
    pair.finish()
    pair.check()


def test_a_long_conversation_in_both_directions() -> None:
    chance = random.Random(1801)
    pair = Pair((64, 64), direct=True)
    for _ in range(300):
        for end in (0, 1):
            pair.deliver(end, "".join(chance.choices("ert", k=chance.randrange(20))))
            pair.move(end, chance.randrange(1, 20_000))
            pair.ends[end].decide(chance.randrange(9), pair.now)
        pair.pass_time(chance.random() / 5)
    pair.finish()
    pair.check()
    assert len(pair.made[0]) > 2000
