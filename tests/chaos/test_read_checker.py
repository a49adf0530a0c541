"""Each verdict on readers is found by its name and no other, and none where all is right."""

import pytest

from tests.chaos.checker import Kind
from tests.chaos.history import History, Look, Mode, Op, Read
from tests.chaos.read_checker import check_reads

TOPIC = "kept"
NAMES = [f"guid\\{number}" for number in range(1, 6)]


def op(number: int) -> Op:
    return Op(
        identity=NAMES[number - 1],
        mode=Mode.RECOVERABLE,
        stream="guid/kept",
        topic=TOPIC,
        number=number,
        digest=b"",
        sent_at=0.0,
    )


def told(number: int, place: int | None = None) -> Read:
    """At its number."""
    at = place or 10 * number
    return Read(asked_at=number - 0.5, told_at=float(number), identity=NAMES[number - 1], place=at)


def history() -> History:
    """1 and 2 are told, 3 went with a reader that was cut off, 4 and 5 are there."""
    made = History(ops=[op(number) for number in range(1, 6)])
    made.reads = [told(1), told(2), Read(asked_at=2.5, is_cut_off=True)]
    made.looks = [
        Look(0.0, [(name, 10 * number) for number, name in enumerate(NAMES, 1)]),
        Look(9.0, [(NAMES[3], 40), (NAMES[4], 50)]),
    ]
    return made


def names(made: History, journal: list[str] | None = None) -> set[Kind]:
    copies = NAMES[:3] if journal is None else journal
    return {fault.kind for fault in check_reads(made, NAMES, copies, TOPIC)}


def test_nothing_is_wrong() -> None:
    assert names(history()) == set()


def test_reappears() -> None:
    made = history()
    made.looks.insert(1, Look(5.0, [(NAMES[0], 10), (NAMES[3], 40)]))
    assert names(made) == {Kind.REAPPEARS}


def test_a_look_that_was_asked_for_before_proves_nothing() -> None:
    made = history()
    made.looks.insert(1, Look(0.9, [(NAMES[0], 10), (NAMES[3], 40)]))
    assert names(made) == set()


def test_read_twice() -> None:
    made = history()
    made.reads.append(told(2))
    assert names(made) == {Kind.READ_TWICE}


def test_untold_lost() -> None:
    made = history()
    made.looks[-1].places.pop()
    assert names(made) == {Kind.UNTOLD_LOST}


def test_nothing_is_called_lost_without_a_last_look() -> None:
    made = history()
    made.looks[-1] = Look(9.0, [(NAMES[3], 40)], is_last=False)
    assert names(made) == set()


def test_more_are_gone_than_readers_were_cut_off() -> None:
    made = history()
    made.reads[-1].is_cut_off = False
    assert names(made) == {Kind.UNTOLD_LOST}


@pytest.mark.parametrize("place", [41, 60])
def test_out_of_place(place: int) -> None:
    made = history()
    made.looks[-1].places[0] = (NAMES[3], place)
    assert names(made) == {Kind.OUT_OF_PLACE}


def test_a_stream_in_another_order() -> None:
    made = history()
    made.looks = [Look(9.0, [(NAMES[4], 40), (NAMES[3], 50)])]
    assert names(made) == {Kind.OUT_OF_PLACE}


def test_journal() -> None:
    assert names(history(), NAMES[1:3]) == {Kind.JOURNAL_MISSING}
    assert names(history(), [*NAMES[:3], NAMES[1]]) == {Kind.JOURNAL_DOUBLED}
