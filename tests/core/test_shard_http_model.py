"""Senders over HTTP, a bad network, lost receipts, restarts: SR-30 to SR-38, SR-54, SR-72, SR-81.

A sender keeps a message until a stream receipt covers it, and opens a new stream when nothing is
left. The network loses, reorders and repeats messages, and loses receipts. The process dies at any
moment and comes back with what the committed units say. Whatever happens, the log holds each
stream in order and exactly once, no receipt covers what is not in the log, and in the end
everything has arrived and no sender waits for anything.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bridge.core.admission import Policy
from bridge.core.ports import Snapshot, Unit
from bridge.core.posted import KEPT_PAST, Due
from bridge.core.receipt_timers import ReceiptTimers
from bridge.core.shard import Shard
from bridge.core.streams import StreamKey
from bridge.model.guid import Guid
from bridge.model.message import Message
from tests.core.messages import NOW, OTHER, SENDER, catalogue, receipts
from tests.core.posts import TO, mail, part

UPPER = TO.upper()  # another spelling, another stream
KEYS: list[StreamKey] = [
    (SENDER, f"DIRECT={TO}"),
    (SENDER, f"DIRECT={UPPER}"),
    (OTHER, f"DIRECT={TO}"),
]
keys = st.sampled_from(KEYS)


def id_of(stream: int) -> int:
    """Each id is lower than the one before: a sender's clock may go back (SR-38). And back."""
    return (1 << 40) - stream


class Sender:
    """One outgoing queue, table 5.2."""

    def __init__(self, key: StreamKey) -> None:
        self.key = key
        self.stream, self.last = 0, 0
        self.waiting: list[int] = []
        self.made: list[tuple[int, int]] = []
        self.expired: set[tuple[int, int]] = set()

    def make(self) -> None:
        if not self.waiting:  # SR-54: nothing left, a new id
            self.stream, self.last = self.stream + 1, 0
        self.last += 1
        self.waiting.append(self.last)
        self.made.append((self.stream, self.last))

    def packet(self, position: int) -> Message:
        """SR-72: `previous` is the highest lower number that is still queued."""
        return self._packet(
            self.stream, self.waiting[position], self.waiting[position - 1] if position else 0
        )

    def first(self, stream: int) -> Message:
        return self._packet(stream, 1, 0)

    def _packet(self, stream: int, number: int, previous: int) -> Message:
        source, destination = self.key
        return part(
            number,
            previous,
            stream=id_of(stream),
            to=destination.removeprefix("DIRECT="),
            qm=source,
            source=source,
            body=b"%d/%d" % (stream, number),
        )

    def expire(self, position: int) -> None:
        """Not the first one: without it nobody learns where receipts go."""
        if self.waiting[position] > 1:
            self.expired.add((self.stream, self.waiting.pop(position)))

    def receipt(self, due: Due) -> None:  # SR-51
        if due.id == id_of(self.stream):
            self.waiting = [number for number in self.waiting if number > due.number]


class PostingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state: dict[str, bytes] = {}
        self.seen: dict[str, bytes] = {}
        self.log: dict[StreamKey, list[tuple[int, int]]] = {key: [] for key in KEYS}
        self.plain: list[int] = []
        self.catalogue = catalogue()
        self.senders = {key: Sender(key) for key in KEYS}
        self.network: list[Message] = []
        self.shard = Shard(self.catalogue, Policy(), receipts())
        self.timers = ReceiptTimers()
        self.now = 0.0
        self.ordinal = 0
        self.heard: dict[tuple[StreamKey, int], int] = {}

    # -- senders and their network ----------------------------------------------------------

    @rule(key=keys, count=st.integers(1, 4))
    def send(self, key: StreamKey, count: int) -> None:
        sender = self.senders[key]
        for _ in range(count):
            sender.make()
            self.network.append(sender.packet(len(sender.waiting) - 1))

    @rule(key=keys, count=st.integers(1, 3), lost=st.booleans())
    def exchange(self, key: StreamKey, count: int, lost: bool) -> None:
        """All goes well, but for the receipt."""
        self.send(key, count)
        self.deliver_all()
        self.commit()
        self.time_passes(0.6, lost)

    @rule(key=keys)
    def resend(self, key: StreamKey) -> None:
        sender = self.senders[key]
        self.network += [sender.packet(n) for n in range(len(sender.waiting))]

    @rule(key=keys, data=st.data())
    def expire_at_the_sender(self, key: StreamKey, data: st.DataObject) -> None:
        sender = self.senders[key]
        if sender.waiting:
            sender.expire(data.draw(st.integers(0, len(sender.waiting) - 1)))

    @rule()
    def send_plain(self) -> None:
        self.ordinal += 1
        self.network.append(mail(self.ordinal))

    @precondition(lambda self: self.network)
    @rule(data=st.data(), again=st.booleans())
    def deliver(self, data: st.DataObject, again: bool) -> None:
        position = data.draw(st.integers(0, len(self.network) - 1))
        self._deliver(self.network[position] if again else self.network.pop(position))

    @rule(key=keys, back=st.integers(0, 3))
    def a_first_message_comes_late(self, key: StreamKey, back: int) -> None:
        """Of this stream or of one before it; it has lain somewhere (SR-38)."""
        sender = self.senders[key]
        if sender.stream - back >= 1:
            self._deliver(sender.first(sender.stream - back))

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
        if (tx := message.transaction) is not None:
            assert tx.stream is not None
            # Nothing is under way for as long as a sender needs for so many streams (SR-38).
            if self.senders[tx.stream].stream - id_of(tx.sequence_id) > KEPT_PAST:
                return
        self.shard.admit([message])

    # -- the process ------------------------------------------------------------------------

    @rule()
    def commit(self) -> None:
        """Only now do receipts become due (SR-36)."""
        _, unit = self.shard.take_unit(NOW)
        self._keep(unit)
        for due in unit.due:
            self._tell(self.timers.add(due, self.now))

    def _keep(self, unit: Unit) -> None:
        self.seen |= unit.seen
        for key, value in unit.state.items():
            assert value is not None
            self.state[key] = value
        for record in unit.records:
            if record.topic == "plain":
                self.plain.append(int(record.headers["msmq.id"].partition(b"\\")[2]))
                continue
            source, _, destination = (record.key or b"").decode().partition("/")
            stream, number = map(int, record.value.split(b"/"))
            self.log[Guid.parse(source), destination].append((stream, number))

    @rule(seconds=st.sampled_from((0.1, 0.6, 11.0)), lost=st.booleans())
    def time_passes(self, seconds: float, lost: bool) -> None:
        self.now += seconds
        fired = self.timers.fire(self.now)
        if not lost:
            self._tell(fired)

    def _tell(self, dues: list[Due]) -> None:
        for due in dues:
            name = due.key, due.id
            assert due.number >= self.heard.get(name, 0)  # lastOrdinal never falls
            assert (id_of(due.id), due.number) in self.log[due.key]
            assert due.receipts_to
            self.heard[name] = due.number
            self.senders[due.key].receipt(due)
            self.shard.posted.receipted(due)

    @rule(in_flight=st.booleans())
    def die(self, in_flight: bool) -> None:
        """With a unit half filled, or with one under way that is never committed."""
        if in_flight:
            self.shard.take_unit(NOW)
        self.shard = Shard(self.catalogue, Policy(), receipts())
        self.shard.restore(Snapshot(dict(self.state), list(self.seen.values())))
        self.timers = ReceiptTimers()
        for due in self.shard.posted.unreceipted():  # SR-81
            self._tell(self.timers.add(due, self.now))

    # -- what always holds ------------------------------------------------------------------

    @invariant()
    def in_order_and_exactly_once(self) -> None:
        for places in self.log.values():
            assert places == sorted(set(places))
        assert len(self.plain) == len(set(self.plain))

    def teardown(self) -> None:
        """A sender that keeps on resending gets everything through, and hears of it."""
        for key in self.senders:
            self.resend(key)
        self.deliver_all()
        self.commit()
        self.time_passes(11.0, lost=False)
        for key, sender in self.senders.items():
            assert sender.waiting == []
            assert set(sender.made) - sender.expired <= set(self.log[key])


TestPostingMachine = PostingMachine.TestCase
TestPostingMachine.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
