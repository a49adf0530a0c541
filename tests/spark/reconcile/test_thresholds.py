"""`--allow`"""

import pytest

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.thresholds import holds, parse


def test_limits() -> None:
    assert parse(["missing=5", "duplicated=0.1%"]) == {"duplicated": "0.1%", "missing": "5"}
    assert holds(5, 10, "5")
    assert not holds(6, 10, "5")
    assert holds(1, 1000, "0.1%")
    assert not holds(2, 1000, "0.1%")
    assert holds(0, 0, None)
    assert not holds(1, 10**9, None)
    assert parse(["missing=1e30"]) == {"missing": "1e30"}
    assert holds(10**12, 10**12, "1e30")


@pytest.mark.parametrize("limit", ["", "many", "0.5", "nan", "inf%", "-1"])
def test_what_is_no_limit_lets_none_pass(limit: str) -> None:
    """A report that somebody wrote may have it; `words.allowed` asks the same."""
    assert holds(0, 10, limit)
    assert not holds(1, 10, limit)


@pytest.mark.parametrize(
    "text", ["missing", "missing=", "missing=-1", "missing=0.5", "missing=nan%", "expired=1", "=1"]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--allow"):
        parse([text])
