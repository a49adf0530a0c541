"""The query of a request to the admin port: known names, each once, numbers with bounds."""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web

from bridge.model.errors import ConfigError

_NUMBER: Final = re.compile("[0-9]{1,20}")


def only(request: web.Request, *known: str) -> dict[str, str]:
    """The query; ConfigError if it has another name, or one twice."""
    asked = request.query
    for name in asked:
        if name not in known:
            names = f"ask with {', '.join(known)}" if known else "it takes none"
            raise ConfigError(f"unknown parameter {name[:80]!r}", mend=names)
    if len(set(asked)) != len(asked):
        raise ConfigError("a parameter is there twice", mend="keep one")
    return dict(asked)


def number(asked: dict[str, str], name: str, default: int, *, least: int, most: int) -> int:
    text = asked.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise ConfigError(f"is a number from {least} to {most}", where=name)
    return int(text)


def flag(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "0")
    if text not in ("0", "1"):
        raise ConfigError(f"{name} is 0 or 1")
    return text == "1"
