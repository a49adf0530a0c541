"""A Sender against a receiver of a few lines (digest srmp.md 5.1), over a net that loses things.

Requests, answers and receipts get lost, come late, twice or out of order; the receiver says 500,
forgets what it did not commit, or drops a message that it should take. In the end it has
everything once and in order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.classes import MessageClass
from bridge.model.message import INFINITE, JOURNAL_NEGATIVE, RECOVERABLE, Message
from bridge.protocol.commands import Close
from bridge.protocol.events import Tick
from bridge.protocol.srmp.sender import Sender, State
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
)
from bridge.wire.srmp.envelope import Envelope, Stream
from bridge.wire.srmp.request import read_request
from bridge.wire.srmp.values import StreamId
from tests.protocol.srmp.peer import LOCAL, RECEIPTS, at, message, regular, step

KINDS = ("regular", "durable", "stream", "stream", "dead-letter")
ANSWERS = ("taken", "answer lost", "request lost", "busy", "late", "dropped")
COALESCING_S = 0.5


class Receiver:
    """5.1 for streams, 5.3 for the rest. What it keeps is on disk but for the timer."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.plain: list[int] = []
        self.id: StreamId | None = None
        self.number = self.receipted = 0
        self.archive: dict[StreamId, int] = {}
        self.due: float | None = None  # the coalescing timer
        self.receipts: list[StreamReceipted] = []
        self.finals: list[FinalReceipted] = []

    def take(self, post: Post, now: float) -> None:
        request = read_request(post.content_type, post.body)
        envelope, ordinal = request.envelope, request.envelope.identifier[1]
        if envelope.stream is None:
            if ordinal not in self.plain:  # SR-21
                self.plain.append(ordinal)
        elif self._accepts(envelope.stream, now):
            self.taken.append(ordinal)
            self._decide(envelope, envelope.stream)

    def _accepts(self, stream: Stream, now: float) -> bool:
        if stream.id == self.id:
            if stream.current <= self.number:  # SR-37
                self.due = self.due or now + COALESCING_S
                return False
            if stream.current != self.number + 1 and stream.preceding > self.number:
                return False  # SR-30: go-back-N
        elif stream.id in self.archive:  # SR-38
            self.receipts.append(StreamReceipted(stream.id, self.archive[stream.id]))
            return False
        elif stream.receipts_to is None or stream.current != 1:
            return False
        else:
            assert stream.receipts_to == RECEIPTS
            self._begin(stream.id)
        self.number = stream.current
        self.due = now + COALESCING_S
        return True

    def _begin(self, name: StreamId) -> None:
        if self.id is not None:
            self.archive[self.id] = self.number
            if self.due is not None:
                self.receipts.append(StreamReceipted(self.id, self.number))
        self.id, self.number, self.receipted = name, 0, 0

    def _decide(self, envelope: Envelope, stream: Stream) -> None:
        """The application reads it at once. SR-45, SR-46"""
        if envelope.msmq is not None and envelope.msmq.dead_letter:
            outcome = MessageClass.ACK_RECEIVE
            self.finals.append(FinalReceipted(stream.id, stream.current, True, outcome))

    def tick(self, now: float) -> None:
        if self.due is not None and self.due <= now and self.id is not None:
            self.due = None
            self.receipts.append(StreamReceipted(self.id, self.number))

    def restart(self, now: float) -> None:
        self.receipts.clear()
        self.due = now if self.number > self.receipted else None  # SR-81


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.receiver = Receiver()
        self.sender = Sender(local=LOCAL, receipts_to=RECEIPTS, stream_ordinals=count(1).__next__)
        self.added: list[int] = []
        self.plain: list[int] = []
        self.post: Post | None = None
        self.late: list[Post] = []
        self.fates: dict[int, Fate] = {}

    def tell(self, event: Event) -> None:
        self._execute(self.sender.handle(event, at(self.now)))

    def _execute(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Post():
                    assert self.post is None  # SR-70
                    self.post = command
                case Settled():
                    assert command.message.ordinal not in self.fates
                    if command.message.journal:
                        assert command.fate is not Fate.REACHED  # SR-53: its final receipt
                    self.fates[command.message.ordinal] = command.fate
                case Close():
                    self.post = None

    # -- what can happen --------------------------------------------------------------------

    def add(self, kinds: list[tuple[str, int]]) -> None:
        for kind, lasts in kinds:
            self.sender.add([self._message(kind, lasts)])
        self._execute(self.sender.pump(at(self.now)))

    def _message(self, kind: str, lasts: int) -> Message:
        ordinal = len(self.added) + len(self.plain) + 1
        fields = {"time_to_reach_queue": lasts, "sent_time": int(at(self.now).unix)}
        if kind == "regular":
            made = regular(ordinal, **fields)
        elif kind == "durable":
            made = message(ordinal, delivery=RECOVERABLE, **fields)
        else:
            made = step(ordinal, journal=JOURNAL_NEGATIVE * (kind == "dead-letter"), **fields)
        (self.plain if made.transaction is None else self.added).append(ordinal)
        return made

    def answers(self, how: list[str]) -> None:
        for one in how:
            if self.sender.state is State.INACTIVE:
                self.pass_time(20.0)
            self.answer(one)

    def hold(self, seconds: float) -> None:
        self.tell(Paused())
        self.pass_time(seconds)
        self.tell(Resumed())

    def answer(self, how: str) -> None:
        post = self.post
        if post is None:
            return
        self.post = None
        is_plain = read_request(post.content_type, post.body).envelope.stream is None
        if how in ("taken", "answer lost") or (how == "dropped" and is_plain):
            self.receiver.take(post, self.now)
        if how == "late":
            self.late.append(post)
        if how in ("taken", "dropped"):
            self.tell(Answered(post.number, 200))
        elif how == "busy":
            self.tell(Answered(post.number, 500))
        else:
            self.tell(NoAnswer(post.number, how))

    def arrive(self) -> None:
        """Requests that the sender has given up."""
        for post in self.late:
            self.receiver.take(post, self.now)
        self.late.clear()

    def receipt(self, which: int, *, keep: bool = False, lose: bool = False) -> None:
        receipts = self.receiver.receipts
        if receipts:
            told = receipts[which % len(receipts)]
            if not lose:
                self.tell(told)
                if told.stream_id == self.receiver.id:
                    self.receiver.receipted = max(self.receiver.receipted, told.last)
            if not keep and told in receipts:
                receipts.remove(told)

    def final(self, which: int) -> None:
        """These are never lost: the receiver keeps them until they are taken (SR-83)."""
        finals = self.receiver.finals
        if finals:
            self.tell(finals.pop(which % len(finals)))

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.next_wakeup()) is not None and due <= until:
            self.now = max(self.now, due)
            self.receiver.tick(self.now)
            self.tell(Tick())
        self.now = until

    def next_wakeup(self) -> float | None:
        due = (self.sender.next_wakeup(), self.receiver.due)
        return min((time for time in due if time is not None), default=None)

    def settle(self) -> None:
        """From now on nothing breaks. Everything is done in bounded time."""
        self.arrive()
        for _ in range(2000):
            while self.post is not None:
                self.answer("taken")
            while self.receiver.receipts or self.receiver.finals:
                self.receipt(0)
                self.final(0)
            if not self.sender.waiting:
                return
            due = self.next_wakeup()
            if self.post is None:
                assert due is not None, "nothing will ever happen"
                self.pass_time(max(due - self.now, 0.0))
        raise AssertionError(f"{self.sender.waiting} messages are left")


Step = Callable[[World], None]


def does(
    strategy: st.SearchStrategy[object], method: str, **fixed: bool
) -> st.SearchStrategy[Step]:
    return strategy.map(lambda value: lambda world: getattr(world, method)(value, **fixed))


def happens(method: str, *arguments: object) -> st.SearchStrategy[Step]:
    return st.just(lambda world: getattr(world, method)(*arguments))


def some_of(*lasts: int) -> st.SearchStrategy[Step]:
    """Messages that have so many seconds to reach their queue."""
    kinds = st.tuples(st.sampled_from(KINDS), st.sampled_from(lasts))
    return does(st.lists(kinds, min_size=1, max_size=6), "add")


TIMES = does(st.sampled_from((0.1, 0.5, 1.0, 10.0, 20.0, 31.0, 301.0, 21_601.0)), "pass_time")
COMMON = (
    TIMES,
    does(st.integers(0, 5), "receipt"),
    does(st.integers(0, 5), "receipt", keep=True),
    does(st.integers(0, 5), "receipt", lose=True),
    does(st.integers(0, 5), "final"),
    st.just(lambda world: world.receiver.restart(world.now)),
    does(st.sampled_from((0.1, 25.0, 400.0)), "hold"),
)
MANY = st.lists(st.sampled_from(("taken", "taken", *ANSWERS)), min_size=1, max_size=8)
STEPS = st.one_of(some_of(INFINITE), does(MANY, "answers"), happens("arrive"), *COMMON)


def some(steps: st.SearchStrategy[Step]) -> st.SearchStrategy[list[Step]]:
    return st.lists(steps, min_size=20, max_size=60)


@settings(max_examples=100, deadline=None)
@given(steps=some(STEPS))
def test_all_come_once_and_in_order(steps: list[Step]) -> None:  # SR-30, SR-51 to SR-54, SR-72
    world = World()
    for do in steps:
        do(world)
        assert world.receiver.taken == world.added[: len(world.receiver.taken)]
        assert world.receiver.plain == world.plain[: len(world.receiver.plain)]
        arrived = {*world.receiver.taken, *world.receiver.plain}
        assert set(world.fates) <= arrived  # nothing is done with before it is there
        assert world.sender.done + world.sender.waiting == len(world.added + world.plain)
    world.settle()
    assert world.receiver.taken == world.added
    assert world.receiver.plain == world.plain
    assert world.sender.state in (State.NO_STREAM, State.INACTIVE)
    assert world.sender.done == len(world.added + world.plain)


EXPIRING = some_of(5, 25, 50, INFINITE)
HONEST = st.lists(
    st.sampled_from(("taken", "taken", "answer lost", "request lost", "busy")),
    min_size=1,
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(steps=some(st.one_of(EXPIRING, does(HONEST, "answers"), does(HONEST, "answers"), *COMMON)))
def test_what_expires_leaves_no_hole(steps: list[Step]) -> None:  # SR-63, SR-72
    world = World()
    for do in steps:
        do(world)
    world.settle()
    expired = {ordinal for ordinal, fate in world.fates.items() if fate is Fate.EXPIRED}
    for sent, got in (
        (world.added, world.receiver.taken),
        (world.plain, world.receiver.plain),
    ):
        assert got == sorted(set(got))  # once, in order
        assert set(sent) - set(got) <= expired
    assert not world.sender.waiting
