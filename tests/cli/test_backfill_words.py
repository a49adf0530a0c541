"""Classes, times and rates as they are written on a line."""

import pytest

from bridge.cli.backfill_words import class_of, moment_of, rate_of
from bridge.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("normal", 0),
        ("NACK_RECEIVE_TIMEOUT", 0xC002),
        ("MQMSG_CLASS_NACK_BAD_DST_Q", 0x8000),
        ("0xC002", 0xC002),
        ("32770", 0x8002),
    ],
)
def test_classes(text: str, number: int) -> None:
    assert class_of(text) == number


@pytest.mark.parametrize("text", ["", "nack", "-1", "65536", "0x"])
def test_no_class(text: str) -> None:
    with pytest.raises(ConfigError, match="--class"):
        class_of(text)


def test_times_are_utc() -> None:
    assert moment_of("--from", "") == ""
    assert moment_of("--from", "2026-01-31T12:00:00") == "2026-01-31T12:00:00+00:00"
    assert moment_of("--from", "2026-01-31T12:00:00+02:00") == "2026-01-31T10:00:00+00:00"
    for text in ("yesterday", "0001-01-01T00:00:00+14:00"):
        with pytest.raises(ConfigError, match="--to"):
            moment_of("--to", text)


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_no_rate(rate: float) -> None:
    assert rate_of(0.5) == 0.5
    with pytest.raises(ConfigError, match="--rate"):
        rate_of(rate)
