import math

import pytest

from tests.bench.figures import micros, percentile, ratio


def test_percentile_is_a_value_that_was_measured() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert [percentile(hundred, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([1.0, 2.0, 3.0], 0.5) == 2.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_ratio_and_micros() -> None:
    assert ratio(3, 4) == 0.75
    assert ratio(3, 0) == math.inf
    assert micros(0.5, 1000) == 500.0
