"""Senders, a bad network and restarts against a ten-line reference: QB-81, DM-7, DM-10, DM-34.

Senders resend by QB-95 to QB-98. The network loses, reorders and repeats. The process dies at any
moment and comes back with what the committed units say. Whatever happens, the log holds what the
reference accepts: in order, exactly once, and in the end everything.
"""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bridge.core.admission import Policy
from bridge.core.mapping import message_from_record
from bridge.core.ports import Snapshot, Unit
from bridge.core.shard import Shard
from bridge.core.streams import StreamKey
from bridge.model.message import Message
from bridge.model.verdict import Cursor, Outcome, Verdict
from tests.core.messages import ORDERS, OTHER, SENDER, SEQUENCE, catalogue, plain, step

KEYS: list[StreamKey] = [
    (SENDER, ORDERS),
    (SENDER, ORDERS.upper()),  # another spelling, another stream
    (OTHER, ORDERS),
]
keys = st.sampled_from(KEYS)


class Reference:
    """QB-81 and QB-70, word by word."""

    def __init__(self) -> None:
        self.last: dict[StreamKey, tuple[int, int]] = {}
        self.ids: set[tuple[bytes, int]] = set()

    def accepts(self, m: Message) -> bool:
        if (tx := m.transaction) is None:
            new = (m.source, m.ordinal) not in self.ids
            self.ids.add((m.source, m.ordinal))
            return new
        last_id, last = self.last.get((m.source, m.destination), (0, 0))
        same = tx.sequence_id == last_id and tx.number > last and tx.previous <= last
        if not (same or (tx.sequence_id > last_id and tx.previous == 0)):
            return False
        self.last[m.source, m.destination] = tx.sequence_id, tx.number
        return True

    def copy(self) -> "Reference":
        twin = Reference()
        twin.last, twin.ids = dict(self.last), set(self.ids)
        return twin


class Sender:
    """One outgoing queue: numbers are given once, `previous` bridges what has gone."""

    def __init__(self, key: StreamKey) -> None:
        self.key = key
        self.sequence = SEQUENCE
        self.last = 0
        self.waiting: list[int] = []
        self.made: list[tuple[int, int]] = []
        self.expired: set[tuple[int, int]] = set()

    def make(self) -> None:
        if not self.waiting and self.last:  # QB-96: all acknowledged, a new sequence
            self.sequence, self.last = self.sequence + 1, 0
        self.last += 1
        self.waiting.append(self.last)
        self.made.append((self.sequence, self.last))

    def packet(self, position: int) -> Message:
        """QB-95"""
        number = self.waiting[position]
        previous = self.waiting[position - 1] if position else 0
        source, destination = self.key
        return step(
            number,
            previous,
            sequence=self.sequence,
            source=source,
            destination=destination,
            body=b"%d/%d" % (self.sequence, number),
        )

    def expire(self, position: int) -> None:
        self.expired.add((self.sequence, self.waiting.pop(position)))

    def order_ack(self, cursor: Cursor) -> None:
        """QB-98"""
        if cursor.sequence_id == self.sequence:
            self.waiting = [number for number in self.waiting if number > cursor.number]


class Kafka:
    """What the committed units left."""

    def __init__(self) -> None:
        self.state: dict[str, bytes] = {}
        self.seen: dict[str, bytes] = {}
        self.log: list[Message] = []

    def commit(self, unit: Unit) -> None:
        self.seen |= unit.seen
        self.state |= {key: value for key, value in unit.state.items() if value is not None}
        self.log += [message_from_record(record) for record in unit.records]

    def snapshot(self) -> Snapshot:
        return Snapshot(dict(self.state), list(self.seen.values()))


class ShardMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kafka, self.catalogue = Kafka(), catalogue()
        self.shard = Shard(self.catalogue, Policy())
        self.reference, self.committed = Reference(), Reference()
        self.senders = {key: Sender(key) for key in KEYS}
        self.network: list[Message] = []
        self.decided: list[tuple[Message, Verdict]] = []
        self.ordinal = 0

    # -- senders and their network ----------------------------------------------------------

    @rule(key=keys, count=st.integers(1, 5))
    def send(self, key: StreamKey, count: int) -> None:
        for _ in range(count):
            self.senders[key].make()
            self.network.append(self.senders[key].packet(-1 % len(self.senders[key].waiting)))

    @rule(key=keys)
    def resend(self, key: StreamKey) -> None:
        sender = self.senders[key]
        self.network += [sender.packet(n) for n in range(len(sender.waiting))]

    @rule(key=keys, data=st.data())
    def expire_at_the_sender(self, key: StreamKey, data: st.DataObject) -> None:
        sender = self.senders[key]
        if sender.waiting:
            sender.expire(data.draw(st.integers(0, len(sender.waiting) - 1)))

    @rule(source=st.sampled_from((SENDER, OTHER)))
    def send_plain(self, source: Any) -> None:
        self.ordinal += 1
        self.network.append(plain(self.ordinal, source=source))

    @rule(
        key=keys,
        sequence=st.integers(SEQUENCE - 1, SEQUENCE + 2),
        number=st.integers(0, 4),
        previous=st.integers(0, 4),
    )
    def forge(self, key: StreamKey, sequence: int, number: int, previous: int) -> None:
        """A wild packet of a stream of its own: the reference must agree on it too."""
        wild = step(
            number,
            previous,
            sequence=sequence,
            source=key[0],
            destination=key[1].replace("01", "99"),
        )
        self._deliver(wild)

    @precondition(lambda self: self.network)
    @rule(data=st.data(), again=st.booleans())
    def deliver(self, data: st.DataObject, again: bool) -> None:
        """Any packet, in any order; it may come once more later."""
        position = data.draw(st.integers(0, len(self.network) - 1))
        self._deliver(self.network[position] if again else self.network.pop(position))

    @precondition(lambda self: self.network)
    @rule()
    def deliver_all(self) -> None:
        waiting, self.network = self.network, []
        for message in waiting:
            self._deliver(message)

    @precondition(lambda self: self.network)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.network.pop(data.draw(st.integers(0, len(self.network) - 1)))

    def _deliver(self, message: Message) -> None:
        expected = self.reference.accepts(message)
        (verdict,) = self.shard.admit([message])
        assert (verdict.outcome is Outcome.ACCEPTED) == expected, (message, verdict)
        self.decided.append((message, verdict))

    # -- the process ------------------------------------------------------------------------

    @rule()
    def commit(self) -> None:
        """Only now do order acks leave (DM-15)."""
        _, unit = self.shard.take_unit(0)
        self.kafka.commit(unit)
        self.committed = self.reference.copy()
        for message, verdict in self.decided:
            sender = self.senders.get((message.source, message.destination))
            if sender is not None and verdict.cursor is not None:
                sender.order_ack(verdict.cursor)
        self.decided = []

    @rule(in_flight=st.booleans(), anew=st.booleans())
    def die(self, in_flight: bool, anew: bool) -> None:
        """With a unit half filled, or with one under way that is never committed."""
        if in_flight:
            self.shard.take_unit(0)
        if anew:
            self.shard = Shard(self.catalogue, Policy())
        self.shard.restore(self.kafka.snapshot())
        self.reference = self.committed.copy()
        self.decided = []

    # -- what always holds ------------------------------------------------------------------

    @invariant()
    def in_order_and_exactly_once(self) -> None:
        for key in KEYS:
            places = self._places(key)
            assert places == sorted(set(places))
        ids = [(m.source, m.ordinal) for m in self.kafka.log if m.transaction is None]
        assert len(ids) == len(set(ids))

    def _places(self, key: StreamKey) -> list[tuple[int, int]]:
        return [
            (m.transaction.sequence_id, m.transaction.number)
            for m in self.kafka.log
            if m.transaction and (m.source, m.destination) == key
        ]

    def teardown(self) -> None:
        """A sender that keeps on resending gets everything through."""
        for key in self.senders:
            self.resend(key)
        self.deliver_all()
        self.commit()
        for key, sender in self.senders.items():
            assert sender.waiting == []
            assert set(sender.made) - sender.expired <= set(self._places(key))


TestShardMachine = ShardMachine.TestCase
TestShardMachine.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
