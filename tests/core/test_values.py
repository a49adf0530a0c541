"""`value: body | text | json | envelope`: design 3.3, 3.6."""

import base64
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.mapping import headers_of
from bridge.core.values import value_of
from bridge.model.message import Message, Transaction
from tests.core.messages import NOW, ORDERS, OTHER, SENDER, messages, plain, step

QUEUE = "private$\\orders"


def value(message: Message, kind: str) -> tuple[bytes, str]:
    return value_of(message, kind, QUEUE, headers_of(message))


@pytest.mark.parametrize(
    ("body", "body_type", "text", "as_json"),
    [
        (b"<?xml version='1.0'?><string>hi</string>", 0, b"hi", b'"hi"'),
        (b"<int>5</int>", 0, b"5", b"5"),
        (b"<Order><Id>7</Id></Order>", 0, b"<Order><Id>7</Id></Order>", b'{"Order":{"Id":"7"}}'),
        (b"\xff\xfeh\0i\0", 0, b"hi", b'"hi"'),
        ("Größe".encode("utf-16-le"), 8, "Größe".encode(), '"Größe"'.encode()),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", 20, b"9223372036854775807", b"9223372036854775807"),
        (b"\x08\xe2\x01\0\0\0\0\0", 6, b"12.34", b'"12.34"'),
        (b"\xff\xff", 11, b"true", b"true"),
        (b"", 0, b"", b"null"),
        # JSON goes through to the letter
        (b'{"a": 1.10, "a": 1e2}', 0, b'{"a": 1.10, "a": 1e2}', b'{"a": 1.10, "a": 1e2}'),
    ],
)
def test_what_a_body_says(body: bytes, body_type: int, text: bytes, as_json: bytes) -> None:
    message = plain(body=body, body_type=body_type)
    assert value(message, "body") == (body, "")
    assert value(message, "text") == (text, "")
    assert value(message, "json") == (as_json, "")


@pytest.mark.parametrize(
    ("body", "body_type", "text_why", "json_why"),
    [
        (b"\0\x01\x02", 0, "not-text", "not-text"),
        (b"x", 768, "binary-formatter", "binary-formatter"),
        (b"x", 69, "com-object", "com-object"),
        (b"x", 0xBEEF, "unknown-body-type-0xbeef", "unknown-body-type-0xbeef"),
        (b"<?xml version='1.0'?><a>", 0, "", "xml-malformed"),
        (b'{"a":', 0, "", "json-malformed"),
    ],
)
def test_what_cannot_be_read_goes_through(
    body: bytes, body_type: int, text_why: str, json_why: str
) -> None:
    message = plain(body=body, body_type=body_type)
    assert value(message, "text") == (body, text_why)
    assert value(message, "json") == (body, json_why)


def test_a_body_that_is_not_in_the_clear() -> None:
    message = plain(body=b"<int>5</int>", encrypted=True)
    assert value(message, "json") == value(message, "text") == (b"<int>5</int>", "encrypted")
    assert "value" not in json.loads(value(message, "envelope")[0])


def test_the_envelope_of_a_plain_message() -> None:
    data, why = value(plain(body=b"hi"), "envelope")
    assert why == ""
    assert json.loads(data) == {
        "message_id": "11111111-2222-3333-4444-555555555555\\1",
        "queue": QUEUE,
        "source": "11111111-2222-3333-4444-555555555555",
        "label": "",
        "body": "aGk=",
        "body_type": 0,
        "class": 0,
        "priority": 3,
        "delivery": 0,
        "sent_time": "2023-11-14T22:13:20Z",
        "arrived_time": "2023-11-14T22:13:20.000Z",
        "correlation_id": None,
        "response_queue": None,
        "admin_queue": None,
        "extension": None,
        "app_specific": 0,
        "lookup_id": None,
        "tx_sequence_id": None,
        "tx_sequence_number": None,
        "transport": "binary",
        "headers": {"msmq.v": "1", "msmq.dest": "DIRECT=OS:bridge01\\private$\\plain"},
        "value": "hi",
    }


def test_the_envelope_of_a_full_message() -> None:
    message = step(
        3,
        label="Größe",
        body=b'{"id": 1.0}',
        correlation_id=SENDER + b"\x07\0\0\0",
        extension=b"\0\x01",
        response_queue="DIRECT=OS:a\\q",
        admin_queue="DIRECT=OS:a\\admin",
        app_specific=9,
        lookup_id=2**63,
        arrived_ms=NOW * 1000 + 7,
        certificate=b"\xff\0",
        wire=b"\xfe",
        trace_queue=OTHER,
        transaction=Transaction(sequence_id=2**64 - 1, number=3, previous=2, last=True),
    )
    data, _ = value(message, "envelope")
    found = json.loads(data)
    assert b'"value":{"id": 1.0}' in data  # to the letter
    assert base64.b64decode(found["correlation_id"]) == message.correlation_id
    assert found["extension"] == "AAE="
    assert (found["response_queue"], found["admin_queue"]) == (
        "DIRECT=OS:a\\q",
        "DIRECT=OS:a\\admin",
    )
    assert (found["app_specific"], found["lookup_id"]) == (9, 2**63)
    assert (found["tx_sequence_id"], found["tx_sequence_number"]) == (2**64 - 1, 3)
    assert found["arrived_time"] == "2023-11-14T22:13:20.007Z"
    assert found["label"] == "Größe"
    assert found["headers"] == {
        "msmq.v": "1",
        "msmq.dest": ORDERS,
        "msmq.cert": "/wA=",
        "msmq.wire": "/g==",
        "msmq.trace": str(OTHER),
        "msmq.tx.prev": "2",
        "msmq.tx.last": "1",
    }


def test_half_a_surrogate_pair_in_a_label() -> None:
    message = plain(label="a\ud800b", sender="\udfff", body=b'{"x": 1.50}')
    data, why = value(message, "envelope")
    found = json.loads(data)
    assert why == ""
    assert (found["label"], found["headers"]["msmq.sender"]) == ("a\ufffdb", "\ufffd")
    assert (found["body"], found["value"]) == ("eyJ4IjogMS41MH0=", {"x": 1.5})


def test_times_that_no_calendar_has() -> None:
    found = json.loads(value(plain(sent_time=0, arrived_ms=2**60), "envelope")[0])
    assert (found["sent_time"], found["arrived_time"]) == (None, None)


@given(messages, st.sampled_from(["body", "text", "json", "envelope"]))
def test_any_message_has_a_value(message: Message, kind: str) -> None:
    data, why = value(message, kind)
    if why or kind == "body":
        assert data == message.body
    elif kind == "text":
        data.decode()
    else:
        msgspec.json.decode(data)
    if kind == "envelope":
        assert base64.b64decode(json.loads(data)["body"]) == message.body
