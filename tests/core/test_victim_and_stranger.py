"""A victim and a stranger on one shard: whatever the stranger sends, the victim loses nothing.

The victim is an ordinary sender: streams, plain messages and HTTP mails, resent until they are
acknowledged. The stranger sends anything from its own address, to any queue and in any name. The
process dies at any moment and comes back with what was committed. Two worlds:

- No queue has a list. The stranger cannot shake hands as the victim (`pin_senders` sees to that).
- The victim's queues allow `victim@network`. The stranger may shake hands as whomever it likes.

In both the records hold what the victim was acknowledged, once and in order, and the victim's next
message is accepted.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, ClassVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue, private_number
from bridge.core.ports import OutboxEntry, Snapshot, Unit
from bridge.core.receipts import Receipts
from bridge.core.shard import Shard
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Kind, Message, Transaction
from bridge.model.verdict import Outcome, Verdict
from tests.core.messages import (
    LOCAL,
    NOW,
    ORDERS,
    OTHER,
    PLAIN,
    SENDER,
    SEQUENCE,
    plain,
    queue,
    step,
)
from tests.core.posts import STREAM, mail, part

VICTIM, STRANGER = SENDER, OTHER
HOME, ELSEWHERE = "10.0.0.2", "10.0.0.9"
MARK = b"victim/"
STREAMS = (ORDERS, ORDERS.upper(), f"PRIVATE={LOCAL}\\{private_number('orders'):08x}")
PLAINS = (PLAIN, PLAIN.lower(), "DIRECT=TCP:10.0.0.1\\private$\\plain")
BOOM = "makes us raise"
TO, TO_PLAIN = (f"http://bridge01/msmq/private$/{name}" for name in ("orders", "plain"))


class Kafka:
    """What the committed units left."""

    def __init__(self) -> None:
        self.state: dict[str, bytes] = {}
        self.seen: dict[str, bytes] = {}
        self.log: list[bytes] = []

    def commit(self, unit: Unit) -> None:
        self.seen |= unit.seen
        for key, value in unit.state.items():
            self.state.pop(key, None)
            if value is not None:
                self.state[key] = value
        self.log += [one.value for one in unit.records if one.value.startswith(MARK)]
        for data in unit.audit:
            msgspec.json.decode(data)

    def snapshot(self) -> Snapshot:
        return Snapshot(dict(self.state), list(self.seen.values()))


class Faulty(Receipts):
    """Raises for messages of one label: a fault of ours that a stranger has found."""

    def accepted(self, message: Message, via: Guid) -> Iterator[OutboxEntry]:
        _raise(message)
        return super().accepted(message, via)

    def refused(self, message: Message, message_class: int, via: Guid) -> Iterator[OutboxEntry]:
        _raise(message)
        return super().refused(message, message_class, via)


def _raise(message: Message) -> None:
    if message.label == BOOM:
        raise RuntimeError(BOOM)


class Outgoing:
    """One outgoing queue of the victim: in order, and kept until it is acknowledged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made = 0
        self.waiting: list[int] = []  # not acknowledged, oldest first
        self.taken: list[int] = []  # decided, not committed
        self.acked: list[int] = []

    def body(self, number: int) -> bytes:
        return MARK + f"{self.name}/{number}".encode("utf-8", "backslashreplace")

    def more(self, messages: int) -> list[int]:
        new = list(range(self.made + 1, self.made + messages + 1))
        self.made += messages
        self.waiting += new
        return new

    def acknowledged(self) -> None:
        self.acked += self.taken
        self.waiting = [number for number in self.waiting if number not in self.taken]
        self.taken = []


# -- what a stranger can put into a message --------------------------------------------------

sources = st.sampled_from((VICTIM, VICTIM, STRANGER, LOCAL, NULL_GUID, Guid(b"\7" * 16)))
names = st.sampled_from(
    (
        *STREAMS,
        *PLAINS,
        "DIRECT=OS:bridge01\\private$\\nowhere",
        "DIRECT=OS:bridge01\\private$\\orders;journal",
        "DIRECT=OS:bridge01\\SYSTEM$;DEADXACT",
        "DIRECT=OS:bridge01\\private$\\order_queue$",
        "DIRECT=OS:\ud800\\private$\\orders",
        f"DIRECT={TO}",
        "",
    )
)
small = st.integers(0, 12)
numbers = small | st.sampled_from((2**31, 2**32 - 2, 2**32 - 1))
sequences = st.sampled_from(
    (0, 1, SEQUENCE - 1, SEQUENCE, SEQUENCE + 1, SEQUENCE + 2, 2**63, 2**64 - 1)
)
transactions = st.builds(
    Transaction,
    sequence_id=sequences,
    number=numbers,
    previous=numbers,
    final_ack=st.booleans(),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "source": sources,
    "ordinal": numbers,
    "destination": names,
    "sent_time": st.sampled_from((NOW, 1)),
    "body": st.sampled_from((b"spoofed", b"", b"s" * 2000)),
    "destination_qm": st.sampled_from((NULL_GUID, LOCAL, STRANGER)),
    "message_class": st.sampled_from((0, 0, 0, 2, 0xFF, 0x4000, 0x8004)),
    "ack": st.sampled_from((0, 15)),
    "journal": st.integers(0, 3),
    "hops": st.sampled_from((0, 0, 29)),
    "admin_queue": st.sampled_from(
        (
            "",
            "DIRECT=OS:bridge01\\private$\\plain",
            "DIRECT=OS:\ud800\\private$\\admin",
            "DIRECT=OS:sender09\\private$\\\udfff",
            f"PRIVATE={VICTIM}\\00000001",
            f"PRIVATE={LOCAL}\\00000001",
            "\ud800",
        )
    ),
    "label": st.sampled_from(("", "\ud800", "QM Ordering Ack", BOOM)),
    "sender": st.sampled_from(("", "S-1-5-7", "S-1-5-21-1-2-3-1000", str(VICTIM), "\ud800")),
    "destination_multi": st.sampled_from(("", ORDERS, "\ud800" * 50)),
    "trace_queue": st.none() | st.just(VICTIM),
    "encrypted": st.sampled_from((False, False, True)),
    "wire": st.sampled_from((b"", b"wire")),
    "delivery": st.integers(0, 1),
}
wild_messages = st.builds(
    Message,
    **FIELDS,
    transaction=st.none() | transactions,
    arrived_ms=st.just(NOW * 1000),
    peer=st.just(ELSEWHERE),
)


@st.composite
def likely_messages(draw: st.DrawFn) -> Message:
    """As the victim would send it, but for a detail or two."""
    number, name = draw(numbers), draw(st.sampled_from((*STREAMS, *PLAINS)))
    source = draw(st.sampled_from((VICTIM, VICTIM, STRANGER)))
    made = plain(number, source=source, destination=name, peer=ELSEWHERE, body=b"spoofed")
    if name in STREAMS:
        made = replace(made, transaction=Transaction(draw(sequences), number, draw(small)))
    changed = draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2, unique=True))
    return replace(made, **{field: draw(FIELDS[field]) for field in changed})


binary_messages = likely_messages() | wild_messages
posted_mails = st.builds(
    mail,
    numbers,
    st.sampled_from((TO_PLAIN, TO, f"{TO}x")),
    source=sources,
    peer=st.just(ELSEWHERE),
    body=st.just(b"spoofed"),
)
posted_parts = st.builds(
    part,
    numbers,
    numbers,
    stream=st.sampled_from((STREAM - 1, STREAM, STREAM + 1, 2**64 - 1)),
    to=st.sampled_from((TO, TO_PLAIN)),
    qm=sources,
    source=sources,
    start=st.sampled_from((None, "http://10.0.0.9/x")),
    peer=st.just(ELSEWHERE),
    body=st.just(b"spoofed"),
)


class _Machine(RuleBasedStateMachine):
    allowed: ClassVar[tuple[str, ...]] = ()
    hands: ClassVar[tuple[Guid, ...]] = (STRANGER, Guid(b"\7" * 16))  # the stranger's handshakes

    def __init__(self) -> None:
        super().__init__()
        self.kafka, self.catalogue = Kafka(), self._catalogue()
        self.receipts = Faulty(insecure_nacks=True, peers=(str(VICTIM),))
        self.receipts.local, self.receipts.ordinals = LOCAL, count(7001).__next__
        self.shard = self._shard()
        self.streams = {name: Outgoing(name) for name in STREAMS}
        self.plains = {name: Outgoing(name) for name in PLAINS}
        self.mails, self.parts = Outgoing("mail"), Outgoing("part")
        self.ordinals = count(1)  # of the victim's plain messages: the stranger may guess them
        self.ids: dict[tuple[str, int], int] = {}

    def _catalogue(self) -> Catalogue:
        access = AccessList(self.allowed) if self.allowed else None
        orders = queue(access=access)
        plains = queue("private$\\plain", transactional=False, access=access)
        return Catalogue(LOCAL, (orders, plains))

    def _shard(self) -> Shard:
        return Shard(self.catalogue, Policy(deadletter_topic="dead"), self.receipts)

    # -- the victim -------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(STREAMS),
        messages=st.integers(1, 3),
        alike=st.booleans(),
        asks=st.booleans(),
    )
    def sends_a_stream(self, name: str, messages: int, alike: bool, asks: bool) -> None:
        outgoing = self.streams[name]
        before = outgoing.waiting[-1] if outgoing.waiting else 0
        made = []
        for number in outgoing.more(messages):
            made.append(self._step(outgoing, number, before, final_ack=asks))
            before = number
        self._accepted(outgoing, outgoing.waiting[-messages:], self._alike(made, alike), VICTIM)

    def _step(
        self, outgoing: Outgoing, number: int, previous: int, *, final_ack: bool = False
    ) -> Message:
        made = step(
            number,
            previous,
            source=VICTIM,
            destination=outgoing.name,
            body=outgoing.body(number),
            peer=HOME,
            delivery=1,
            wire=b"wire",
        )
        tx = replace(made.transaction or Transaction(0, 0), final_ack=final_ack)
        return replace(made, transaction=tx)

    @rule(name=st.sampled_from(PLAINS), messages=st.integers(1, 3), alike=st.booleans())
    def sends_plain(self, name: str, messages: int, alike: bool) -> None:
        outgoing = self.plains[name]
        new = outgoing.more(messages)
        made = [self._plain(outgoing, number) for number in new]
        self._accepted(outgoing, new, self._alike(made, alike), VICTIM)

    def _plain(self, outgoing: Outgoing, number: int) -> Message:
        key = outgoing.name, number
        ordinal = self.ids.get(key) or self.ids.setdefault(key, next(self.ordinals))
        return plain(
            ordinal,
            source=VICTIM,
            destination=outgoing.name,
            body=outgoing.body(number),
            peer=HOME,
            wire=b"wire",
        )

    @staticmethod
    def _alike(messages: list[Message], alike: bool) -> list[Message]:
        """As from one session that has compared them: they may go the short way."""
        kind = Kind()
        return [replace(one, kind=kind) for one in messages] if alike else messages

    @rule()
    def sends_a_mail(self) -> None:
        (number,) = self.mails.more(1)
        self._accepted(self.mails, [number], [self._mail(number)], NULL_GUID)

    def _mail(self, number: int) -> Message:
        body = self.mails.body(number)
        return mail(number, TO_PLAIN, source=VICTIM, peer=HOME, body=body)

    def _part(self, number: int, previous: int) -> Message:
        body = self.parts.body(number)
        return part(number, previous, to=TO, qm=VICTIM, source=VICTIM, peer=HOME, body=body)

    def _accepted(
        self, outgoing: Outgoing, wanted: Sequence[int], messages: list[Message], via: Guid
    ) -> None:
        verdicts = self.shard.admit(messages, via)
        assert [one.outcome for one in verdicts] == [Outcome.ACCEPTED] * len(messages), verdicts
        outgoing.taken += wanted

    # -- the stranger -----------------------------------------------------------------------

    @rule(messages=st.lists(binary_messages, min_size=1, max_size=4), data=st.data())
    def stranger_sends(self, messages: list[Message], data: st.DataObject) -> None:
        via = data.draw(st.sampled_from(self.hands))
        verdicts = self.shard.admit(messages, via)
        self._judged(messages, verdicts, via)

    @rule(
        first=binary_messages,
        tx=transactions,
        run=st.integers(1, 3),
        data=st.data(),
        is_plain=st.booleans(),
    )
    def stranger_sends_alike(
        self,
        first: Message,
        tx: Transaction,
        run: int,
        data: st.DataObject,
        is_plain: bool,
    ) -> None:
        """A run of messages of one kind, on the short way if there is one for them."""
        via = data.draw(st.sampled_from(self.hands))
        last = 2**32 - 1
        messages = [
            replace(
                first,
                kind=Kind(),
                ordinal=min(first.ordinal + n, last),
                transaction=None if is_plain else replace(tx, number=min(tx.number + n, last)),
            )
            for n in range(run)
        ]
        kind = messages[0].kind
        messages = [replace(one, kind=kind) for one in messages]
        self._judged(messages, self.shard.admit(messages, via), via)

    @rule(own=st.integers(1, 9), messages=st.lists(binary_messages, max_size=2))
    def stranger_has_messages_of_its_own(self, own: int, messages: list[Message]) -> None:
        """What is refused among them does not keep the others from being judged."""
        mine = [plain(own + n, source=STRANGER, peer=ELSEWHERE, body=b"own %d" % n) for n in (0, 1)]
        batch = [mine[0], *messages, mine[1]]
        self._judged(batch, self.shard.admit(batch, STRANGER), STRANGER)

    @rule(message=posted_mails | posted_parts)
    def stranger_posts(self, message: Message) -> None:
        assert len(self.shard.admit([message])) == 1

    def _judged(self, messages: list[Message], verdicts: list[Verdict], via: Guid) -> None:
        assert len(verdicts) == len(messages)
        for message, verdict in zip(messages, verdicts, strict=True):
            if message.source != via:
                assert verdict.outcome is Outcome.BUSY, (message, verdict)
                assert verdict.reason == "source-not-of-session"
                assert verdict.cursor is None
            elif message.source == VICTIM:  # only where a list protects its queues
                assert verdict.outcome not in (Outcome.ACCEPTED, Outcome.DUPLICATE), verdict

    # -- the process ------------------------------------------------------------------------

    def _outgoing(self) -> Iterator[Outgoing]:
        yield from (*self.streams.values(), *self.plains.values(), self.mails, self.parts)

    @rule()
    def commit(self) -> None:
        """Only now do acks leave."""
        _, unit = self.shard.take_unit(NOW)
        self.kafka.commit(unit)
        for outgoing in self._outgoing():
            outgoing.acknowledged()

    @rule(in_flight=st.booleans(), anew=st.booleans())
    def die(self, in_flight: bool, anew: bool) -> None:
        """The victim sends again what it has no ack for."""
        if in_flight:
            self.shard.take_unit(NOW)
        if anew:
            self.shard = self._shard()
        self.shard.restore(self.kafka.snapshot())
        for outgoing in self._outgoing():
            outgoing.taken = []
        self._resend()

    def _resend(self) -> None:
        for outgoing in self.streams.values():
            before = 0  # the first that is kept says so: what was before it is acknowledged
            for number in outgoing.waiting:
                resent = self._step(outgoing, number, before)
                self._accepted(outgoing, [number], [resent], VICTIM)
                before = number
        for outgoing in self.plains.values():
            for number in outgoing.waiting:
                self._accepted(outgoing, [number], [self._plain(outgoing, number)], VICTIM)
        for number in self.mails.waiting:
            self._accepted(self.mails, [number], [self._mail(number)], NULL_GUID)
        before = self.parts.acked[-1] if self.parts.acked else 0
        for number in self.parts.waiting:
            self._accepted(self.parts, [number], [self._part(number, before)], NULL_GUID)
            before = number

    @rule()
    def lost_acks(self) -> None:
        """Copies of what was acknowledged come again: they are duplicates, and no records."""
        for outgoing in self.streams.values():
            for number in outgoing.acked[-2:]:
                (verdict,) = self.shard.admit([self._step(outgoing, number, 0)], VICTIM)
                assert verdict.outcome is Outcome.DUPLICATE
        for outgoing in self.plains.values():
            for number in outgoing.acked[-2:]:
                (verdict,) = self.shard.admit([self._plain(outgoing, number)], VICTIM)
                assert verdict.outcome is Outcome.DUPLICATE

    @rule()
    def reload(self) -> None:
        self.catalogue = self._catalogue()
        self.shard.use(self.catalogue)

    # -- what always holds ------------------------------------------------------------------

    @invariant()
    def what_was_acknowledged_is_there_once_and_in_order(self) -> None:
        for outgoing in self._outgoing():
            prefix = outgoing.body(0)[:-1]
            found = [int(one[len(prefix) :]) for one in self.kafka.log if one.startswith(prefix)]
            assert found == outgoing.acked

    def teardown(self) -> None:
        """In the end all of it is there, and one more of each is welcome."""
        self.commit()
        for name in STREAMS:
            self.sends_a_stream(name, 1, alike=False, asks=False)
        for name in PLAINS:
            self.sends_plain(name, 1, alike=True)
        self.sends_a_mail()
        self.commit()
        self.what_was_acknowledged_is_there_once_and_in_order()
        assert not any(outgoing.waiting for outgoing in self._outgoing())


class OpenQueues(_Machine):
    """No list; the stranger cannot shake hands as the victim."""


class GuardedQueues(_Machine):
    """`allow: [victim@network]`; the stranger shakes hands as whomever it likes."""

    allowed = (f"{VICTIM}@{HOME}/32",)
    hands = (STRANGER, VICTIM, Guid(b"\7" * 16))

    @rule(messages=st.integers(1, 2))
    def sends_parts(self, messages: int) -> None:
        """A stream over HTTP. Where no list is, HTTP alone cannot tell whose stream it is."""
        for number in self.parts.more(messages):
            self._accepted(self.parts, [number], [self._part(number, number - 1)], NULL_GUID)


_SETTINGS = settings(
    max_examples=120,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestOpenQueues = OpenQueues.TestCase
TestOpenQueues.settings = _SETTINGS
TestGuardedQueues = GuardedQueues.TestCase
TestGuardedQueues.settings = _SETTINGS
