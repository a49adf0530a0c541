"""A message is the same before and after it was a row, and what is none says why."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bridge.core.message_data import MessageData, as_json, data_of, message_of
from bridge.model.errors import ConfigError
from bridge.model.message import Message
from msmq_jobs.rows import data_of_row, fault_values, rows_of_lines, values_of
from msmq_jobs.schemas import READ
from tests.core.messages import messages
from tests.spark.letters import ORDERS, letter


def as_row(values: tuple[object, ...]) -> dict[str, object]:
    return dict(zip(READ.fieldNames(), values, strict=True))


def whole(message: Message) -> MessageData:
    """Two halves of a pair side by side are the pair, but not for Python: not as it reads texts."""
    data = data_of(message, ORDERS)
    assume(json.loads(json.dumps(as_json(data))) == as_json(data))
    return data


@given(messages)
def test_there_and_back(message: Message) -> None:  # DM-35
    data = whole(message)
    row = as_row(values_of(data, "here"))
    assert (row["origin"], row["fault"]) == ("here", None)
    assert message_of(data_of_row(row)) == message_of(data)


@given(messages)
def test_a_line_is_the_same_row(message: Message) -> None:  # design 3.6
    data = whole(message)
    line = json.dumps(as_json(data)).encode()
    assert list(rows_of_lines([line, b" \n"], "here")) == [values_of(data, "here")]


def test_half_a_surrogate_pair_is_kept() -> None:
    data = letter(1, label="a\ud800b")
    row = as_row(values_of(data, "x"))
    assert str(row["label"]).encode() == "a\ufffdb".encode()  # what a column can hold
    assert data_of_row(row).label == "a\ud800b"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"message_id": "half', "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        ('{"message_id": "x"}'.encode("utf-16"), "is no UTF-8, perhaps UTF-16"),
        ('{"message_id": "x"}'.encode("utf-16-le"), "write the export as UTF-8"),
        (b'{"message_id": "x", "queue": "q", "lookup_id": 18446744073709551616}', "64 bits"),
        (b'{"message_id": "x", "queue": "q", "tx_sequence_id": %d}' % 2**70, "64 bits"),
        (b"[1]", "is no JSON object"),
        (b"{}", "message_id"),
        (b'{"message_id": "x", "queue": 1}', "queue"),
        (b'{"message_id": "x", "queue": "q", "body": "*"}', "body"),
        (b"[" * 200_000, "is no JSON"),
        (b'{"lookup_id": ' + b"9" * 5000 + b"}", "is no JSON"),
    ],
)
def test_what_is_no_message_says_why(line: bytes, why: str) -> None:
    (values,) = rows_of_lines([line], "here")
    row = as_row(values)
    assert why in str(row["fault"])
    assert len(str(row["fault"])) <= 400
    assert row["message_id"] is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_row(line: bytes) -> None:
    assert all(len(row) == len(READ) for row in rows_of_lines([line], "here"))


def test_a_row_that_is_no_message() -> None:
    row = as_row(values_of(letter(1), "x")) | {"priority": 9}
    with pytest.raises(ConfigError, match="priority"):
        data_of_row(row)
    row = as_row(values_of(letter(1), "x")) | {"headers": {"exact.label": "no JSON"}}
    with pytest.raises(ConfigError, match="headers"):
        data_of_row(row)


def test_a_fault_is_one_line() -> None:
    assert as_row(fault_values("two\nlines", "x"))["fault"] == "two lines"
    assert isinstance(letter(1), MessageData)
