from hypothesis import given
from hypothesis import strategies as st

from bridge.core.retained.deadlines import Deadlines


def test_due_ones_come_in_order_and_once() -> None:
    deadlines = Deadlines[str]()
    deadlines.start("late", 3.0)
    deadlines.start("early", 1.0)
    deadlines.start("as early", 1.0)
    assert deadlines.next_wakeup() == 1.0
    assert deadlines.due(1.0) == ["early", "as early"]
    assert deadlines.due(2.0) == []
    assert deadlines.next_wakeup() == 3.0


def test_a_stopped_one_is_never_due() -> None:
    deadlines = Deadlines[str]()
    deadlines.start("a", 1.0)
    deadlines.stop("a")
    deadlines.stop("never started")
    assert deadlines.next_wakeup() is None
    assert deadlines.due(9.0) == []


def test_starting_again_moves_it() -> None:
    deadlines = Deadlines[str]()
    deadlines.start("a", 1.0)
    deadlines.start("a", 5.0)
    assert deadlines.due(4.0) == []
    assert deadlines.due(5.0) == ["a"]
    assert len(deadlines) == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50), st.booleans()), max_size=200))
def test_as_a_plain_table(steps: list[tuple[int, int, bool]]) -> None:
    deadlines, table = Deadlines[int](), dict[int, float]()
    for name, due, is_start in steps:
        if is_start:
            deadlines.start(name, due)
            table[name] = due
        else:
            deadlines.stop(name)
            table.pop(name, None)
        assert deadlines.next_wakeup() == min(table.values(), default=None)
    assert sorted(deadlines.due(25)) == sorted(name for name, due in table.items() if due <= 25)
    assert len(deadlines._heap) <= 2 * len(table) + 20
