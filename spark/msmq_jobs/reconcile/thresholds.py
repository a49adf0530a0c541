"""How much of a fault a user lets pass: `missing=5`, `duplicated=0.1%`."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.rules import BREAKING


def parse(texts: Iterable[str]) -> dict[str, str]:
    """By verdict, as they were given. Raises ConfigError."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, limit = text.partition("=")
        if name not in BREAKING:
            mend = f"write one of {', '.join(BREAKING)}, like missing=5"
            raise ConfigError(f"{text!r} names no fault", where="--allow", mend=mend)
        if _number(limit) is None:
            mend = "write a count or a share, like missing=5 or duplicated=0.1%"
            raise ConfigError(f"{text!r} is no limit", where="--allow", mend=mend)
        found[name] = limit
    return dict(sorted(found.items()))


def holds(count: int, messages: int, limit: str | None) -> bool:
    """Whether so many of so many are let pass; exactly, without floating point. What is no limit
    lets none pass."""
    number = _number(limit or "0")
    if not count or number is None:
        return not count
    return count * 100 <= number * messages if (limit or "").endswith("%") else count <= number


def _number(limit: str) -> Decimal | None:
    try:
        number = Decimal(limit.removesuffix("%"))
    except InvalidOperation:
        return None
    if not number.is_finite() or number < 0:
        return None
    return number if limit.endswith("%") or number == number.to_integral_value() else None
