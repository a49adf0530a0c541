"""Rows 2 to 10, 12 and 13 of data-model.md 2.4, one by one; their order is the shard's."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.access import AccessList
from bridge.core.admission import (
    DENIED,
    ENCRYPTED,
    EXPIRED,
    FLAWED_SIGNATURE,
    FOREIGN,
    HOPS,
    LATE,
    MAX_HOPS,
    NOT_ENCRYPTED,
    NOT_SIGNED,
    NOT_TRANSACTIONAL_MESSAGE,
    NOT_TRANSACTIONAL_QUEUE,
    OVER_QUOTA,
    TOO_LARGE,
    UNKNOWN_QUEUE,
    UNKNOWN_TYPE,
    Policy,
    Refusal,
    deadline_of,
    expiry,
    foreign,
    is_identified,
    is_over_machine_quota,
    is_over_quota,
    is_past,
    kept_out,
    refusal,
    size_on_wire,
    unroutable,
)
from bridge.core.catalogue import Queue
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message
from tests.core.messages import LOCAL, NOW, OTHER, SENDER, catalogue, plain, queue, step, u32
from tests.core.posts import mail, part

TRANSACTIONAL, ORDINARY = queue(), queue("private$\\plain", transactional=False)


def ordinary(access: AccessList | None = None, **settings: Any) -> Queue:
    return queue("private$\\plain", transactional=False, access=access, **settings)


NOBODY = ordinary(AccessList([]))
USERS = ordinary(AccessList(["S-1-5-21-1-2-3-4"]))
SIGNED, SECRET = ordinary(authenticate="required"), ordinary(encrypt="required")


def test_the_classes_are_those_of_the_table() -> None:  # 2.4, column admin
    classes = {
        0: (UNKNOWN_TYPE,),  # ignored, SR-8
        0x8000: (UNKNOWN_QUEUE, FOREIGN),
        0x8002: (EXPIRED, LATE),
        0x8003: (OVER_QUOTA, TOO_LARGE),
        0x8004: (DENIED,),
        0x8005: (HOPS,),
        0x8006: (NOT_SIGNED, FLAWED_SIGNATURE),
        0x8007: (ENCRYPTED, NOT_ENCRYPTED),
        0x8009: (NOT_TRANSACTIONAL_QUEUE,),
        0x800A: (NOT_TRANSACTIONAL_MESSAGE,),
    }
    for number, refusals in classes.items():
        assert {reason.message_class for reason in refusals} == {number}
    reasons = [r.reason for refusals in classes.values() for r in refusals]
    assert len(set(reasons)) == len(reasons)  # each can be told from all others


@pytest.mark.parametrize(
    ("message", "place", "expected"),
    [
        (plain(), None, UNKNOWN_QUEUE),  # row 3
        (step(1), None, UNKNOWN_QUEUE),
        (step(1), ORDINARY, NOT_TRANSACTIONAL_QUEUE),  # row 4
        (plain(), TRANSACTIONAL, NOT_TRANSACTIONAL_MESSAGE),  # row 5
        (plain(encrypted=True), ORDINARY, ENCRYPTED),  # row 7: no keys, it cannot be for us
        (plain(), NOBODY, DENIED),  # row 8
        (plain(), ordinary(AccessList([str(SENDER)])), None),
        (plain(), SIGNED, NOT_SIGNED),  # row 9
        (plain(signature=b"s", certificate=b"c"), SIGNED, NOT_SIGNED),  # QB-131: nobody checked it
        (plain(authenticated=1), SIGNED, None),
        (plain(), SECRET, NOT_ENCRYPTED),
        (plain(privacy_level=5), SECRET, NOT_ENCRYPTED),  # the level says what was asked for
        (plain(), ordinary(authenticate="optional", encrypt="optional"), None),
        (step(1), TRANSACTIONAL, None),
        (plain(), ORDINARY, None),
    ],
)
def test_rows_3_to_9(message: Message, place: Queue | None, expected: Refusal | None) -> None:
    assert decided(message, place) is expected  # DM-6, DM-14


def decided(message: Message, place: Queue | None) -> Refusal | None:
    """As a shard asks: first what the peer may not do."""
    reason = kept_out(message, place, catalogue())
    return reason if reason is not None or place is None else refusal(message, place)


@pytest.mark.parametrize(
    ("message", "place", "expected"),
    [
        (plain(encrypted=True), None, UNKNOWN_QUEUE),
        (step(1, encrypted=True), NOBODY, DENIED),  # a peer that is kept out hears nothing else
        (plain(encrypted=True), NOBODY, DENIED),
        (step(1, encrypted=True), USERS, NOT_TRANSACTIONAL_QUEUE),
        (plain(encrypted=True), USERS, ENCRYPTED),
        (plain(encrypted=True), SECRET, ENCRYPTED),
        (plain(), ordinary(AccessList([]), authenticate="required"), DENIED),
        (plain(), ordinary(authenticate="required", encrypt="required"), NOT_SIGNED),
    ],
)
def test_the_first_row_decides(message: Message, place: Queue | None, expected: Refusal) -> None:
    assert decided(message, place) is expected  # DM-5


@pytest.mark.parametrize(
    ("owner", "hops", "expected"),
    [
        (LOCAL, 0, None),
        (NULL_GUID, 0, None),  # T-14: NULL is local
        (LOCAL, 0x1F, None),  # ours however far it came
        (OTHER, 0, FOREIGN),
        (OTHER, MAX_HOPS - 1, FOREIGN),
        (OTHER, MAX_HOPS, HOPS),  # QB-61: RC+1 > 0x1D
        (OTHER, 0x1F, HOPS),
    ],
)
def test_row_2_is_for_other_queue_managers(owner: Any, hops: int, expected: Refusal | None) -> None:
    assert MAX_HOPS == 0x1D
    assert foreign(plain(destination_qm=owner, hops=hops), catalogue()) is expected


def judged(age: int, ttrq: int, skew: int = 0, ttbr: int = INFINITE) -> Refusal | None:
    message = plain(sent_time=NOW - age, time_to_reach_queue=ttrq, time_to_be_received=ttbr)
    return expiry(message, Policy(clock_skew_s=skew))


@pytest.mark.parametrize(
    ("age", "limit", "skew", "over"),
    [
        (10, 10, 0, False),  # QB-100: strictly later
        (11, 10, 0, True),
        (1, 0, 0, True),
        (11, 10, 1, False),  # clock_skew_s
        (12, 10, 1, True),
        (NOW, INFINITE, 0, False),  # 0xFFFFFFFF never
        (NOW, INFINITE - 1, 0, False),
        (NOW - 0xFFFFFFFF, 1, 0, False),  # sent in the future: signed arithmetic
        (345_600, 345_600, 0, False),
        (345_601, 345_600, 0, True),
    ],
)
def test_row_10(age: int, limit: int, skew: int, over: bool) -> None:
    assert judged(age, limit, skew) is (EXPIRED if over else None)
    # From SentTime. 0 is judged in the queue: MS-MQDMPR 3.1.2.4
    assert judged(age, INFINITE, skew, limit) is (LATE if over and limit else None)


@pytest.mark.parametrize("age", [0, -1, -100_000])
def test_row_10_zero_seconds(age: int) -> None:
    assert judged(age, 0) is None


@pytest.mark.parametrize("age", [0, -1, 1, 100_000])
def test_no_time_to_be_received_is_judged_in_the_queue(age: int) -> None:
    """MS-MQDMPR 3.1.2.4: its timer "expires immediately", and it starts when the message is
    enqueued (3.1.7.1.9)."""
    assert judged(age, INFINITE, ttbr=0) is None


def test_the_way_here_is_judged_before_the_time_in_the_queue() -> None:
    assert judged(11, 10, ttbr=0) is EXPIRED


def test_row_10_both_times_over_is_the_way_here() -> None:
    assert judged(100, 10, ttbr=10) is EXPIRED
    assert judged(100, 200, ttbr=10) is LATE
    assert judged(100, 10, ttbr=200) is EXPIRED


def test_time_is_taken_when_the_message_arrived() -> None:
    """In whole seconds: the sender's clock has no finer ones."""
    message = plain(sent_time=NOW, time_to_reach_queue=0, arrived_ms=NOW * 1000 + 999)
    assert expiry(message, Policy()) is None


@given(u32, u32, st.integers(0, 3600))
def test_skew_only_ever_lets_more_in(age: int, ttrq: int, skew: int) -> None:
    if judged(age, ttrq, skew):
        assert judged(age, ttrq)
        assert not judged(age, ttrq, max(0, age - ttrq))


def sized(size: int) -> Message:
    return plain(body=bytes(size - 100), wire=bytes(100))  # 2.5: headers and body


def test_row_12_bounds_one_message() -> None:  # DM-11
    assert not is_over_machine_quota(sized(2048), Policy(quota_kb=2))
    assert is_over_machine_quota(sized(2049), Policy(quota_kb=2))
    assert not is_over_machine_quota(sized(4 << 20), Policy())


def test_row_13_bounds_one_message() -> None:  # DM-12
    assert not is_over_quota(sized(2048), queue(quota_kb=2))
    assert is_over_quota(sized(2049), queue(quota_kb=2))
    assert not is_over_quota(sized(4 << 20), queue())


# -- over HTTP ------------------------------------------------------------------------------

EITHER = msgspec.structs.replace(ORDINARY, any_kind=True)


@pytest.mark.parametrize(
    ("message", "place", "expected"),
    [
        (mail(), ORDINARY, None),
        (part(1), TRANSACTIONAL, None),
        (mail(), EITHER, None),
        (part(1), EITHER, None),
        (mail(asks={"is_here": False}), ORDINARY, FOREIGN),  # SR-13
        (mail(), None, UNKNOWN_QUEUE),  # SR-16
        (part(1), ORDINARY, NOT_TRANSACTIONAL_QUEUE),  # SR-17
        (mail(), TRANSACTIONAL, NOT_TRANSACTIONAL_MESSAGE),
        (mail(asks={"is_known": False}), ORDINARY, UNKNOWN_TYPE),  # 3.3
        (mail(asks={"flaw": "x"}), ORDINARY, FLAWED_SIGNATURE),  # SR-40
        (mail(), NOBODY, None),  # access comes later: SR-1
        (mail(), SIGNED, None),
    ],
)
def test_what_cannot_be_routed(
    message: Message, place: Queue | None, expected: Refusal | None
) -> None:
    assert message.srmp is not None
    assert unroutable(message, message.srmp, place) is expected


@pytest.mark.parametrize(
    ("source", "ordinal", "tells"),
    [(NULL_GUID, 1, False), (NULL_GUID, 2, True), (NULL_GUID, 0, True), (SENDER, 1, True)],
)
def test_an_id_that_tells_something(source: Guid, ordinal: int, tells: bool) -> None:  # SR-21
    assert is_identified(mail(ordinal, source=source)) is tells


@given(u32, u32, st.integers(0, 1 << 33), st.integers(0, 100))
def test_the_earlier_of_both_times_counts(
    sent: int, lasts: int, expires: int, skew: int
) -> None:  # SR-62, strictly later
    message = mail(sent_time=sent, time_to_reach_queue=lasts, expires=expires)
    ends = [sent + lasts] if lasts != INFINITE else []
    ends += [expires] if expires else []
    late = bool(ends) and NOW - skew > min(ends)
    assert is_past(message, Policy(clock_skew_s=skew)) is late
    assert deadline_of(message) == min(ends, default=None)


def test_what_a_message_weighs() -> None:  # rows 12 and 13: all that it brings, once
    assert size_on_wire(plain(wire=bytes(10), body=bytes(5), extension=bytes(3))) == 15
    assert size_on_wire(mail(soap="x" * 10, body=bytes(5), extension=bytes(3))) == 18
