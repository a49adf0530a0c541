from __future__ import annotations

from enum import Enum, auto

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.protocol.timers import Timers


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
