"""What a message class is called, and what it means."""

import pytest

from bridge.model.classes import MessageClass
from bridge.model.words import class_name, counted, in_words, is_negative


@pytest.mark.parametrize("known", MessageClass)
def test_every_class_has_words(known: MessageClass) -> None:
    text = in_words(known)
    assert text.startswith(f"{known.name} (")
    assert text.endswith(")")
    assert is_negative(known) == known.name.startswith("NACK_")  # MS-MQMQ 2.2.18.1.6


def test_no_two_are_the_same() -> None:
    assert len({in_words(known).partition("(")[2] for known in MessageClass}) == len(MessageClass)


def test_a_class_that_nobody_knows() -> None:  # QB-5
    assert class_name(0x61FF) == in_words(0x61FF) == "0x61ff"


def test_counted() -> None:
    assert counted([]) == {}
    assert counted([0x4000, 0x8000, 0x4000, 7]) == {
        "ACK_RECEIVE": 2,
        "NACK_BAD_DST_Q": 1,
        "0x0007": 1,
    }
