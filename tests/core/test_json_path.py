"""A key out of a JSON value: the part of RFC 9535 that names one value."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.json_path import JsonPath, json_path
from bridge.model.errors import ConfigError

BOOK = {
    "order": {"id": 42, "lines": [{"sku": "a"}, {"sku": "b"}], "unit price": 1.5},
    "Order": {"@version": "2", "#text": "t"},
    "paid": True,
    "note": None,
    "empty": "",
    "größe": "M",
}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("$.order.id", b"42"),
        ("$.order.lines[0].sku", b"a"),
        ("$.order.lines[-1]['sku']", b"b"),
        ('$["order"]["unit price"]', b"1.5"),
        ("$.Order['@version']", b"2"),
        ("$.Order.@version", b"2"),
        ("$.Order['#text']", b"t"),
        ("$.paid", b"true"),
        ("$.empty", b""),
        ("$.größe", b"M"),
        ("$.order.lines[1]", b'{"sku":"b"}'),
        ("$.note", None),
        ("$.order.lines[2]", None),
        ("$.order.lines[-3]", None),
        ("$.order.lines.sku", None),
        ("$.order[0]", None),
        ("$.order.id.more", None),
        ("$.missing.id", None),
    ],
)
def test_one_value(path: str, key: bytes | None) -> None:
    assert json_path(BOOK, path) == key
    assert json_path(BOOK, JsonPath.parse(path)) == key


def test_json_is_read_first() -> None:
    assert json_path(b'{"id": 123456789012345678901234567890}', "$.id") == (
        b"123456789012345678901234567890"  # no digit is lost: two ids never become one key
    )
    assert json_path(b'"text"', "$") == b"text"
    for broken in (b"", b"{", b"\xff", b"[" * 100_000, b"1e999"):
        assert json_path(broken, "$") is None
    assert json_path({"a": "\ud800"}, "$.a") is None


@pytest.mark.parametrize(
    "path",
    [
        *[
            "",
            "order",
            "$order",
            "$.",
            "$..id",
            "$.*",
            "$[*]",
            "$[0",
            "$[1:2]",
            "$[?(@.a)]",
            "$['a]",
        ],
        *["$.a b", "$['']", "$[12345678901]", "$.a.", "$.a'b", "$" + ".a" * 500],
    ],
)
def test_a_bad_path_says_how_to_mend_it(path: str) -> None:
    with pytest.raises(ConfigError) as error:
        JsonPath.parse(path)
    assert error.value.mend.startswith("write it like $.order.id")
    assert "\n" not in str(error.value)


def test_a_path_is_read_once() -> None:
    assert JsonPath.parse("$.a.b[0]") is JsonPath.parse("$.a.b[0]")
    assert JsonPath.parse("$.a.b[0]").steps == ("a", "b", 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text("$.[]'\"a0-*@", max_size=20).map("$".__add__))
def test_any_path_is_read_or_refused(value: Any, path: str) -> None:
    try:
        parsed = JsonPath.parse(path)
    except ConfigError:
        return
    found = json_path(value, parsed)
    assert found is None or isinstance(found, bytes)


@given(st.binary(max_size=60))
def test_any_bytes_have_a_key_or_none(data: bytes) -> None:
    assert isinstance(json_path(data, "$"), bytes | None)
