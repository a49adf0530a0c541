"""One page of a long list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.paging import Columns, Page, Question, page_of
from bridge.model.errors import ConfigError

made: list[int] = []


def row(number: int) -> dict[str, object]:
    made.append(number)
    return {"number": number}


NUMBERS = Columns(lambda n: f"Number {n}", {"number": lambda n: n, "digits": str}, row)


def numbers(page: Page) -> list[object]:
    return [row["number"] for row in page.rows]


def test_as_it_stands() -> None:
    page = page_of(range(10), Question(offset=3, limit=4), NUMBERS)
    assert numbers(page) == [3, 4, 5, 6]
    assert (page.offset, page.found, page.total) == (3, 10, 10)
    assert Question(search="  ").is_plain
    assert not Question(sort="number").is_plain


def test_only_the_rows_of_the_page_are_made() -> None:
    made.clear()
    page_of(range(10_000), Question(limit=5, sort="number", descending=True), NUMBERS)
    assert made == [9999, 9998, 9997, 9996, 9995]


def test_every_word_of_a_search_must_be_there_in_any_case() -> None:
    page = page_of(range(200), Question(search="NUMBER  19 9"), NUMBERS)
    assert numbers(page) == [19, 119, *range(190, 200)]
    assert (page.found, page.total) == (12, 200)
    assert page_of(range(10), Question(search="x"), NUMBERS).rows == []


def test_sorted_by_a_column() -> None:
    asked = Question(sort="digits", limit=3)
    assert numbers(page_of(range(1, 12), asked, NUMBERS)) == [1, 10, 11]
    with pytest.raises(ConfigError, match=r"no column 'size'.*sort by number, digits"):
        page_of([], Question(sort="size"), NUMBERS)


def test_behind_the_end_there_is_nothing() -> None:
    page = page_of(range(3), Question(offset=100), NUMBERS)
    assert (page.rows, page.found) == ([], 3)


@given(st.lists(st.integers()), st.integers(1, 7))
def test_pages_together_are_the_list(items: list[int], limit: int) -> None:
    found: list[object] = []
    for offset in range(0, len(items), limit):
        asked = Question(offset=offset, limit=limit, sort="number")
        found += numbers(page_of(items, asked, NUMBERS))
    assert found == sorted(items)
