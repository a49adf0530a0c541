"""What is written on the line of `backfill`, checked; a wrong option is a ConfigError."""

from __future__ import annotations

from datetime import UTC, datetime

from bridge.model.classes import MessageClass
from bridge.model.errors import ConfigError


def rate_of(rate: float) -> float:
    if not 0 <= rate < float("inf"):
        raise ConfigError(f"{rate:g} is no rate", where="--rate", mend="write 0 or more")
    return rate


def class_of(text: str) -> int:
    """`NACK_RECEIVE_TIMEOUT`, `normal`, `0xC002` or `49154`."""
    name = text.upper().replace("-", "_").removeprefix("MQMSG_CLASS_")
    if name in MessageClass.__members__:
        return int(MessageClass[name])
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFFFF:
        mend = "write a name like NACK_RECEIVE_TIMEOUT, or a number like 0xC002"
        raise ConfigError(f"{text!r} is no message class", where="--class", mend=mend)
    return number


def moment_of(option: str, text: str) -> str:
    """The same moment, in UTC; a time without an offset is UTC."""
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        mend = "write one like 2026-01-31T12:00:00Z"
        raise ConfigError(f"{text!r} is no time", where=option, mend=mend) from error
    return moment.isoformat()


def span_of(since: str, until: str) -> tuple[str, str]:
    """`--from` and `--to`, in UTC."""
    since, until = moment_of("--from", since), moment_of("--to", until)
    if since and until and since >= until:
        raise ConfigError("is not behind --from", where="--to", mend="nothing lies between them")
    return since, until
