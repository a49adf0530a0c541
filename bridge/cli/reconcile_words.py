"""What is written on the line of `reconcile`, checked; a wrong option is a ConfigError."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from bridge.cli.backfill_words import moment_of
from bridge.model.errors import ConfigError

_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST: Final = 10 * 365 * 86_400


def seconds_of(option: str, text: str) -> int:
    """`90`, `90s`, `5m`, `2h`, `1d`."""
    found = re.fullmatch(r"(\d{1,9})([smhd]?)", text.strip().lower())
    seconds = int(found[1]) * _UNITS[found[2]] if found else -1
    if not 0 <= seconds <= _LONGEST:
        mend = "write one like 90s, 5m or 2h"
        raise ConfigError(f"{text!r} is no length of time", where=option, mend=mend)
    return seconds


def milliseconds_of(option: str, text: str) -> int | None:
    """Since 1970; None without a text."""
    moment = moment_of(option, text)
    return round(datetime.fromisoformat(moment).timestamp() * 1000) if moment else None
