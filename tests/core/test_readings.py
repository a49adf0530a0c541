"""What is read of a body beforehand is what the mapper would read."""

from __future__ import annotations

import pytest

from bridge.core import body, readings
from bridge.core.body import MAX_VALUES
from bridge.core.mapping_rules import Key, QueueSettings
from bridge.core.readings import Reading, read, read_all, reads_body, wanted_of
from tests.core.messages import plain

ORDER = b"<Order><Id>7</Id></Order>"


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ("text", "", Reading(text=ORDER)),
        ("json", "", Reading(json=b'{"Order":{"Id":"7"}}')),
        ("envelope", "$.Order.Id", Reading(json=b'{"Order":{"Id":"7"}}', key=b"7")),
        ("body", "$.Order.Id", Reading(key=b"7")),
        ("body", "$.Order.Other", Reading()),
    ],
)
def test_what_the_mapping_asks_for(value: str, path: str, expected: Reading) -> None:
    wanted = wanted_of(plain(body=ORDER), value, path)
    assert wanted is not None
    assert read(wanted) == expected
    assert read_all([wanted, wanted]) == {wanted: expected}


def test_why_it_cannot_be_read() -> None:
    assert read((b"\xff\x01", 0, "json", "$.a")) == Reading(why="not-text")


def test_nothing_to_read() -> None:
    assert wanted_of(plain(body=ORDER), "body", "") is None
    assert wanted_of(plain(body=ORDER, encrypted=True), "json", "$.a") is None
    assert not reads_body(QueueSettings())
    assert reads_body(QueueSettings(value="json"))
    assert reads_body(QueueSettings(key=Key("json:$.a")))


def test_a_body_that_raises_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = body.decode

    def broken(data: bytes, body_type: int) -> object:
        if data == b"poison":
            raise ZeroDivisionError
        return decode(data, body_type)

    monkeypatch.setattr(readings, "decode", broken)
    good = (ORDER, 0, "json", "")
    assert list(read_all([(b"poison", 0, "json", ""), good])) == [good]


@pytest.mark.parametrize("piece", [b"[],", b"{},", b"1,", b'"a",'])
def test_json_with_very_many_values_goes_through_without_a_key(piece: bytes) -> None:
    """Building it would hold the interpreter; checking it does not."""
    content = b"[" + piece * (MAX_VALUES + 1) + b"0]"
    assert read((content, 0, "json", "$[0]")) == Reading(json=content)
    assert read((content[:-1], 0, "json", "$[0]")) == Reading(
        json=read((content[:-1], 0, "json", "")).json
    )
    few = b"[" + piece * 10 + b"0]"
    assert read((few, 0, "json", "$[10]")) == Reading(json=few, key=b"0")
