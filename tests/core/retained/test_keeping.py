"""How the record of a kept message tells where it lies. Design D5: the topic is its storage."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.mapping import headers_of
from bridge.core.ports import Record
from bridge.core.posted import Posted
from bridge.core.retained.keeping import (
    HELD,
    LETTERHEAD,
    LOOKUP,
    Keeper,
    held_in,
    marked,
    message_in,
    row_in,
)
from bridge.core.retained.letterhead import Letterhead, read_letterhead
from bridge.core.retained.naming import DEADLETTER
from bridge.core.retained.queues import QueueTable, Traits
from bridge.core.retained.quotas import Quotas, Shortage
from bridge.core.retained.rows import RecordAt, Row, Wants, row_of
from bridge.core.retained.shelf import MemoryShelf
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.wire.cursor import well_formed
from tests.core.messages import LOCAL, NOW, OTHER, SENDER, messages, plain, step, texts
from tests.core.posts import RECEIPTS, mail, part
from tests.core.retained.world import ORDERS, PLAIN

AT = RecordAt("topic", 2, 42)
ADMIN = "DIRECT=TCP:10.1.2.3\\private$\\admin"
PA, PR, NA, NR = 1, 2, 4, 8
JN, JP = 1, 2
COMMITTED = "http://sender01/msmq/private$/committed"
BOTH = {"commitment_to": COMMITTED, "positive": True, "negative": True}
STREAM = Posted(id=7, text="uid:x\\7", number=1, receipts_to=RECEIPTS)


class Desk:
    """A keeper with its quotas."""

    def __init__(self, **traits: Any) -> None:
        self.shelf, table = MemoryShelf(), QueueTable()
        table.define(PLAIN, Traits(**traits))
        table.define(ORDERS, Traits(transactional=True, **traits))
        self.quotas = Quotas(self.shelf, table)
        self.keeper = Keeper(self.quotas, count(5).__next__, LOCAL)

    def keep(
        self, message: Message, via: Guid = SENDER, stream: Posted | None = None
    ) -> tuple[Record, int]:
        name = "Private$\\Plain" if message.transaction is None else "Private$\\Orders"
        return self.keeper.keep(record_of(message), message, name, via, stream)


def record_of(message: Message) -> Record:
    return Record(
        "topic", message.body, headers=headers_of(message), timestamp_ms=message.arrived_ms
    )


def copied(desk: Desk, message: Message) -> tuple[Record, int]:
    made = desk.keeper.copy(record_of(message), message, DEADLETTER)
    assert made is not None
    return made


def row(record: Record, **how: Any) -> Row:
    found = row_in(record, AT, LOCAL, **how)
    assert found is not None
    return found


# -- marks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "held", "place"),
    [
        (plain(1), PLAIN, 0x04_00_0000_0000_0005),
        (plain(1, priority=7), PLAIN, 5),
        (plain(1, priority=0, delivery=1), PLAIN, 0x07_00_0000_0000_0005),
        (step(1), ORDERS, 0x07_00_0000_0000_0005),
        (step(1, priority=6), ORDERS, 0x07_00_0000_0000_0005),  # 2.6: it is ignored
        (mail(1), PLAIN, 0x04_00_0000_0000_0005),
        (part(1), ORDERS, 0x07_00_0000_0000_0005),
    ],
)
def test_a_record_like_any_other_with_marks(message: Message, held: str, place: int) -> None:
    """2.5: LookupIdentifier = top byte (T-1) + low 56 bits of SequentialID."""
    record, number = Desk().keep(message)
    assert number == place
    marks = {HELD: f"{LOCAL}/{held}".encode(), LOOKUP: str(place).encode()}
    assert record == replace(record_of(message), headers=headers_of(message) | marks)


@pytest.mark.parametrize(
    ("message", "has_one"),
    [
        (plain(1), False),
        (plain(1, ack=PA | NA, admin_queue=ADMIN), False),  # heard of on arrival
        (plain(1, ack=PR), False),  # QB-115: nowhere to send it
        (plain(1, journal=JP), False),
        (plain(1, ack=PR, admin_queue=ADMIN), True),
        (plain(1, ack=NR, admin_queue=ADMIN), True),
        (plain(1, journal=JN), True),
        (step(1), False),
        (step(1, journal=JP), True),
        (mail(1), False),
        (mail(1, asks={"delivery_to": COMMITTED}), False),
        (mail(1, asks=BOTH), True),
        (mail(1, journal=JN), True),
        (part(1), False),
        (part(1, journal=JP), False),
        (part(1, journal=JN), True),
    ],
)
def test_a_letterhead_for_those_that_want_something(message: Message, has_one: bool) -> None:
    record, _ = Desk().keep(message)
    assert (LETTERHEAD in record.headers) is has_one


def test_what_the_letterhead_says() -> None:
    """SR-48, QB-92: who handed it to us, and the stream that it is in."""
    record, _ = Desk().keep(part(1, journal=JN), OTHER, STREAM)
    letterhead = read_letterhead(record.headers[LETTERHEAD], NOW * 1000)
    assert (letterhead.via, letterhead.stream) == (OTHER, STREAM)
    assert letterhead.message.srmp == part(1).srmp


def test_a_copy_has_the_same_marks_and_owes_nothing() -> None:
    message = plain(1, ack=0xF, admin_queue=ADMIN, journal=JN, priority=5)
    desk = Desk()
    copy, place = copied(desk, message)
    assert place == 2 << 56 | 5
    assert copy.headers[HELD] == f"{LOCAL}/system$;deadletter".encode()
    assert copy.headers[LOOKUP] == str(2 << 56 | 5).encode()
    assert LETTERHEAD not in copy.headers
    assert desk.quotas.copies() == len(message.body)
    desk.keeper.forget([place])
    assert desk.quotas.copies() == 0


def test_the_record_that_came_is_left_alone() -> None:
    bare = record_of(plain(1))
    marked(bare, LOCAL, PLAIN, 5, b"head")
    assert bare == record_of(plain(1))


@pytest.mark.parametrize(
    ("change", "queue"),
    [
        ({}, PLAIN),
        ({HELD: None}, None),
        ({LOOKUP: None}, None),
        ({HELD: f"{OTHER}/{PLAIN}".encode()}, None),  # another queue manager's
        ({HELD: f"{LOCAL}".encode()}, None),
        ({HELD: f"{LOCAL}/".encode()}, None),
        ({HELD: f"/{PLAIN}".encode()}, None),
        ({HELD: b""}, None),
        ({HELD: f"{LOCAL}/a/b".encode()}, "a/b"),
        ({"msmq.label": b"x"}, PLAIN),
    ],
)
def test_whose_it_is(change: dict[str, bytes | None], queue: str | None) -> None:
    """Two appliances may write to one topic, and so may anybody else."""
    record, _ = Desk().keep(plain(1))
    headers = {
        name: value for name, value in (record.headers | change).items() if value is not None
    }
    assert held_in(headers, LOCAL) == queue
    found = row_in(replace(record, headers=headers), AT, LOCAL)
    assert (found and found.queue) == queue


def test_just_a_record() -> None:
    assert row_in(Record("topic", b"x"), AT, LOCAL) is None
    assert row_in(record_of(plain(1, lookup_id=9)), AT, LOCAL) is None


@given(texts.filter(bool))
def test_any_name(name: str) -> None:
    """An earlier version kept halves of surrogate pairs, which are U+FFFD now."""
    assert held_in(marked(Record("t", b""), LOCAL, name, 5).headers, LOCAL) == well_formed(name)


# -- and back -------------------------------------------------------------------------------


@given(messages, st.integers(0, (1 << 56) - 1), st.binary(max_size=8))
@settings(max_examples=300, deadline=None)
def test_there_and_back(message: Message, place: int, letterhead: bytes) -> None:
    """DM-35: record + headers rebuild an equal Message."""
    record = marked(record_of(message), LOCAL, PLAIN, place, letterhead)
    assert message_in(record) == replace(message, lookup_id=place)


@pytest.mark.parametrize("outcome", [0x8003, 0xC002])
def test_a_dead_letter_says_what_it_died_of(outcome: int) -> None:
    """2.14: their Class is rewritten to the failure."""
    message = plain(1, message_class=0x0100)
    record = record_of(message)
    died = replace(record, headers=record.headers | {"msmq.outcome": b"%d" % outcome})
    assert message_in(marked(died, LOCAL, DEADLETTER, 5)).message_class == outcome
    assert message_in(marked(record, LOCAL, PLAIN, 5)).message_class == 0x0100


_asks = st.fixed_dictionaries(
    {},
    optional={
        "commitment_to": st.just(COMMITTED),
        "delivery_to": st.just(COMMITTED),
        "positive": st.booleans(),
        "negative": st.booleans(),
        "first": st.booleans(),
    },
)
_common: dict[str, st.SearchStrategy[Any]] = {
    "ack": st.integers(0, 15),
    "admin_queue": st.sampled_from(("", ADMIN)),
    "journal": st.integers(0, 3),
    "message_class": st.sampled_from((0, 0x0100, 0x4000, 0xC001)),
    "time_to_be_received": st.sampled_from((0xFFFFFFFF, 60)),
    "extension": st.sampled_from((b"", b"ext")),
    "label": st.sampled_from(("", "a\ud800b")),
}


@st.composite
def _any_kind(draw: st.DrawFn) -> Message:
    fields = draw(st.fixed_dictionaries(_common))
    match draw(st.sampled_from(("plain", "step", "mail", "part"))):
        case "plain":
            return plain(1, priority=draw(st.integers(0, 7)), wire=b"wire", **fields)
        case "step":
            message = step(1, wire=b"wire", **fields)
        case "mail":
            return mail(1, asks=draw(_asks), **fields)
        case _:
            message = part(1, asks=draw(_asks), **fields)
    assert message.transaction is not None
    tx = replace(message.transaction, final_ack=draw(st.booleans()))
    return replace(message, transaction=tx)


@given(_any_kind(), st.integers(0, 99))
@settings(max_examples=300, deadline=None)
def test_the_row_is_the_one_of_the_message(message: Message, skew: int) -> None:
    """Whatever it asked for, over whatever protocol: the record says it all."""
    stream = STREAM if message.srmp is not None and message.transaction is not None else None
    record, place = Desk().keep(message, OTHER, stream)
    expected = row_of(
        message,
        queue=PLAIN if message.transaction is None else ORDERS,
        sequential_id=place,
        at=AT,
        letterhead=Letterhead(message, OTHER, stream).encode(),
        clock_skew_s=skew,
    )
    assert row(record, clock_skew_s=skew) == expected
    assert expected.lookup_id == place


@pytest.mark.parametrize(
    "message",
    [
        mail(1, ack=0xF, admin_queue=ADMIN, journal=JP),
        part(1, ack=0xF, admin_queue=ADMIN, journal=JP),
        mail(1, asks={"commitment_to": COMMITTED}),
        part(1, asks={"commitment_to": COMMITTED, "first": True}),
    ],
)
def test_what_came_over_http_wants_nothing_of_the_binary_protocol(message: Message) -> None:
    """SR-44, SR-45: neither admin acks nor a final ack, whatever its properties say."""
    found = row(Desk().keep(message)[0])
    assert (found.wants, found.letterhead) == (Wants.NOTHING, b"")


def test_the_row_of_a_copy() -> None:
    message = plain(1, ack=0xF, admin_queue=ADMIN, journal=JN, time_to_be_received=5, wire=b"w")
    record, _ = copied(Desk(), message)
    assert row(record) == Row(
        queue=DEADLETTER,
        lookup_id=4 << 56 | 5,
        at=AT,
        source=SENDER,
        ordinal=1,
        size=8,
        arrived_ms=NOW * 1000,
    )


# -- room -----------------------------------------------------------------------------------


def test_room_is_reserved_until_it_is_on_the_shelf() -> None:
    desk = Desk(quota_kb=1)
    record, _ = desk.keep(plain(1, body=bytes(1000)))
    full = plain(2, body=bytes(25))
    assert desk.keeper.shortage("PRIVATE$\\plain", full) is Shortage.QUEUE
    arrived = row(record)
    desk.shelf.add([arrived])
    desk.keeper.arrived([arrived])
    assert desk.keeper.shortage("private$\\Plain", full) is Shortage.QUEUE
    assert desk.keeper.shortage(PLAIN, plain(2, body=bytes(24))) is None
    desk.shelf.remove(arrived)
    assert desk.keeper.shortage(PLAIN, plain(2, body=bytes(1024))) is None


def test_room_that_nobody_needs_any_more() -> None:
    desk = Desk(quota_kb=1)
    places = [desk.keep(plain(n, body=bytes(500)))[1] for n in (1, 2)]
    desk.keeper.forget(places[:1])
    desk.keeper.forget(places[:1])  # once is enough
    desk.keeper.forget([12345])
    assert desk.keeper.shortage(PLAIN, plain(3, body=bytes(525))) is Shortage.QUEUE
    assert desk.keeper.shortage(PLAIN, plain(3, body=bytes(524))) is None
    assert desk.keeper.shortage(ORDERS, step(3, body=bytes(1024))) is None  # a queue of its own


def test_a_copy_that_arrives_releases_what_was_reserved_for_it() -> None:
    desk = Desk(quota_kb=1)
    desk.keep(plain(1, body=bytes(1000)))
    record, _ = copied(desk, plain(2))
    desk.keeper.arrived([row(record)])
    assert desk.quotas.copies() == 0  # it is not on this shelf
    assert desk.keeper.shortage(PLAIN, plain(3, body=bytes(25))) is Shortage.QUEUE


def test_a_copy_without_room_is_not_made() -> None:
    """MS-MQDMPR 3.1.1.12: "If the quota for the dead-letter queue is exceeded, the message MUST be
    discarded"."""
    desk, message = Desk(), plain(1, body=bytes(513))
    desk.quotas.machine_kb = 1
    assert desk.keeper.copy(record_of(message), message, DEADLETTER) is None
    assert desk.quotas.copies_left_out == 1
