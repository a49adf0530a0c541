"""How far a reader is behind: what the client knows of the ends, and what was read."""

from typing import Any

import pytest

from bridge.adapters.kafka import lag as module
from bridge.adapters.kafka.lag import Lag


class Source:
    """A consumer that has fetched this much."""

    def __init__(self, **ends: tuple[int, int] | None) -> None:
        self.ends, self.asked = ends, 0

    def get_watermark_offsets(self, at: Any, cached: bool) -> tuple[int, int] | None:
        assert cached  # nobody waits for a broker
        self.asked += 1
        return self.ends[at.topic]


class Seen:
    def __init__(self, offset: int, error: object = None) -> None:
        self._offset, self._error = offset, error

    def topic(self) -> str:
        return "a"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> object:
        return self._error


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)


def measured(lag: Lag, source: Source) -> int:
    return lag.measure(source)  # type: ignore[arg-type]


def saw(lag: Lag, message: Seen) -> None:
    lag.saw(message)  # type: ignore[arg-type]


def test_what_is_not_read_yet() -> None:
    lag = Lag({("a", 0): 0, ("b", 0): 5})
    source = Source(a=(0, 12), b=(0, 5))
    assert measured(lag, source) == 12
    saw(lag, Seen(9))
    assert measured(lag, source) == 2


def test_a_marker_behind_the_last_record_is_nothing_to_read() -> None:
    lag = Lag({("a", 0): 0})
    saw(lag, Seen(10))
    saw(lag, Seen(12, "the end of the partition"))
    assert measured(lag, Source(a=(0, 12))) == 0


def test_what_was_deleted_is_not_waited_for() -> None:
    assert measured(Lag({("a", 0): 0}), Source(a=(8, 12))) == 4


@pytest.mark.parametrize("ends", [None, (-1001, -1001)])
def test_an_end_that_is_not_known_yet(ends: tuple[int, int] | None) -> None:
    assert measured(Lag({("a", 0): 0}), Source(a=ends)) == 0


def test_the_client_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 1e9)
    lag, source = Lag({("a", 0): 0}), Source(a=(0, 3))
    lag._looked = -2e9
    assert [measured(lag, source) for _ in range(5)] == [3] * 5
    assert source.asked == 1


def test_more_partitions_later() -> None:
    lag = Lag({})
    lag.follow({("b", 0): 2})
    assert measured(lag, Source(b=(0, 3))) == 1
