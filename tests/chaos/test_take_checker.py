"""Each verdict on remote readers is found by its name and no other, and none where all is right."""

from dataclasses import replace

import pytest

from tests.chaos.checker import Kind
from tests.chaos.history import History, Look, Mode, Op, Read, Take
from tests.chaos.read_checker import check_reads
from tests.chaos.take_checker import GRACE_S

TOPIC = "kept"
NAMES = [f"guid\\{number}" for number in range(1, 5)]


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


def take(number: int, at: float, *, lasts: float = 0.6, server: int = 2103) -> Take:
    """Asked for at `at`, given 0.1 later, the End goes out after `lasts` and is answered."""
    return Take(
        asked_at=at,
        server=server,
        given_at=at + 0.1,
        identity=NAMES[number - 1],
        place=10 * number,
        left_at=at + lasts,
        over_at=at + lasts + 0.1,
        is_ended=True,
    )


def told(took: Take) -> Read:
    assert took.left_at is not None
    return Read(
        asked_at=took.left_at, told_at=took.over_at, identity=took.identity, place=took.place
    )


def history() -> History:
    """1 and 2 are told, 3 was given back and is still there, 4 went with an End in doubt."""
    first, second, back, lost = (take(number, float(number)) for number in range(1, 5))
    in_doubt = replace(told(lost), told_at=None, is_cut_off=True, over_at=lost.over_at)
    made = History(ops=[op(number) for number in range(1, 5)])
    made.takes = [first, second, back, replace(lost, is_ended=False)]
    made.reads = [told(first), told(second), in_doubt]
    made.looks = [Look(9.0, [(NAMES[2], 30)])]
    return made


def names(made: History, journal: tuple[int, ...] = (1, 2, 4)) -> set[Kind]:
    copies = [NAMES[number - 1] for number in journal]
    return {fault.kind for fault in check_reads(made, NAMES, copies, TOPIC)}


def test_nothing_is_wrong() -> None:
    assert names(history()) == set()


def test_an_end_in_doubt_that_did_nothing() -> None:
    made = history()
    made.looks = [Look(9.0, [(NAMES[2], 30), (NAMES[3], 40)])]
    assert names(made, (1, 2)) == set()


def test_an_end_in_doubt_explains_its_own_message_alone() -> None:
    made = history()
    made.looks = [Look(9.0, [(NAMES[3], 40)])]  # 3 is gone, and 4 was in doubt
    assert names(made, (1, 2, 3)) == {Kind.UNTOLD_LOST}


def test_given_after_it_was_told() -> None:
    made = history()
    made.takes.append(take(1, 5.0))
    assert names(made) == {Kind.REAPPEARS}


def test_asked_for_before_it_was_told() -> None:
    """A Start that waits is answered by what comes later; this one heard of it late."""
    made = history()
    made.takes.append(replace(take(1, 1.65), is_ended=False))
    assert names(made) == set()


def test_given_in_another_place() -> None:
    made = history()
    made.takes[2].place = 31
    assert names(made) == {Kind.OUT_OF_PLACE}


def test_held_by_two() -> None:  # RR-20
    made = history()
    made.takes.append(take(3, 3.2))
    assert names(made) == {Kind.HELD_BY_TWO}


@pytest.mark.parametrize(
    "other",
    [
        take(3, 3.65),  # when it was given back
        take(3, 3.2, server=2104),  # a second bridge has taken over
        replace(take(3, 3.2), is_ended=False),  # RR-28: nobody knows when its connection was lost
    ],
)
def test_one_after_the_other(other: Take) -> None:
    made = history()
    made.takes.append(other)
    assert names(made) == set()


def swapped() -> History:
    """2 is given before 1."""
    made = history()
    first, second = take(1, 2.0), take(2, 1.0)
    made.takes[:2] = [second, first]
    made.reads[:2] = [told(second), told(first)]
    return made


def test_out_of_turn() -> None:
    assert names(swapped()) == {Kind.OUT_OF_TURN}


def test_out_of_turn_by_far() -> None:
    made = history()
    made.takes[0] = take(1, 5.0)
    made.reads[0] = told(made.takes[0])
    assert names(made) == {Kind.OUT_OF_TURN}


def test_two_starts_at_once_have_no_turn() -> None:
    made = history()
    first, second = take(1, 1.05), take(2, 1.0)
    made.takes[:2] = [second, first]
    made.reads[:2] = [told(second), told(first)]
    assert names(made) == set()


def test_out_of_turn_after_it_was_given_back() -> None:
    made = swapped()
    made.takes.insert(0, take(1, 0.5))  # the NACK goes out when 2 has been given
    assert names(made) == set()


@pytest.mark.parametrize(
    "holder",
    [
        Take(asked_at=0.5, over_at=1.2),  # cut off: it may have been given 1
        Take(asked_at=0.5, over_at=1.0 - 0.9 * GRACE_S + 0.1),  # a moment ago
        Read(asked_at=0.5, over_at=1.2, is_cut_off=True),  # of the admin port
    ],
)
def test_somebody_may_have_had_it(holder: Take | Read) -> None:
    made = swapped()
    if isinstance(holder, Take):
        made.takes.append(holder)
    else:
        made.reads.append(holder)
    assert names(made) == set()


@pytest.mark.parametrize(
    "nobody",
    [
        Take(asked_at=0.5, over_at=1.2, is_empty=True),
        Take(asked_at=1.2, over_at=1.3),  # it began later
        Take(asked_at=-9.0, over_at=0.9 - GRACE_S),  # long over
    ],
)
def test_nobody_had_it(nobody: Take) -> None:
    made = swapped()
    made.takes.append(nobody)
    assert names(made) == {Kind.OUT_OF_TURN}
