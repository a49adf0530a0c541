"""The same again and again: a few times, then a number."""

from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.bursts import Bursts


def test_a_burst_then_a_sum() -> None:
    bursts = Bursts[str](window_s=10)
    assert [bursts.admits("a", 2, 0.0) for _ in range(5)] == [True, True, False, False, False]
    assert bursts.admits("b", 2, 0.0)
    assert bursts.over(9.0) == []
    assert bursts.over(10.5) == [("a", 3)]
    assert bursts.admits("a", 2, 10.6)
    assert bursts.over(30.0) == []


def test_at_the_end_all_is_told() -> None:
    bursts = Bursts[str]()
    for _ in range(3):
        bursts.admits("a", 1, 0.0)
    assert bursts.over(0.0) == []
    assert bursts.over(0.0, all_of_them=True) == [("a", 2)]
    assert bursts.over(0.0, all_of_them=True) == []


def test_kinds_without_end_share_one_place() -> None:
    bursts = Bursts[str](window_s=10, most=3)
    said = [bursts.admits(str(n), 1, 0.0) for n in range(100)]
    assert said == [True] * 4 + [False] * 96  # three of their own, one of all the others
    assert len(bursts) == 4
    assert bursts.over(11.0) == [(None, 96)]


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 3)), max_size=60))
def test_nothing_is_lost(lines: list[tuple[int, float]]) -> None:
    """What is said and what is summed up are all that came."""
    bursts, now, said, summed = Bursts[int](window_s=2, most=3), 0.0, 0, 0
    for key, later in lines:
        now += later
        summed += sum(left.lines for left in bursts.over(now))
        said += bursts.admits(key, 2, now)
        assert len(bursts) <= 4
    summed += sum(left.lines for left in bursts.over(now, all_of_them=True))
    assert said + summed == len(lines)
