"""Rows 2 to 5 and 10 of data-model.md 2.4, one by one; their order is the shard's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.admission import (
    EXPIRED,
    FOREIGN,
    NOT_TRANSACTIONAL_MESSAGE,
    NOT_TRANSACTIONAL_QUEUE,
    TOO_LARGE,
    UNKNOWN_QUEUE,
    Policy,
    Refusal,
    is_expired,
    is_foreign,
    refusal,
)
from bridge.core.catalogue import Queue
from bridge.model.guid import NULL_GUID
from bridge.model.message import INFINITE, Message
from tests.core.messages import LOCAL, NOW, OTHER, catalogue, plain, queue, step, u32

TRANSACTIONAL, ORDINARY = queue(), queue("private$\\plain", transactional=False)


def test_the_classes_are_those_of_the_table() -> None:  # 2.4, column admin
    assert UNKNOWN_QUEUE.message_class == FOREIGN.message_class == 0x8000
    assert NOT_TRANSACTIONAL_QUEUE.message_class == 0x8009
    assert NOT_TRANSACTIONAL_MESSAGE.message_class == 0x800A
    assert EXPIRED.message_class == 0x8002
    assert TOO_LARGE.message_class == 0x8003


@pytest.mark.parametrize(
    ("message", "place", "expected"),
    [
        (plain(), None, UNKNOWN_QUEUE),  # row 3
        (step(1), None, UNKNOWN_QUEUE),
        (step(1), ORDINARY, NOT_TRANSACTIONAL_QUEUE),  # row 4
        (plain(), TRANSACTIONAL, NOT_TRANSACTIONAL_MESSAGE),  # row 5
        (step(1), TRANSACTIONAL, None),
        (plain(), ORDINARY, None),
    ],
)
def test_rows_3_to_5(message: Message, place: Queue | None, expected: Refusal | None) -> None:
    assert refusal(message, place) is expected  # DM-6


def test_row_2_is_for_other_queue_managers() -> None:  # T-14: NULL is local
    known = catalogue()
    assert not is_foreign(plain(destination_qm=LOCAL), known)
    assert not is_foreign(plain(destination_qm=NULL_GUID), known)
    assert is_foreign(plain(destination_qm=OTHER), known)


def expired(age: int, ttrq: int, skew: int = 0) -> bool:
    message = plain(sent_time=NOW - age, time_to_reach_queue=ttrq)
    return is_expired(message, Policy(clock_skew_s=skew))


@pytest.mark.parametrize(
    ("age", "ttrq", "skew", "expected"),
    [
        (10, 10, 0, False),  # QB-100: strictly later
        (11, 10, 0, True),
        (0, 0, 0, False),
        (1, 0, 0, True),
        (11, 10, 1, False),  # clock_skew_s
        (12, 10, 1, True),
        (NOW, INFINITE, 0, False),  # 0xFFFFFFFF never
        (NOW, INFINITE - 1, 0, False),
        (-1, 0, 0, False),  # sent in the future: signed arithmetic
        (NOW - 0xFFFFFFFF, 0, 0, False),
        (345_600, 345_600, 0, False),
        (345_601, 345_600, 0, True),
    ],
)
def test_row_10(age: int, ttrq: int, skew: int, expected: bool) -> None:
    assert expired(age, ttrq, skew) is expected


def test_time_is_taken_when_the_message_arrived() -> None:
    """In whole seconds: the sender's clock has no finer ones."""
    message = plain(sent_time=NOW, time_to_reach_queue=0, arrived_ms=NOW * 1000 + 999)
    assert not is_expired(message, Policy())


@given(u32, u32, st.integers(0, 3600))
def test_skew_only_ever_lets_more_in(age: int, ttrq: int, skew: int) -> None:
    if expired(age, ttrq, skew):
        assert expired(age, ttrq)
        assert not expired(age, ttrq, max(0, age - ttrq))
