r"""A message as data and back: design 3.6, data-model.md section 4, DM-35."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from bridge.core.mapping import headers_of
from bridge.core.mapping_headers import HEADERS
from bridge.core.message_data import MessageData, as_json, data_of, message_of, read_data
from bridge.core.values import value_of
from bridge.model.errors import BridgeError, ConfigError
from bridge.model.guid import NULL_GUID
from bridge.model.message import Message, Srmp, Transaction
from tests.core.messages import LOCAL, NOW, ORDERS, OTHER, SENDER, messages, plain, step

QUEUE = "private$\\orders"
LAST_MS = 253_402_300_799_999  # of the year 9999
DESIGN = [  # 3.6, in its order
    *("message_id", "queue", "source", "label", "body", "body_type", "class", "priority"),
    *("delivery", "sent_time", "arrived_time", "correlation_id", "response_queue", "admin_queue"),
    *("extension", "app_specific", "lookup_id", "tx_sequence_id", "tx_sequence_number"),
    *("transport", "headers"),
]


def json_of(message: Message) -> dict[str, Any]:
    return as_json(data_of(message, QUEUE))


def back(values: dict[str, Any]) -> Message:
    return message_of(read_data(values))


# -- to data ----------------------------------------------------------------------------------


def test_the_names_are_those_of_the_design() -> None:
    assert list(json_of(plain())) == DESIGN


def test_a_plain_message() -> None:
    assert json_of(plain(body=b"hi")) == {
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
    }


def test_bytes_are_base64_and_the_rest_is_text() -> None:
    """In `headers` whatever is `b` in the table is base64; u, d, g, o and 1 are as they are."""
    message = step(
        3,
        label="Größe",
        body=b"\xff\0",
        correlation_id=SENDER + b"\x07\0\0\0",
        extension=b"\0\x01",
        response_queue="DIRECT=OS:a\\q",
        admin_queue="DIRECT=OS:a\\admin",
        app_specific=9,
        lookup_id=2**63,
        arrived_ms=NOW * 1000 + 7,
        certificate=b"\xff\0",
        signature=b"\x01",
        wire=b"\xfe",
        soap="<se:Envelope/>",
        soap_compound=b"POST\xff",
        time_to_be_received=60,
        trace_queue=OTHER,
        destination_qm=LOCAL,
        transaction=Transaction(
            sequence_id=2**64 - 1, number=3, previous=2, index=5, last=True, connector_qm=OTHER
        ),
    )
    found = json_of(message)
    assert base64.b64decode(found["body"]) == message.body
    assert base64.b64decode(found["correlation_id"]) == message.correlation_id
    assert found["extension"] == "AAE="
    assert (found["app_specific"], found["lookup_id"]) == (9, 2**63)
    assert (found["tx_sequence_id"], found["tx_sequence_number"]) == (2**64 - 1, 3)
    assert found["arrived_time"] == "2023-11-14T22:13:20.007Z"
    assert found["label"] == "Größe"
    assert found["headers"] == {
        "msmq.v": "1",
        "msmq.dest": ORDERS,
        "msmq.dest.qm": "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
        "msmq.cert": "/wA=",
        "msmq.signature": "AQ==",
        "msmq.wire": "/g==",
        "msmq.soap": "<se:Envelope/>",
        "msmq.soap.compound": "UE9TVP8=",
        "msmq.ttbr": "60",
        "msmq.expires": "1700000060000",
        "msmq.trace": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
        "msmq.tx.prev": "2",
        "msmq.tx.id": "11111111-2222-3333-4444-555555555555\\5",
        "msmq.tx.last": "1",
        "msmq.connector.qm": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    }


@given(messages)
def test_it_is_what_a_record_with_value_envelope_has(message: Message) -> None:
    """Two names for one thing would be a trap. (An envelope has U+FFFD for half a pair.)"""
    envelope = json.loads(value_of(message, "envelope", QUEUE, headers_of(message))[0])
    envelope.pop("value", None)
    assert set(envelope) == set(json_of(message))
    assert set(envelope["headers"]) == set(json_of(message)["headers"])


@pytest.mark.parametrize("told", [None, "1700000060000", "5"])
def test_when_it_expires_follows_from_other_properties(told: str | None) -> None:
    """Exports of earlier builds do not have it, and one that says something else is not believed:
    the record has what `msmq.sent` and `msmq.ttbr` say, once."""
    message = plain(time_to_be_received=60)
    data = data_of(message, QUEUE)
    headers = {name: text for name, text in data.headers.items() if name != "msmq.expires"}
    if told is not None:
        headers["msmq.expires"] = told
    again = message_of(replace(data, headers=headers))
    assert again == message
    assert headers_of(again)["msmq.expires"] == b"1700000060000"


def test_headers_that_somebody_has_made_are_not_made_again() -> None:
    data = data_of(plain(), QUEUE, {"msmq.id": b"x", "msmq.hops": b"3"})
    assert data.headers == {"msmq.hops": "3"}


def test_times_that_no_calendar_has() -> None:
    found = json_of(plain(sent_time=0, arrived_ms=LAST_MS + 1))
    assert (found["sent_time"], found["arrived_time"]) == (None, None)
    assert json_of(plain(arrived_ms=LAST_MS))["arrived_time"] == "9999-12-31T23:59:59.999Z"


# -- there and back ---------------------------------------------------------------------------


def from_the_wire(message: Message) -> Message:
    """Texts are UTF-16 there: two halves that meet are a whole. And times are in a calendar."""
    codec, passing = "utf-16-le", "surrogatepass"
    fields = asdict(message)
    texts = {
        name: text.encode(codec, passing).decode(codec, passing)
        for name, text in fields.items()
        if isinstance(text, str)
    }
    return replace(message, **texts, arrived_ms=message.arrived_ms % (LAST_MS + 1))


@given(messages.map(from_the_wire), st.booleans())
def test_there_and_back(message: Message, through_json: bool) -> None:  # DM-35
    data = data_of(message, QUEUE)
    if through_json:  # an export as JSON lines, half surrogate pairs and all
        line = json.dumps(as_json(data))
        assert line.isascii()
        data = read_data(json.loads(line))
    assert data.queue == QUEUE
    assert message_of(data) == message


@given(messages)
def test_rows_have_bytes(message: Message) -> None:
    """Parquet knows bytes: no base64 there but in `headers`."""
    data = data_of(message, QUEUE)
    row = {name: getattr(data, name) for name in MessageData.__struct_fields__}
    row["class"] = row.pop("message_class")
    assert read_data(row) == data


def test_what_only_the_receiver_needed_is_gone() -> None:
    asked = Srmp(to="http://a/msmq/q", commitment_to="http://b", first=True)
    message = plain(soap="<e/>", srmp=asked)
    assert message_of(data_of(message, QUEUE)) == replace(message, srmp=None)


# -- from data --------------------------------------------------------------------------------


def test_little_is_needed() -> None:
    message = back({"message_id": f"{SENDER}\\7", "queue": QUEUE})
    assert message == Message(source=SENDER, ordinal=7, destination=f"DIRECT=OS:.\\{QUEUE}")


def test_more_is_no_harm() -> None:
    values = json_of(plain()) | {"locked": True, "site": "Ulm"}
    values["headers"] |= {"msmq.sub.moves": "1", "title": "x", "msmq.label": "not this one"}
    assert back(values) == plain()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T22:13:20.999Z", NOW),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14 23:13:20+01:00", NOW),
        ("2106-02-07T06:28:15Z", 0xFFFFFFFF),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_times_as_people_write_them(text: str, seconds: int) -> None:
    assert back(json_of(plain()) | {"sent_time": text}).sent_time == seconds


def test_an_id_in_capitals_is_the_same() -> None:
    values = {"message_id": f"{str(OTHER).upper()}\\007", "queue": "q", "source": str(OTHER)}
    assert back(values).id == f"{OTHER}\\7"


def test_the_null_guid_is_a_source() -> None:  # SRMP without <Msmq>: NULL GUID, 1
    assert back({"message_id": f"{NULL_GUID}\\1", "queue": "q"}).source == NULL_GUID


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("message_id", 5, "message_id"),
        ("message_id", "x\\1", "message_id"),
        ("message_id", str(SENDER), "message_id"),
        ("message_id", f"{SENDER}\\4294967296", "message_id"),
        ("message_id", f"{SENDER}\\-1", "message_id"),
        ("message_id", f"{SENDER}\\\N{ARABIC-INDIC DIGIT ONE}", "message_id"),
        ("source", str(OTHER), "source"),
        ("source", "here", "source"),
        ("queue", None, "queue"),
        ("label", 7, "label"),
        ("body", "no base64", "body"),
        ("body", None, "body"),
        ("body_type", -1, "body_type"),
        ("body_type", 2**32, "body_type"),
        ("class", 0x10000, "class"),
        ("priority", 8, "priority"),
        ("priority", "3", "priority"),
        ("delivery", 2, "delivery"),
        ("delivery", True, "delivery"),
        ("sent_time", "yesterday", "sent_time"),
        ("sent_time", "1969-12-31T23:59:59Z", "sent_time"),
        ("sent_time", "2023-13-01", "sent_time"),
        ("sent_time", "2106-02-07T06:28:16Z", "sent_time"),
        ("sent_time", 1_700_000_000, "sent_time"),
        ("arrived_time", "9999-12-31T23:59:59-23:59", "arrived_time"),
        ("correlation_id", "AAAA", "correlation_id"),
        ("lookup_id", 2**64, "lookup_id"),
        ("lookup_id", 10**400, "lookup_id"),
        ("tx_sequence_id", 2**64, "tx_sequence_id"),
        ("tx_sequence_id", 5, "tx_sequence_number"),
        ("tx_sequence_number", 5, "tx_sequence_number"),
        ("headers", [], "headers"),
        ("headers", {"msmq.hops": 3}, "headers"),
        ("headers", {"msmq.hops": "256"}, "headers.msmq.hops"),
        ("headers", {"msmq.hops": " 1"}, "headers.msmq.hops"),
        ("headers", {"msmq.hops": "1_0"}, "headers.msmq.hops"),
        ("headers", {"msmq.ttrq": "-1"}, "headers.msmq.ttrq"),
        ("headers", {"msmq.ttrq": "9" * 5000}, "headers.msmq.ttrq"),
        ("headers", {"msmq.encrypted": "2"}, "headers.msmq.encrypted"),
        ("headers", {"msmq.wire": "/"}, "headers.msmq.wire"),
        ("headers", {"msmq.wire": "ü"}, "headers.msmq.wire"),
        ("headers", {"msmq.trace": "{x}"}, "headers.msmq.trace"),
        ("headers", {"msmq.tx.id": "5"}, "headers.msmq.tx.id"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: object, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        back(json_of(plain()) | {name: value})
    assert caught.value.where.startswith(where)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["message_id", "queue"])
def test_what_is_missing_is_named(name: str) -> None:
    values = json_of(plain())
    del values[name]
    with pytest.raises(ConfigError, match=name):
        read_data(values)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
odd_headers = st.dictionaries(st.sampled_from(sorted(HEADERS)), st.text(max_size=30))


@given(st.dictionaries(st.sampled_from(DESIGN) | st.text(), anything | odd_headers))
def test_any_data_gives_a_message_or_says_why_not(values: dict[str, Any]) -> None:
    values = json_of(plain()) | values
    try:
        message = back(values)
    except BridgeError:
        return
    again = message_of(data_of(message, QUEUE))
    assert again == replace(message, soap_compound=again.soap_compound, expires=again.expires)
