from typing import Any

import pytest
from msgspec.structs import replace

from bridge.core.retained.letterhead import read_letterhead
from bridge.core.retained.rows import (
    RecordAt,
    Row,
    Wants,
    aborted,
    moved,
    row_of,
    wants_of,
)
from bridge.model.classes import MessageClass
from bridge.model.message import INFINITE, Message, Srmp, Transaction
from tests.core.messages import NOW, SENDER
from tests.core.retained.world import ORDERS, PLAIN, RETRY

ADMIN = "DIRECT=OS:sender\\private$\\admin"
AT = RecordAt("orders", 1, 42)
PR, NR, JN, JP = 2, 8, 1, 2  # MS-MQMQ 2.2.19.2, 2.2.19.3


def message(**fields: Any) -> Message:
    known: dict[str, Any] = {
        "source": SENDER,
        "ordinal": 7,
        "destination": "DIRECT=OS:bridge01\\private$\\plain",
        "sent_time": NOW,
        "arrived_ms": NOW * 1000 + 250,
        "body": b"12345",
        "wire": b"head",
    }
    return Message(**known | fields)


def transactional(**fields: Any) -> Message:
    tx = Transaction(sequence_id=1, number=1, final_ack=fields.pop("final_ack", False))
    return message(transaction=tx, priority=0, **fields)


def made(m: Message, **how: Any) -> Row:
    return row_of(m, queue=PLAIN, sequential_id=5, at=AT, **how)


def test_a_row_of_a_message() -> None:
    row = made(message())
    assert row == Row(
        queue=PLAIN,
        lookup_id=0x04_00_0000_0000_0005,
        at=AT,
        source=SENDER,
        ordinal=7,
        size=9,
        arrived_ms=NOW * 1000 + 250,
    )
    assert row.id == message().id


def test_the_name_of_a_queue_does_not_depend_on_case() -> None:
    assert row_of(message(), queue="Private$\\Plain", sequential_id=5, at=AT).queue == PLAIN


def test_priority_of_transactional_messages_is_ignored() -> None:
    """DM-20 as in 2.6: transactional messages have PR 0 and it is ignored: pure arrival."""
    first = made(transactional())
    assert first.lookup_id >> 56 == 7


@pytest.mark.parametrize(
    ("fields", "wants"),
    [
        ({}, Wants.NOTHING),
        ({"ack": PR, "admin_queue": ADMIN}, Wants.ACK),
        ({"ack": NR, "admin_queue": ADMIN}, Wants.NACK),
        ({"ack": 0xE, "admin_queue": ADMIN}, Wants.ACK | Wants.NACK),
        ({"ack": 5, "admin_queue": ADMIN}, Wants.NOTHING),  # only of its arrival
        ({"ack": PR}, Wants.NOTHING),  # QB-115: nowhere to send it
        ({"journal": JN}, Wants.DEAD_LETTER),
        ({"journal": JP}, Wants.NOTHING),  # the source's business
    ],
)
def test_what_a_plain_message_wants(fields: dict[str, Any], wants: Wants) -> None:
    """Table 2.12: received -> PR; purged, deleted, too old, rejected -> NR."""
    assert wants_of(message(**fields)) == wants


@pytest.mark.parametrize(
    ("fields", "wants"),
    [
        ({}, Wants.NOTHING),
        ({"journal": JN}, Wants.FINAL),
        ({"journal": JP}, Wants.FINAL),
        ({"final_ack": True}, Wants.FINAL),
        ({"ack": PR | NR, "admin_queue": ADMIN}, Wants.ACK | Wants.NACK),
    ],
)
def test_final_ack_iff_transactional_and_asked_for(fields: dict[str, Any], wants: Wants) -> None:
    """DM-18: FinalAck on removal iff transactional and (JN or JP or FA). T-23"""
    assert wants_of(transactional(**fields)) == wants


@pytest.mark.parametrize(
    "message_class",
    [
        MessageClass.REPORT,
        MessageClass.ACK_REACH_QUEUE,
        MessageClass.ORDER_ACK,
        MessageClass.ACK_RECEIVE,
        MessageClass.NACK_Q_PURGED,
    ],
)
def test_no_ack_of_an_ack(message_class: MessageClass) -> None:
    """DM-19: no ack of an ack."""
    ack = message(ack=0xE, admin_queue=ADMIN, message_class=message_class)
    assert wants_of(ack) == Wants.NOTHING


def test_what_a_message_over_http_wants() -> None:
    """SR-44, SR-45; MC-MQSRM 3.1.7.3.2: dead letters when it expires or is purged."""
    srmp = Srmp(to="http://x/", commitment_to="http://y/", positive=True, negative=True)
    both = Wants.RECEIPT | Wants.NEGATIVE_RECEIPT
    assert wants_of(message(srmp=srmp)) == both
    dead = Wants.DEAD_LETTER | Wants.DEAD_WHEN_PURGED
    assert wants_of(message(srmp=Srmp(to="http://x/"), journal=JN)) == dead
    assert wants_of(transactional(srmp=srmp, journal=JN)) == both | Wants.FINAL
    nowhere = Srmp(to="http://x/", positive=True)
    assert wants_of(message(srmp=nowhere, ack=PR, admin_queue=ADMIN)) == Wants.NOTHING


def test_a_letterhead_only_for_those_who_will_hear() -> None:
    assert made(message(journal=JN)).letterhead == b""
    row = made(message(ack=PR, admin_queue=ADMIN))
    assert read_letterhead(row.letterhead, 0).message.admin_queue == ADMIN


def test_a_letterhead_that_is_there_already() -> None:
    asking = message(ack=PR, admin_queue=ADMIN)
    assert made(asking, letterhead=b"head").letterhead == b"head"
    assert made(message(journal=JN), letterhead=b"head").letterhead == b""
    assert made(message(journal=JN), letterhead=b"head").wants == Wants.DEAD_LETTER
    silent = made(asking, letterhead=b"")  # who wants something has one
    assert (silent.wants, silent.letterhead) == (Wants.NOTHING, b"")


def test_too_old_strictly_after_its_deadline() -> None:
    """DM-28: TTBR deadline = SentTime + TTBR. QB-100: strictly."""
    row = made(message(time_to_be_received=10))
    assert not row.is_over(NOW + 10.999)
    assert row.is_over(NOW + 11)
    tolerant = made(message(time_to_be_received=10), clock_skew_s=5)
    assert not tolerant.is_over(NOW + 15)
    assert tolerant.is_over(NOW + 16)


def test_never_or_at_once() -> None:
    """data-model.md 2.14: 0xFFFFFFFF none, 0 at once."""
    assert made(message(time_to_be_received=INFINITE)).expires is None
    assert made(message(time_to_be_received=0)).is_over(NOW)


def test_expires_at_is_a_time_to_be_received() -> None:
    """MC-MQSRM 2.2.5.1.1: "beyond which time, the message MUST not be processed by the receiver and
    MUST be discarded"."""
    row = made(message(expires=NOW + 10))
    assert not row.is_over(NOW + 10.999)
    assert row.is_over(NOW + 11)
    tolerant = made(message(expires=NOW + 10), clock_skew_s=5)
    assert not tolerant.is_over(NOW + 15)
    assert tolerant.is_over(NOW + 16)
    assert made(message(expires=0)).expires is None  # never
    assert made(message(expires=NOW)).is_over(NOW + 1)


def test_what_was_late_when_it_came_and_was_taken_stays() -> None:
    """`srmp.expired: deliver`"""
    assert made(message(expires=NOW - 1)).expires is None
    assert made(message(expires=NOW - 1), clock_skew_s=1).expires == NOW + 1


def test_a_move_counts() -> None:
    """DM-29: new LookupIdentifier, … AbortCounter 0, MoveCounter+1; T-22: seconds."""
    row = aborted(aborted(row_of(transactional(), queue=ORDERS, sequential_id=5, at=AT)))
    assert row.aborts == 2
    new = moved(row, queue=RETRY, sequential_id=9, unix=NOW + 0.7)
    assert (new.queue, new.lookup_id) == (RETRY, 0x07_00_0000_0000_0009)
    assert (new.aborts, new.moves, new.moved_at) == (0, 1, NOW)
    assert (new.at, new.id, new.wants) == (row.at, row.id, row.wants)


def test_a_copy_owes_nothing_and_stays() -> None:
    original = message(ack=0xE, admin_queue=ADMIN, time_to_be_received=5, journal=JN)
    there, dead = RecordAt("dead", 0, 1), "system$;deadletter"
    copy = row_of(replace(original, arrived_ms=1), queue=dead, sequential_id=99, at=there)
    assert (copy.wants, copy.letterhead, copy.expires) == (Wants.NOTHING, b"", None)
    assert (copy.at, copy.lookup_id, copy.arrived_ms) == (there, 4 << 56 | 99, 1)
    assert (copy.id, copy.size) == (original.id, made(original).size)
