"""One page of a long list: searched, sorted and cut, so that nobody sends ten thousand rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, TypeVar

from msgspec import Struct

from bridge.model.errors import ConfigError

MAX_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50
MAX_OFFSET: Final = 100_000_000
MAX_SEARCH: Final = 200

Item = TypeVar("Item")
Row = dict[str, Any]


class Question(Struct, frozen=True, kw_only=True):
    """`search`: words that must all be in a row's text; `sort`: the name of a column."""

    offset: int = 0
    limit: int = DEFAULT_LIMIT
    search: str = ""
    sort: str = ""
    descending: bool = False

    @property
    def is_plain(self) -> bool:
        """As the list stands: nothing but the rows of the page need be looked at."""
        return not self.search.strip() and not self.sort


class Page(Struct, frozen=True, kw_only=True):
    """`found` of `total` fit the search; `rows` are those from `offset` on."""

    rows: list[Row]
    offset: int
    found: int
    total: int


class Columns(Struct, frozen=True):
    """How a list is read: the text that is searched, what it is sorted by, a row of it."""

    text: Callable[[Any], str]
    keys: Mapping[str, Callable[[Any], Any]]
    row: Callable[[Any], Row]


def page_of(items: Sequence[Item], question: Question, columns: Columns) -> Page:
    """Raises ConfigError if there is no such column."""
    found = _sorted(_found(items, question.search, columns), question, columns)
    rows = [columns.row(item) for item in islice(found, *_span(question))]
    return Page(rows=rows, offset=question.offset, found=len(found), total=len(items))


def _span(question: Question) -> tuple[int, int]:
    return question.offset, question.offset + question.limit


def _found(items: Sequence[Item], search: str, columns: Columns) -> Sequence[Item]:
    words = search.lower().split()
    if not words:
        return items
    return [item for item in items if _fits(columns.text(item).lower(), words)]


def _fits(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def _sorted(items: Sequence[Item], question: Question, columns: Columns) -> Sequence[Item]:
    if not question.sort:
        return items
    key = columns.keys.get(question.sort)
    if key is None:
        mend = f"sort by {', '.join(columns.keys)}"
        raise ConfigError(f"there is no column {question.sort[:80]!r}", where="sort", mend=mend)
    keyed = [(key(item), item) for item in items]
    there = [pair for pair in keyed if pair[0] is not None]
    there.sort(key=itemgetter(0), reverse=question.descending)
    nothing = [item for value, item in keyed if value is None]  # comes last, either way
    return [item for _, item in there] + nothing
