from __future__ import annotations

from enum import Enum, auto

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.protocol.timers import Deadlines, Timers


class Timer(Enum):
    A = auto()
    B = auto()
    C = auto()


def test_nothing_runs_at_first() -> None:
    timers = Timers[Timer]()
    assert timers.next_wakeup() is None
    assert timers.due(1e9) == []
    assert not timers.running(Timer.A)


def test_a_timer_runs_out_once_and_at_its_time() -> None:
    timers = Timers[Timer]()
    timers.start(Timer.A, 2.0)
    assert timers.running(Timer.A)
    assert timers.due(1.999) == []
    assert timers.next_wakeup() == 2.0
    assert timers.due(2.0) == [Timer.A]
    assert not timers.running(Timer.A)
    assert timers.due(3.0) == []
    assert timers.next_wakeup() is None


def test_start_restarts_and_start_if_idle_does_not() -> None:
    timers = Timers[Timer]()
    timers.start(Timer.A, 2.0)
    timers.start(Timer.A, 5.0)
    assert timers.next_wakeup() == 5.0
    timers.start_if_idle(Timer.A, 1.0)
    assert timers.next_wakeup() == 5.0
    timers.start_if_idle(Timer.B, 1.0)
    assert timers.next_wakeup() == 1.0


def test_stop() -> None:
    timers = Timers[Timer]()
    timers.start(Timer.A, 2.0)
    timers.stop(Timer.A)
    timers.stop(Timer.B)
    assert timers.next_wakeup() is None
    timers.start_if_idle(Timer.A, 7.0)
    assert timers.next_wakeup() == 7.0


def test_the_earliest_comes_first_and_the_rest_stays() -> None:
    timers = Timers[Timer]()
    timers.start(Timer.A, 3.0)
    timers.start(Timer.B, 1.0)
    timers.start(Timer.C, 9.0)
    assert timers.due(5.0) == [Timer.B, Timer.A]
    assert timers.next_wakeup() == 9.0


@settings(deadline=None)
@given(st.dictionaries(st.integers(), st.floats(0, 100)), st.floats(0, 100))
def test_due_splits_what_runs(deadlines: dict[int, float], now: float) -> None:
    timers = Timers[int]()
    for name, due in deadlines.items():
        timers.start(name, due)
    out = timers.due(now)
    assert set(out) == {name for name, due in deadlines.items() if due <= now}
    assert [deadlines[name] for name in out] == sorted(deadlines[name] for name in out)
    left = [due for due in deadlines.values() if due > now]
    assert timers.next_wakeup() == min(left, default=None)


# -- deadlines by the thousand ----------------------------------------------------------------


def test_deadlines_run_out_in_their_order() -> None:
    deadlines = Deadlines[str]()
    assert (deadlines.next_wakeup(), deadlines.first(), list(deadlines.due(9.0))) == (
        None,
        None,
        [],
    )
    for key, at in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        deadlines.set(key, at)
    assert (deadlines.next_wakeup(), deadlines.first(), len(deadlines)) == (1.0, "a", 3)
    assert list(deadlines.due(2.0)) == ["a", "b"]
    assert list(deadlines.due(3.0)) == ["c"]
    assert (len(deadlines), deadlines._heap, deadlines._placed) == (0, [], {})


def test_a_deadline_is_put_off_brought_forward_and_stopped() -> None:
    deadlines = Deadlines[str]()
    deadlines.set("a", 1.0)
    deadlines.set("a", 5.0)
    assert deadlines.next_wakeup() == 5.0
    deadlines.set("a", 2.0)
    assert deadlines.next_wakeup() == 2.0
    deadlines.stop("a")
    assert deadlines.next_wakeup() is None
    deadlines.stop("a")
    deadlines.set("a", 3.0)
    assert list(deadlines.due(9.0)) == ["a"]


def test_those_not_taken_stay_due() -> None:
    deadlines = Deadlines[int]()
    for key in range(3):
        deadlines.set(key, 1.0)
    assert next(deadlines.due(1.0)) == 0
    assert list(deadlines.due(1.0)) == [1, 2]


@given(
    st.lists(
        st.tuples(st.sampled_from(("set", "stop", "due")), st.integers(0, 5), st.integers(0, 20))
    )
)
def test_deadlines_against_a_search(steps: list[tuple[str, int, int]]) -> None:
    deadlines, plain = Deadlines[int](), dict[int, int]()
    for what, key, at in steps:
        if what == "set":
            deadlines.set(key, at)
            plain[key] = at
        elif what == "stop":
            deadlines.stop(key)
            plain.pop(key, None)
        else:
            found = list(deadlines.due(at))
            assert sorted(found) == sorted(k for k, due in plain.items() if due <= at)
            times = [plain.pop(k) for k in found]
            assert times == sorted(times)
        assert deadlines.next_wakeup() == min(plain.values(), default=None)
        assert len(deadlines) == len(plain)


def test_a_million_events_do_not_search() -> None:
    """Ten thousand deadlines, one of them put off again and again: each time at most one place of
    the heap is moved."""
    deadlines = Deadlines[int]()
    for key in range(10_000):
        deadlines.set(key, 1e9 + key)
    before = deadlines.steps
    for now in range(1_000_000):
        deadlines.set(0, now + 0.5)
        if not now % 4:
            deadlines.next_wakeup()
    assert deadlines.steps - before <= 1_000_000
    assert len(deadlines._heap) <= 10_001
