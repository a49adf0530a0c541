"""JSON lines: every message goes there and comes back equal. DM-35"""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from bridge.adapters.exports.lines import data_in, line_of
from bridge.core.message_data import as_json, data_of, message_of
from bridge.model.errors import ConfigError
from bridge.model.message import Message
from tests.core.messages import messages, plain
from tests.core.test_message_data import from_the_wire

QUEUE = "private$\\orders"


@given(messages)
def test_there_and_back(message: Message) -> None:
    message = from_the_wire(message)
    data = data_of(message, QUEUE)
    line = line_of(data)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert data_in(line) == data
    assert message_of(data_in(line)) == message


def test_what_other_programs_read() -> None:
    data = data_of(plain(body=b"hi", label="ü"), QUEUE)
    assert json.loads(line_of(data)) == as_json(data)


def test_half_a_surrogate_pair() -> None:
    data = data_of(plain(label="a\ud800b"), QUEUE)
    assert rb"a\ud800b" in line_of(data)
    assert data_in(line_of(data)) == data


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"1", b"\xff", b"{}", b'{"message_id": 1}', b"[" * 100_000]
)
def test_what_is_no_message(line: bytes) -> None:
    with pytest.raises(ConfigError):
        data_in(line)
