"""A drain among others at work: nothing lost, nothing doubled, whatever happens and when.

Senders send, another reader takes messages and gives some back, locks time out (RR-26), the
connection breaks before or after any call, and the server may be late to notice.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bridge.protocol.rpc.reader.drain import Drain
from bridge.protocol.rpc.reader.running import Running
from bridge.protocol.rpc.reader.steps import Batch
from tests.protocol.rpc.reader.fake_server import Stored, new_server
from tests.protocol.rpc.reader.running import ORDERS, Wire, bodies, next_batch, orders

OTHER = b"another reader"
THEIRS = (OTHER, 1)


class Draining(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = new_server()
        self.breaks: dict[int, bool] = {}
        self.wire = Wire(self.server, lambda call: self.breaks.pop(call, None))
        self.job = Drain(orders(), window=4)
        self.running = Running(self.job.flow, retries=1000)
        self.batch: Batch | None = None
        self.is_started = self.is_over = False
        self.sent: list[bytes] = []
        self.confirmed: list[bytes] = []
        self.taken: list[bytes] = []  # by the other one
        self.refused: Counter[bytes] = Counter()

    # -- the world --------------------------------------------------------------------------

    @rule(priority=st.integers(0, 7), count=st.integers(1, 5))
    def send(self, priority: int, count: int) -> None:
        for _ in range(count):
            body = b"m%d" % len(self.sent)
            self.server.put(ORDERS, body, priority=priority)
            self.sent.append(body)

    def _theirs(self) -> list[Stored]:
        return [stored for stored in self.server.queues[ORDERS] if stored.lock == THEIRS]

    @rule()
    def another_reader_takes_one(self) -> None:
        ours = set(self.confirmed)
        for stored in self.server.queues[ORDERS]:
            body = stored.packet[stored.body_at : stored.body_at + stored.body_size]
            # What we have confirmed too late may be his: that nobody can prevent (RR-48).
            if stored.is_free and body not in ours:
                stored.lock = THEIRS
                return

    @rule(keeps=st.booleans())
    def another_reader_ends_it(self, keeps: bool) -> None:
        for stored in self._theirs():
            stored.lock = None
            if keeps:
                at = stored.body_at
                self.taken.append(stored.packet[at : at + stored.body_size])
                self.server.queues[ORDERS].remove(stored)

    @precondition(lambda self: self.batch is not None)
    @rule()
    def our_locks_time_out(self) -> None:
        """RR-26; nobody else takes them before we say that we have them."""
        for stored in self.server.queues[ORDERS]:
            if stored.lock != THEIRS:
                stored.lock = None
        self._confirm(len(self.batch.reads) if self.batch else 0)

    @rule(after=st.integers(1, 12), is_done=st.booleans(), notices=st.booleans())
    def the_connection_will_break(self, after: int, is_done: bool, notices: bool) -> None:
        self.breaks[self.wire.calls + after] = is_done
        self.wire.notices = notices
        self.wire.on_pause = self._notice
        self.server.on_wait = self._notice

    def _notice(self) -> None:
        for connection in range(1, self.wire.connection):
            self.server.lose(connection)

    # -- the reader -------------------------------------------------------------------------

    @precondition(lambda self: not self.is_over)
    @rule(share=st.integers(0, 4))
    def read_on(self, share: int) -> None:
        """Confirm some of what one has, and ask for more."""
        if self.batch is not None:
            self._confirm(share)
            for read in self.batch.reads:
                if not self.batch.is_confirmed(read):
                    self.refused[read.message.body] += 1
                    if self.refused[read.message.body] == 2:  # a third time would be the end
                        self.batch.confirm([read])
                        self._note(read.message.body)
        self.batch = next_batch(self.running, self.wire)
        if self.batch is None:
            self._begin_again()

    def _confirm(self, share: int) -> None:
        assert self.batch is not None
        for read in self.batch.reads[:share]:
            if not self.batch.is_confirmed(read):
                self.batch.confirm([read])
                self._note(read.message.body)

    def _note(self, body: bytes) -> None:
        self.confirmed.append(body)

    def _begin_again(self) -> None:
        """It was empty: another run, which has to know what this one was not sure of."""
        self.job = Drain(orders(), window=4, seen=self.job.in_doubt)
        self.running = Running(self.job.flow, retries=1000)

    # -- what holds -------------------------------------------------------------------------

    @invariant()
    def nothing_twice(self) -> None:
        assert max(Counter(self.confirmed).values(), default=0) <= 1
        assert not set(self.confirmed) & set(self.taken)
        if self.batch is not None:
            fresh = [
                b
                for r, b in zip(self.batch.reads, bodies(self.batch), strict=True)
                if not self.batch.is_confirmed(r)
            ]
            assert not set(fresh) & set(self.confirmed)

    @invariant()
    def nothing_lost(self) -> None:
        here = set(self.server.bodies(ORDERS))
        assert here | set(self.confirmed) | set(self.taken) == set(self.sent)
        assert set(self.server.removed) <= set(self.confirmed)

    def teardown(self) -> None:
        """In the end, with quiet lines, all that is left comes, once."""
        self.breaks.clear()
        self.another_reader_ends_it(keeps=False)
        while self.batch is not None:
            self._confirm(len(self.batch.reads))
            self.batch = next_batch(self.running, self.wire)
        self._notice()
        self._begin_again()
        while (batch := next_batch(self.running, self.wire)) is not None:
            self.batch = batch
            self._confirm(len(batch.reads))
            self.nothing_twice()
        assert self.server.bodies(ORDERS) == []
        assert sorted(self.confirmed + self.taken) == sorted(self.sent)


TestDraining = Draining.TestCase
TestDraining.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
