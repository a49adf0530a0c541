"""One message that makes us raise is rejected alone; the rest of its read and its unit stands."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import Queue
from bridge.core.mapper import Mapper
from bridge.core.ports import OutboxEntry, Record, Unit
from bridge.core.receipts import Receipts
from bridge.core.shard import Shard
from bridge.core.streams import StreamKey
from bridge.model.guid import Guid
from bridge.model.message import Kind, Message
from bridge.model.verdict import Cursor, Outcome, Verdict
from bridge.wire.binary.packet import UserMessage
from tests.core.messages import (
    LOCAL,
    ORDERS,
    PLAIN,
    SENDER,
    SEQUENCE,
    catalogue,
    plain,
    queue,
    step,
)
from tests.core.posts import TO_PLAIN, mail, part
from tests.core.units import entries, restarted

BOOM = "makes us raise"
HOME, ELSEWHERE = "10.0.0.2", "10.0.0.9"
REASON = "internal-error"


def boom(message: Message) -> None:
    if message.label == BOOM:
        raise RuntimeError(BOOM)


class FaultyReceipts(Receipts):
    """`late`: after some of its acks are owed already."""

    def __init__(self, *, late: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self.local, self.ordinals = LOCAL, count(7001).__next__
        self._late = late

    def accepted(self, message: Message, via: Guid) -> Iterator[OutboxEntry]:
        return self._faulty(message, super().accepted(message, via))

    def arrived(self, message: Message, via: Guid) -> Iterator[OutboxEntry]:
        return self._faulty(message, super().arrived(message, via))

    def refused(self, message: Message, message_class: int, via: Guid) -> Iterator[OutboxEntry]:
        return self._faulty(message, super().refused(message, message_class, via))

    def _faulty(self, message: Message, acks: Iterator[OutboxEntry]) -> Iterator[OutboxEntry]:
        if self._late:
            yield from acks
        boom(message)
        yield from acks


class FaultyMapper(Mapper):
    def record(self, message: Message, queue: Queue, text: str = "") -> Record:
        boom(message)
        return super().record(message, queue, text)


def with_faulty_receipts(*queues: Queue) -> Shard:
    return Shard(catalogue(*queues), Policy(deadletter_topic="dead"), FaultyReceipts())


def with_late_receipts(*queues: Queue) -> Shard:
    acks = FaultyReceipts(late=True)
    return Shard(catalogue(*queues), Policy(deadletter_topic="dead"), acks)


def with_faulty_mapper(*queues: Queue) -> Shard:
    shard = Shard(catalogue(*queues), Policy(deadletter_topic="dead"))
    shard._mapper = FaultyMapper(shard._catalogue)
    return shard


SHARDS = pytest.mark.parametrize(
    "make", [with_faulty_receipts, with_late_receipts, with_faulty_mapper]
)
Make = Callable[..., Shard]


def unit_of(shard: Shard) -> Unit:
    return shard.take_unit(0)[1]


def asking(message: Message) -> Message:
    return replace(message, ack=15, admin_queue="DIRECT=OS:sender01\\private$\\acks")


def odd(message: Message) -> Message:
    return replace(asking(message), label=BOOM)


def _class_of(entry: OutboxEntry) -> int:
    return UserMessage.unpack(entry.packet).properties.message_class


def bodies(unit: Unit) -> list[bytes]:
    return [record.value for record in unit.records]


def is_fault(verdict: Verdict) -> bool:
    return (verdict.outcome, verdict.reason) == (Outcome.REJECTED, REASON)


@SHARDS
def test_a_plain_message_alone(make: Make) -> None:
    shard = make()
    first, bad, last = asking(plain(1)), odd(plain(2)), asking(plain(3))
    verdicts = shard.admit([first, bad, last], SENDER)
    assert [verdicts[0].outcome, verdicts[2].outcome] == [Outcome.ACCEPTED] * 2
    assert is_fault(verdicts[1])
    unit = unit_of(shard)
    assert bodies(unit) == [first.body, last.body]
    assert [entry["verdict"] for entry in entries(unit)] == ["accepted", "rejected", "accepted"]
    assert entries(unit)[1]["reason"] == REASON
    assert [record.value for record in unit.rejects] == [bad.body]


@SHARDS
def test_a_stream_goes_on_behind_it(make: Make) -> None:
    """It has its verdict, its sender hears so and does not send it for ever."""
    shard = make()
    verdicts = shard.admit([step(1), odd(step(2)), step(3)], SENDER)
    assert is_fault(verdicts[1])
    assert verdicts[1].cursor == Cursor(SEQUENCE, 2)
    assert verdicts[2].outcome is Outcome.ACCEPTED
    unit = unit_of(shard)
    assert bodies(unit) == [b"step 1", b"step 3"]
    again = restarted(shard, [unit])
    assert again.admit([odd(step(2))], SENDER)[0].outcome is Outcome.DUPLICATE
    assert again.admit([step(4)], SENDER)[0].outcome is Outcome.ACCEPTED


@SHARDS
def test_only_the_next_one_moves_its_stream(make: Make) -> None:
    shard = make()
    shard.admit([step(1), odd(step(9, 8))], SENDER)
    assert shard.admit([step(2)], SENDER)[0].outcome is Outcome.ACCEPTED


@SHARDS
def test_nothing_of_it_is_left_in_the_unit(make: Make) -> None:
    """No record, no ack that was owed for its acceptance, no id."""
    shard = make()
    shard.admit([odd(plain(1))], SENDER)
    unit = unit_of(shard)
    assert unit.records == []
    assert set(unit.state) <= {"unit", *(entry.key for entry in unit.acks)}
    assert {entry.ordinal for entry in unit.acks} == set(shard.outbox)
    classes = [_class_of(entry) for entry in unit.acks]
    assert all(one >= 0x8000 for one in classes), classes


class OddLabel(str):
    """Raises where it is written down."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise RuntimeError(f"{BOOM}, in {encoding}, {errors}")


@pytest.mark.parametrize("make_one", [step, plain], ids=["stream", "plain"])
def test_in_a_run_of_messages_that_look_alike(make_one: Callable[..., Message]) -> None:
    """Those before it went the short way; it does not, and nothing is counted twice."""
    shard, kind = Shard(catalogue(), Policy()), Kind()
    messages = [make_one(n, wire=b"wire", kind=kind, label="x") for n in range(1, 6)]
    messages[2] = replace(messages[2], label=OddLabel("odd"))
    verdicts = shard.admit(messages, SENDER)
    outcomes = [one.outcome for one in verdicts]
    assert outcomes == [*[Outcome.ACCEPTED] * 2, Outcome.REJECTED, *[Outcome.ACCEPTED] * 2]
    unit = unit_of(shard)
    good = [message.body for message in messages if message.label == "x"]
    assert bodies(unit) == good
    assert len(entries(unit)) == 5
    assert len(unit.rejects) == 1
    again = restarted(shard, [unit])
    assert {one.outcome for one in again.admit(messages[3:], SENDER)} == {Outcome.DUPLICATE}


@SHARDS
def test_it_is_told_to_the_owner(make: Make) -> None:
    shard, bad = make(), odd(plain(1))
    shard.admit([bad, plain(2)], SENDER)
    [(message, fault)] = shard.faults
    assert message == bad
    assert isinstance(fault, RuntimeError)


def test_over_http_nothing_of_it_is_kept() -> None:
    """If it is sent again it is judged again."""
    shard = with_faulty_mapper()
    bad = mail(1, TO_PLAIN, label=BOOM)
    assert is_fault(*shard.admit([bad]))
    shard.admit([part(1)])
    assert shard.admit([replace(bad, label="")])[0].outcome is Outcome.ACCEPTED
    assert shard.admit([part(2)])[0].outcome is Outcome.ACCEPTED


# -- a fault is no way around the rules ------------------------------------------------------


def guarded() -> Sequence[Queue]:
    access = AccessList([f"{SENDER}@{HOME}"])
    return (
        queue(access=access),
        queue("private$\\plain", transactional=False, access=access),
    )


def streams_of(shard: Shard) -> list[StreamKey]:
    return [key for key, _ in shard.streams.items()]


def test_a_denied_message_that_raises_moves_nothing() -> None:
    """The stranger shook hands as the victim, and has found a message that makes us raise."""
    shard = with_faulty_receipts(*guarded())
    ahead = replace(odd(step(9, 0, sequence=2**64 - 1)), peer=ELSEWHERE)
    mine = replace(odd(plain(1)), peer=ELSEWHERE)
    verdicts = shard.admit([ahead, mine], SENDER)
    assert [one.outcome for one in verdicts] == [Outcome.REJECTED] * 2
    assert streams_of(shard) == []
    unit = unit_of(shard)
    for one in (shard, restarted(shard, [unit])):
        first, second = replace(step(1), peer=HOME), replace(plain(1), peer=HOME)
        outcomes = [verdict.outcome for verdict in one.admit([first, second], SENDER)]
        assert outcomes == [Outcome.ACCEPTED] * 2


@pytest.mark.parametrize("destination", ["nowhere", "\ud800", "order_queue$"])
def test_an_unknown_queue_makes_no_stream(destination: str) -> None:
    """Else every name that a stranger invents is kept for ever."""
    shard = with_faulty_receipts()
    name = f"DIRECT=OS:bridge01\\private$\\{destination}"
    (verdict,) = shard.admit([odd(step(1, destination=name))], SENDER)
    assert verdict.outcome is Outcome.REJECTED
    assert streams_of(shard) == []


def test_a_message_for_another_queue_manager_makes_no_stream() -> None:
    shard = with_faulty_receipts()
    shard.admit([odd(replace(step(1), destination_qm=Guid(b"\7" * 16)))], SENDER)
    assert streams_of(shard) == []


def test_a_spoofed_message_that_raises_is_not_acknowledged() -> None:
    shard = with_faulty_receipts()
    other = Guid(b"\7" * 16)
    verdicts = shard.admit([odd(step(1)), odd(plain(1))], other)
    assert [one.outcome for one in verdicts] == [Outcome.BUSY] * 2
    assert streams_of(shard) == []
    assert shard.admit([plain(1)], SENDER)[0].outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("text", ["\ud800", "a\ud800b", "\0", "h" * 300], ids=ascii)
@pytest.mark.parametrize(
    "field",
    ["admin_queue", "response_queue", "destination", "label", "sender", "destination_multi"],
)
def test_odd_strings_are_decided(field: str, text: str) -> None:
    """Whatever the verdict is, there is one, it can be written down, and the others go on."""
    shard = Shard(catalogue(), Policy(deadletter_topic="dead"), FaultyReceipts())
    name = f"DIRECT=OS:{text}\\private$\\{text}"
    value = name if field in ("admin_queue", "response_queue", "destination") else text
    bad: list[Message] = [
        replace(one, **{field: value}) for one in (asking(plain(2)), asking(step(1)))
    ]
    verdicts = shard.admit([plain(1), *bad, plain(3)], SENDER)
    assert len(verdicts) == 4
    assert [verdicts[0].outcome, verdicts[3].outcome] == [Outcome.ACCEPTED] * 2
    unit = unit_of(shard)
    assert len(entries(unit)) == 4
    assert {ORDERS, PLAIN} >= {key[1] for key in streams_of(shard) if field != "destination"}
    restarted(shard, [unit]).admit([plain(4)], SENDER)
