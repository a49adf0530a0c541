"""The ledger finds what is planted, and nothing in a topic that is right."""

import random
from dataclasses import replace
from uuid import UUID

from tests.outside.ledger import ORDERS, PLAIN, Entry, Load, digest_of, faults

SENT = [
    Entry(identity=b"source\\%d" % number, digest=digest_of(b"%d" % number), owed=number % 3 > 0)
    for number in range(1, 10)
]
FOUND = [replace(entry, owed=False) for entry in SENT]


def test_all_there_in_order() -> None:
    assert faults(SENT, FOUND) == []
    assert faults([], []) == []


def test_what_is_not_owed_may_lack() -> None:
    assert faults(SENT, [entry for entry in FOUND if entry.identity != b"source\\3"]) == []


def test_lost() -> None:
    assert faults(SENT, [*FOUND[:3], *FOUND[4:]]) == ["lost source\\4"]
    assert len(faults(SENT, [])) == 6


def test_duplicate() -> None:
    assert faults(SENT, [*FOUND[:5], FOUND[4], *FOUND[5:]]) == ["duplicate source\\5"]
    assert faults(SENT, [*FOUND, FOUND[0]]) == ["duplicate source\\1"]


def test_reordered() -> None:
    assert faults(SENT, [FOUND[1], FOUND[0], *FOUND[2:]]) == ["reordered source\\1"]
    assert faults(SENT, [*FOUND[1:], FOUND[0]]) == ["reordered source\\1"]


def test_altered() -> None:
    other = replace(FOUND[6], digest=digest_of(b"8"))
    assert faults(SENT, [*FOUND[:6], other, *FOUND[7:]]) == ["altered source\\7"]


def test_unexpected() -> None:
    stranger = Entry(identity=b"nobody\\1", digest="")
    assert faults(SENT, [*FOUND, stranger]) == ["unexpected nobody\\1"]


def test_a_load_owes_what_is_recoverable_and_acked() -> None:
    load = Load(UUID(int=1), random.Random(1), "ert")
    messages = load.make(9)
    assert [entry.owed for entry in load.sent(PLAIN)] == [True, False, True, False, True, False]
    assert [entry.owed for entry in load.sent(ORDERS)] == [True] * 3
    kept = [message for message in messages if message.tx and message.tx.number == 3]
    assert [entry.owed for entry in load.sent(ORDERS, kept)] == [True, True, False]
