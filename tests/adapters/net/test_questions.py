"""The query of a request: known names, once, within bounds."""

import pytest
from aiohttp.test_utils import make_mocked_request

from bridge.adapters.net.questions import flag, number, only
from bridge.model.errors import ConfigError


def test_known_names() -> None:
    asked = only(make_mocked_request("GET", "/a?limit=3&search=x%20y"), "limit", "search")
    assert asked == {"limit": "3", "search": "x y"}
    assert only(make_mocked_request("GET", "/a")) == {}


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("?other=1", "unknown parameter 'other'; ask with limit"),
        ("?limit=1&limit=2", "a parameter is there twice"),
    ],
)
def test_other_names(query: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        only(make_mocked_request("GET", f"/a{query}"), "limit")


@pytest.mark.parametrize("text", ["", "0", "201", "-1", "1.0", "1" * 21, "\u0663", " 1"])
def test_numbers_have_bounds(text: str) -> None:
    with pytest.raises(ConfigError, match="limit: is a number from 1 to 200"):
        number({"limit": text}, "limit", 50, least=1, most=200)


def test_numbers() -> None:
    assert number({"limit": "200"}, "limit", 50, least=1, most=200) == 200
    assert number({}, "limit", 50, least=1, most=200) == 50


def test_flags() -> None:
    assert flag(make_mocked_request("POST", "/a?force=1"), "force") is True
    assert flag(make_mocked_request("POST", "/a"), "force") is False
    with pytest.raises(ConfigError, match="force is 0 or 1"):
        flag(make_mocked_request("POST", "/a?force=yes"), "force")
