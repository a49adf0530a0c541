"""`key: json:$.order.id`: one value out of a JSON value.

A small part of JSONPath (RFC 9535): `$`, then any of `.name`, `[0]`, `[-1]`, `['any name']`. No
wildcard, slice or filter: a key is one value. XML bodies are reached by the names of `xml_value`:
`$.Order.Id`, `$.Order['@version']`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from bridge.model.errors import ConfigError

MAX_PATH: Final = 1000  # characters

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s*?()$]+)"""
    r"""|\[(?P<index>-?[0-9]{1,9})\]"""
    r"""|\['(?P<single>[^']+)'\]"""
    r"""|\["(?P<double>[^"]+)"\]"""
)
_MEND: Final = "write it like $.order.id, $.lines[0] or $['order id']"


class JsonPath(msgspec.Struct, frozen=True, gc=False):
    """A path that has been read once."""

    text: str
    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Raises ConfigError."""
        return _parse(text)

    def find(self, value: Any) -> Any:
        """What lies there; None for nothing and for null."""
        for step in self.steps:
            if isinstance(step, str):
                if not isinstance(value, dict) or step not in value:
                    return None
            elif not isinstance(value, list) or not -len(value) <= step < len(value):
                return None
            value = value[step]
        return value


@lru_cache(maxsize=1024)
def _parse(text: str) -> JsonPath:
    if len(text) > MAX_PATH:
        raise ConfigError(f"is longer than {MAX_PATH} characters", mend=_MEND)
    if not text.startswith("$"):
        raise ConfigError("does not begin with $", mend=_MEND)
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ConfigError(f"cannot be read from {text[at : at + 20]!r} on", mend=_MEND)
        steps.append(_step(match))
        at = match.end()
    return JsonPath(text, tuple(steps))


def _step(match: re.Match[str]) -> str | int:
    if match["index"]:
        return int(match["index"])
    name: str = match["name"] or match["single"] or match["double"]
    return name


def json_path(value: Any, path: JsonPath | str) -> bytes | None:
    """The key that lies at `path` of a value, or of JSON if it is bytes.

    A string is its UTF-8, anything else its JSON; None if there is nothing, or null.
    Raises ConfigError only if `path` is a text that is no path.
    """
    if isinstance(path, str):
        path = JsonPath.parse(path)
    try:
        if isinstance(value, bytes):
            value = msgspec.json.decode(value)
        found = path.find(value)
        if found is None:
            return None
        return found.encode() if isinstance(found, str) else msgspec.json.encode(found)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
