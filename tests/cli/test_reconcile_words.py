"""Lengths of time and moments on the line of `reconcile`."""

import pytest

from bridge.cli.reconcile_words import milliseconds_of, seconds_of
from bridge.model.errors import ConfigError


def test_lengths_of_time() -> None:
    texts = {"90": 90, "90s": 90, "5m": 300, "2h": 7200, "1d": 86_400, "0": 0, " 5M ": 300}
    assert {text: seconds_of("--in-flight", text) for text in texts} == texts


@pytest.mark.parametrize("text", ["", "m", "-1", "5 minutes", "1.5h", "999999999d"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="--in-flight"):
        seconds_of("--in-flight", text)


def test_moments() -> None:
    assert milliseconds_of("--from", "") is None
    assert milliseconds_of("--from", "1970-01-01T00:00:01.5Z") == 1500
    with pytest.raises(ConfigError, match="--to"):
        milliseconds_of("--to", "yesterday")
