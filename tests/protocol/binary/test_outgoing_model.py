"""An Outgoing against an acceptor session, over a connection that may be cut at any byte.

What was on its way is lost then, acks too, and the next session sends again what has no ack. The
receiver is a few lines (QB-70, QB-81): all messages must come to it once and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.message import EXPRESS, RECOVERABLE, Message, Transaction
from bridge.model.verdict import ACCEPTED, DUPLICATE, Cursor, Outcome, Verdict
from bridge.protocol.binary.outgoing import Outgoing
from bridge.protocol.binary.session import Session, SessionSettings, SessionState
from bridge.protocol.commands import Accept, Close, Command, OrderAcked, Send
from bridge.protocol.events import BytesReceived, Decided, PeerClosed, Tick
from tests.protocol.binary.peer import ADDRESS, QUEUE_NAME, REMOTE, SEQUENCE, acceptor, at

KINDS = ("express", "recoverable", "transactional")


class Receiver:
    """Takes each message once: a transactional one in its order, a plain one by its id."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.cursor = Cursor()

    def take(self, message: Message) -> Verdict:
        tx = message.transaction
        if tx is None:
            if message.ordinal in self.taken:  # QB-70
                return DUPLICATE
            self.taken.append(message.ordinal)
            return ACCEPTED
        known = tx.sequence_id == self.cursor.sequence_id
        if (known and tx.previous <= self.cursor.number < tx.number) or (
            tx.sequence_id > self.cursor.sequence_id and tx.previous == 0
        ):  # QB-81
            self.cursor = Cursor(tx.sequence_id, tx.number)
            self.taken.append(message.ordinal)
            return Verdict(Outcome.ACCEPTED, 0, "", self.cursor)
        return Verdict(Outcome.OUT_OF_ORDER, 0, "", self.cursor)


class World:
    """Both ends, the two directions of the connection, what waits for its commit, the time."""

    def __init__(self, window: int, peer_window: int) -> None:
        self.now = 0.0
        self.window = peer_window
        self.receiver = Receiver()
        self.sender = Outgoing(
            local=REMOTE,
            sequence_timestamp=SEQUENCE >> 32,
            ordinals=count(100_000).__next__,
            settings=SessionSettings(window=window),
        )
        self.added: list[int] = []
        self.there, self.back = bytearray(), bytearray()
        self.waiting: deque[tuple[Session, Accept]] = deque()
        self.connect()

    def connect(self) -> None:
        self.up = True
        self.there.clear()
        self.back.clear()
        settings = SessionSettings(window=self.window)
        self.session = acceptor(settings=settings, now=at(self.now))
        self.from_sender(self.sender.connected(ADDRESS, at(self.now)))

    def from_sender(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Send):
                self.there += command.data
            self.up &= not isinstance(command, Close)

    def from_receiver(self, session: Session, commands: list[Command]) -> None:
        for command in commands:
            assert not isinstance(command, OrderAcked)
            if isinstance(command, Accept):
                self.waiting.append((session, command))
            elif session is self.session and isinstance(command, Send):
                self.back += command.data
            elif session is self.session and isinstance(command, Close):
                assert command.reason in ("peer-closed", "ack-wait", "idle", "init-timeout")
                self.up = False

    # -- what can happen --------------------------------------------------------------------

    def add(self, kinds: list[str]) -> None:
        for kind in kinds:
            ordinal = len(self.added) + 1
            self.added.append(ordinal)
            tx = Transaction(sequence_id=0, number=0) if kind == "transactional" else None
            self.sender.add(
                [
                    Message(
                        source=REMOTE,
                        ordinal=ordinal,
                        destination=QUEUE_NAME,
                        delivery=EXPRESS if kind == "express" else RECOVERABLE,
                        transaction=tx,
                    )
                ]
            )
        self.from_sender(self.sender.pump(at(self.now)))

    def flow(self, size: int) -> None:
        """Bytes arrive, at most so many in each direction."""
        if not self.up:
            return
        data, self.there = bytes(self.there[:size]), self.there[size:]
        if data:
            commands = self.session.handle(BytesReceived(data), at(self.now))
            self.from_receiver(self.session, commands)
        data, self.back = bytes(self.back[:size]), self.back[size:]
        if data:
            self.from_sender(self.sender.handle(BytesReceived(data), at(self.now)))

    def commit(self, batches: int) -> None:
        """Also for a session that is gone: then nobody hears of it."""
        for _ in range(min(batches, len(self.waiting))):
            session, accept = self.waiting.popleft()
            verdicts = [self.receiver.take(message) for message in accept.messages]
            commands = session.handle(Decided(accept.batch, verdicts), at(self.now))
            self.from_receiver(session, commands)

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.next_wakeup()) is not None and due <= until:
            self.now = max(self.now, due)
            if self.up:
                self.from_receiver(self.session, self.session.handle(Tick(), at(self.now)))
            self.from_sender(self.sender.handle(Tick(), at(self.now)))
        self.now = until

    def next_wakeup(self) -> float | None:
        if not self.up:
            return None
        due = (self.session.next_wakeup(), self.sender.next_wakeup())
        return min((time for time in due if time is not None), default=None)

    def cut(self, crash: bool) -> None:
        """The connection is gone; in a crash also what the receiver had not committed."""
        self.session.handle(PeerClosed(), at(self.now))
        self.sender.handle(PeerClosed(), at(self.now))
        if crash:
            self.waiting.clear()
        self.connect()

    def settle(self) -> None:
        """From now on nothing breaks. Every message is acknowledged in bounded time."""
        for _ in range(200):
            if not self.up:
                self.cut(crash=False)
            while self.there or self.back or self.waiting:
                self.flow(1 << 20)
                self.commit(1000)
            if not self.sender.waiting:
                return
            self.pass_time(1.0)
        raise AssertionError(f"{self.sender.waiting} messages are left")


Step = Callable[[World], None]
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=12).map(
        lambda kinds: lambda world: world.add(kinds)
    ),
    st.sampled_from((1, 30, 572, 700, 4000, 1 << 20)).map(
        lambda size: lambda world: world.flow(size)
    ),
    st.integers(1, 5).map(lambda batches: lambda world: world.commit(batches)),
    st.sampled_from((0.1, 0.5, 1.0, 11.0, 31.0, 61.0, 400.0)).map(
        lambda seconds: lambda world: world.pass_time(seconds)
    ),
    st.booleans().map(lambda crash: lambda world: world.cut(crash)),
)


@settings(max_examples=300, deadline=None)
@given(
    window=st.sampled_from((1, 3, 64)),
    peer_window=st.sampled_from((1, 4, 64)),
    steps=st.lists(STEPS, max_size=40),
)
def test_all_come_once_and_in_order(window: int, peer_window: int, steps: list[Step]) -> None:
    world = World(window, peer_window)  # QB-53, QB-95, QB-97, QB-98
    for do in steps:
        do(world)
        assert world.receiver.taken == world.added[: len(world.receiver.taken)]
        assert world.sender.done + world.sender.waiting == len(world.added)
        assert world.sender.done <= len(world.receiver.taken)  # no ack for what is not there
    world.settle()
    assert world.receiver.taken == world.added
    assert world.sender.done == len(world.added)
    assert world.session.state is SessionState.OPEN


def test_a_long_list_through_many_cuts() -> None:  # QB-53
    world = World(64, 64)
    world.add([KINDS[n % 3] for n in range(600)])
    for size in range(600, 60_000, 1500):
        world.flow(size)
        world.commit(2)
        world.flow(size // 40)
        world.pass_time(0.5)
        world.cut(crash=size % 4 == 0)
    world.settle()
    assert world.receiver.taken == world.added
