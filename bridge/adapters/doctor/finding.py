"""What a check of `doctor` found, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct


class Result(StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but not as it should
    FAIL = "fail"
    SKIP = "skip"  # could not be looked at, or there is nothing to look at


class Finding(Struct, frozen=True, kw_only=True):
    """`id` is the check, `about` the one of several things it looked at."""

    id: str = ""
    about: str = ""
    result: Result
    found: str
    mend: str = ""
    commands: tuple[str, ...] = ()  # to be run as they are, by somebody who may


def ok(found: str, about: str = "", *, commands: Sequence[str] = ()) -> Finding:
    return Finding(result=Result.OK, found=found, about=about, commands=tuple(commands))


def warn(found: str, about: str = "", *, mend: str, commands: Sequence[str] = ()) -> Finding:
    return Finding(
        result=Result.WARN, found=found, about=about, mend=mend, commands=tuple(commands)
    )


def fail(found: str, about: str = "", *, mend: str, commands: Sequence[str] = ()) -> Finding:
    return Finding(
        result=Result.FAIL, found=found, about=about, mend=mend, commands=tuple(commands)
    )


def skip(found: str, about: str = "", *, mend: str = "") -> Finding:
    return Finding(result=Result.SKIP, found=found, about=about, mend=mend)
