"""A rate is kept, and time that was not used is not made up for."""

import pytest

from msmq_jobs.backfill.pace import Pace


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_rate() -> None:
    pace = Pace(0, Clock())
    assert pace.burst(1000) == 1000
    assert pace.rest_after(1000) == 0


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (10, 10), (5000, 1000)])
def test_a_burst_is_a_second(rate: float, burst: int) -> None:
    assert Pace(rate, Clock()).burst(1000) == burst


def test_the_rate_is_kept() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    start, sent = clock.now, 0
    for _ in range(100):
        rest = pace.rest_after(10)
        sent += 10
        clock.now += 0.25 + max(0.0, rest - 0.25)  # the writing takes time, too
    assert sent / (clock.now - start) == pytest.approx(10, rel=0.02)


def test_a_long_wait_is_no_credit() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    clock.now += 3600
    assert pace.rest_after(10) == 0
    assert pace.rest_after(10) == 1
