from hypothesis import given
from hypothesis import strategies as st

from bridge.core.retained.place import (
    END,
    START,
    ends_of_ranks,
    lookup_id,
    low_bits,
    rank_of,
    renewed,
    spellings,
)

priorities = st.integers(0, 7)
numbers = st.integers(1, (1 << 56) - 1)


def test_top_byte_from_the_priority() -> None:
    """T-1: always 7 - effective priority (transactional 0 -> 7)."""
    assert lookup_id(7, 5) == 5
    assert lookup_id(3, 5) == 0x0400000000000005
    assert lookup_id(0, 5) == 0x0700000000000005
    assert lookup_id(7, 5, transactional=True) == 0x0700000000000005


def test_low_56_bits_of_the_sequential_id() -> None:  # data-model.md 2.5
    assert lookup_id(3, 0x01_AB_0000_0000_0001) == 0x04_AB_0000_0000_0001


@given(priorities, numbers, priorities, numbers)
def test_ascends_along_the_order(one: int, first: int, other: int, second: int) -> None:
    """DM-20: order as in 2.6 (priority 7 first, then arrival); LookupIdentifier strictly ascends
    along it."""
    before = (-one, first) < (-other, second)
    assert (lookup_id(one, first) < lookup_id(other, second)) == before
    assert START < lookup_id(one, first) < END


@given(priorities, numbers, numbers)
def test_a_copy_keeps_its_priority(priority: int, old: int, new: int) -> None:
    """DM-29: new LookupIdentifier."""
    assert renewed(lookup_id(priority, old), new) == lookup_id(priority, new)


@given(priorities, numbers, st.integers(0, 255))
def test_readers_may_guess_the_top_byte(priority: int, number: int, guess: int) -> None:
    """RR-31: lookups use the low 56 bits."""
    place = lookup_id(priority, number)
    assert low_bits(place) == number
    assert place in spellings(guess << 56 | low_bits(place))
    assert len(spellings(place)) == 8


@given(priorities, numbers)
def test_ends_of_ranks(priority: int, number: int) -> None:
    place = lookup_id(priority, number)
    rank = rank_of(place)
    assert rank == 7 - priority
    assert place < ends_of_ranks()[rank]
    assert rank == 0 or place >= ends_of_ranks()[rank - 1]
    assert ends_of_ranks()[7] == END
