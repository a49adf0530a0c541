"""The two patterns of the mapping language: wildcards in queue names, placeholders in topics.

Which mapping takes a queue: the one with its exact name; else, of the patterns that match, the one
with the most literal characters; else, among equals, the one that stands first (files in the order
of their names). `*` is any run of characters, `?` is one; case does not count; neither reaches
over `private$\\`, so `*` means public queues and `private$\\*` private ones.

A topic that is made from what a sender wrote is always one that Kafka takes: see `fill_topic`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Final, Generic, TypeVar

PRIVATE: Final = "private$\\"
MAX_TOPIC: Final = 249
_KEPT: Final = 1024  # characters of names whose topic is remembered
QUEUE: Final = "{queue}"
LABEL: Final = "{label}"
SOURCE: Final = "{source}"
PLACEHOLDERS: Final = (QUEUE, LABEL, SOURCE)
NO_LABEL: Final = "no-label"

_HASH_DIGITS: Final = 12
_WILDCARDS: Final = {"*": ".*", "?": "."}
_NOT_IN_TOPIC: Final = re.compile(r"[^A-Za-z0-9._-]")
_TOPIC: Final = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_TOPIC}}}")
_PLACEHOLDER: Final = re.compile("|".join(map(re.escape, PLACEHOLDERS)))

T = TypeVar("T")


def has_wildcard(path: str) -> bool:
    return "*" in path or "?" in path


def literals(pattern: str) -> int:
    """How many characters a pattern spells out; `private$\\` is in all or none, so it may count."""
    return len(pattern) - pattern.count("*") - pattern.count("?")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Of a path name in lower case."""
    runs = re.sub(r"\*+", "*", pattern.lower())
    return re.compile("".join(_WILDCARDS.get(c) or re.escape(c) for c in runs), re.DOTALL)


class PatternTable(Generic[T]):
    """Patterns in the order in which they are asked."""

    def __init__(self, patterns: Iterable[tuple[str, T]]) -> None:
        ranked = sorted(patterns, key=lambda pair: -literals(pair[0]))  # stable: first stays first
        self._rows = [(_is_private(text), compile_pattern(text), item) for text, item in ranked]

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __iter__(self) -> Iterator[T]:
        return (item for _, _, item in self._rows)

    def find(self, path: str) -> T | None:
        """For a path name in lower case."""
        private = _is_private(path)
        for is_private, pattern, item in self._rows:
            if is_private == private and pattern.fullmatch(path):
                return item
        return None


def _is_private(path: str) -> bool:
    return path.startswith(PRIVATE)


def is_legal_topic(text: str) -> bool:
    return _TOPIC.fullmatch(text) is not None and text not in (".", "..")


def depends_on_message(template: str) -> bool:
    return LABEL in template or SOURCE in template


def fill_plainly(template: str, queue: str) -> str:
    """`{queue}` filled with a name that the mapping spells out; the result may be illegal."""
    return template.replace(QUEUE, _NOT_IN_TOPIC.sub("-", queue))


def fill_topic(template: str, queue: str, label: str = "", source: str = "") -> str:
    """A legal topic, whatever the sender wrote.

    - a character that Kafka refuses becomes a hyphen, an empty label `no-label`;
    - what is longer than 249 is cut and ends in a hash of the whole, so two never become one;
    - `.` and `..` become hyphens, and so does an underscore in front that the mapping did not
      write: such topics belong to Kafka (`__consumer_offsets`) and to the bridge.
    """
    is_short = len(queue) + len(label) <= _KEPT  # they come from peers
    return (_known_topic if is_short else _fill_topic)(template, queue, label, source)


def _fill_topic(template: str, queue: str, label: str, source: str) -> str:
    values = {QUEUE: queue, LABEL: label or NO_LABEL, SOURCE: source}
    whole = _PLACEHOLDER.sub(lambda found: values[found[0]], template)
    name = _NOT_IN_TOPIC.sub("-", whole)
    if len(name) > MAX_TOPIC:
        digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
        name = f"{name[: MAX_TOPIC - _HASH_DIGITS - 1]}-{digest}"
    if name in (".", ".."):
        return "-" * len(name)
    if name.startswith("_") and not template.startswith("_"):
        return "-" + name[1:]
    return name


_known_topic: Final = lru_cache(maxsize=10_000)(_fill_topic)
