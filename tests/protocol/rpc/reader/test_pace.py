from __future__ import annotations

from bridge.protocol.rpc.reader.pace import BUDGET, Pace


def test_it_grows_to_the_window() -> None:
    pace, widths = Pace(50), []
    for _ in range(6):
        widths.append(pace.width)
        pace.saw([1024])
    assert widths == [4, 8, 16, 32, 50, 50]


def test_a_small_window() -> None:
    pace = Pace(1)
    pace.saw([])
    assert pace.width == 1


def test_what_is_large_comes_alone() -> None:
    pace = Pace(64)
    pace.saw([100, BUDGET // 3])
    assert pace.width == 3
    pace.saw([2 * BUDGET])  # a server may say anything
    assert pace.width == 1
    pace.saw([100])
    assert pace.width == 2
