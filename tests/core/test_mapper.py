"""The record that a mapping asks for, message by message. Design 3.3, D2, D7; DM-35, DM-36"""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.catalogue import Catalogue, Queue, TopicLimits
from bridge.core.header_rules import VALUE_ERROR
from bridge.core.mapper import Mapper
from bridge.core.mapping import headers_of, message_from_record
from bridge.core.mapping_rules import (
    Defaults,
    HeaderRules,
    Key,
    Mappings,
    QueueMapping,
    QueuePath,
    Topic,
)
from bridge.core.murmur2 import partition_of
from bridge.core.ports import Record
from bridge.model.guid import Guid
from bridge.model.message import Message, Transaction
from tests.core.messages import (
    LOCAL,
    NOW,
    ORDERS,
    OTHER,
    PLAIN,
    SENDER,
    SEQUENCE,
    messages,
    plain,
    queue,
    step,
    texts,
)
from tests.core.posts import STREAM, TO, part

XML = b'<?xml version="1.0"?>\r\n<Order id="7"><Id>A-1</Id><Total>12.50</Total></Order>'
BINARY = b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0"  # what BinaryFormatter writes


def record_of(message: Message, **settings: Any) -> Record:
    return Mapper(Catalogue(LOCAL, ())).record(message, queue(**settings))


def known(
    *mappings: QueueMapping, defaults: Defaults | None = None, **partitions: int
) -> Catalogue:
    """A catalogue that has looked at these topics; `p_x=3` is `p-x` with three partitions."""
    limits = {name.replace("_", "-"): TopicLimits(count) for name, count in partitions.items()}
    rules = Mappings(queues=mappings, defaults=defaults or Defaults())
    return Catalogue.of(LOCAL, rules, limits, "_msmq-bridge.")


def found(catalogue: Catalogue, message: Message) -> Queue:
    place = catalogue.find(message.destination)
    assert place is not None
    return place


# -- keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("stream", f"{SENDER}/{PLAIN}".encode()),
        ("message_id", f"{SENDER}\\9".encode()),
        ("correlation_id", b"c" * 20),
        ("label", "Größe".encode()),
        ("source", str(SENDER).encode()),
        ("none", None),
        ("header:msmq.label", "Größe".encode()),
        ("header:msmq.correlation", b"c" * 20),
        ("header:msmq.extension", b"\0\xff"),
        ("header:msmq.app", b"42"),
        ("header:msmq.id", f"{SENDER}\\9".encode()),
        ("header:msmq.queue", b"private$\\plain"),
        ("header:msmq.response", None),  # it asks for no answer
        ("header:msmq.tx.seq", None),  # it is not transactional
        ("json:$.order.id", b"A-1"),
        ("json:$.order.lines[0]", b"7"),
        ("json:$.order.lines[-1]", b"8"),
        ("json:$['a b']", b"true"),
        ("json:$.big", b"123456789012345678901"),
        ("json:$.order.lines", b"[7,8]"),
        ("json:$.null", None),
        ("json:$.nothing", None),
        ("json:$.order.lines[2]", None),
        ("json:$.order.id.more", None),
    ],
)
@pytest.mark.parametrize("value", ["body", "json", "envelope"])
def test_keys(kind: str, key: bytes | None, value: str) -> None:  # whatever the value is
    body = (
        b'{"order": {"id": "A-1", "lines": [7, 8]}, "a b": true, "null": null,'
        b' "big": 123456789012345678901}'
    )
    message = plain(
        9,
        body=body,
        label="Größe",
        correlation_id=b"c" * 20,
        app_specific=42,
        extension=b"\0\xff",
    )
    record = record_of(message, name="private$\\plain", key=Key(kind), value=value)
    assert record.key == key
    assert record.partition == crc32(f"{SENDER}/{PLAIN}".encode()) % 4  # the stream picks it


@pytest.mark.parametrize(
    ("body", "body_type", "path", "key"),
    [
        (XML, 0, "$.Order.Id", b"A-1"),
        (XML, 0, "$.Order['@id']", b"7"),
        (b"<string>{&quot;id&quot;: 5}</string>", 0, "$.id", b"5"),
        ('{"id": "ä"}'.encode("utf-16-le"), 8, "$.id", "ä".encode()),
        (b'\xef\xbb\xbf{"id": "bom"}', 0, "$.id", b"bom"),
        (b'{"id": "cut', 0, "$.id", None),
        (b"text", 0, "$.id", None),
        (b"\xff\xfe\0", 0, "$.id", None),
        (b"", 0, "$.id", None),
        (BINARY, 768, "$.id", None),
        (b'{"id": 1}', 768, "$.id", None),  # what it says counts, not what it looks like
        (b'{"id": 1}', 3, "$.id", None),  # VT_I4 has four bytes
        (b'{"id": "\\ud800"}', 0, "$.id", None),  # no UTF-8 for it
    ],
)
def test_a_key_out_of_the_body(
    body: bytes, body_type: int, path: str, key: bytes | None
) -> None:  # a body without it is no fault
    record = record_of(plain(body=body, body_type=body_type), key=Key(f"json:{path}"))
    assert (record.key, record.value) == (key, body)
    assert VALUE_ERROR not in record.headers  # the value is what was asked for


def test_no_key_out_of_an_encrypted_body() -> None:
    assert record_of(plain(body=b'{"id": 1}', encrypted=True), key=Key("json:$.id")).key is None


@pytest.mark.parametrize(
    ("name", "rules", "key"),
    [
        ("msmq.label", HeaderRules(exclude=("msmq.label",)), b"L"),  # the table before the rules
        ("msmq.label", HeaderRules(include="none"), b"L"),
        ("msmq.label", HeaderRules(rename={"msmq.label": "title"}), b"L"),
        ("title", HeaderRules(rename={"msmq.label": "title"}), b"L"),
        ("mq_label", HeaderRules(prefix="mq_"), b"L"),
        ("env", HeaderRules(add={"env": "prod"}), b"prod"),
        ("ce_subject", HeaderRules(cloudevents=True), b"private$\\plain"),
        # Two headers that changed their names: our own name always means the property.
        (
            "msmq.label",
            HeaderRules(rename={"msmq.label": "msmq.peer", "msmq.peer": "msmq.label"}),
            b"L",
        ),
    ],
)
def test_a_key_out_of_a_header(name: str, rules: HeaderRules, key: bytes) -> None:
    message = plain(label="L", peer="10.0.0.1")
    record = record_of(message, name="private$\\plain", key=Key(f"header:{name}"), headers=rules)
    assert record.key == key


def test_a_key_from_what_is_said_about_the_value() -> None:
    settings: dict[str, Any] = {"key": Key(f"header:{VALUE_ERROR}"), "value": "json"}
    assert record_of(plain(body=b"\0\1\2"), **settings).key == b"not-text"
    assert record_of(plain(body=b"{}"), **settings).key is None


# -- order ----------------------------------------------------------------------------------


def test_the_same_key_lies_in_one_partition_over_streams() -> None:  # design 3.3, order: key
    place = queue(partitions=12, key=Key("label"), order="key")
    maker = Mapper(Catalogue(LOCAL, ()))
    for label in ("a", "b", "", "Größe", "x" * 249):
        partitions = {
            maker.record(
                plain(label=label, source=Guid.random(), destination=name), place
            ).partition
            for name in (ORDERS, PLAIN)
            for _ in range(20)
        }
        assert partitions == {partition_of(label.encode(), 12)}


def test_a_message_without_a_key_stays_with_its_stream() -> None:
    place = queue(partitions=12, key=Key("json:$.id"), order="key")
    maker = Mapper(Catalogue(LOCAL, ()))
    numbers = {maker.record(plain(n, body=b"%d?" % n), place).partition for n in range(50)}
    assert numbers == {crc32(f"{SENDER}/{PLAIN}".encode()) % 12}


def test_order_by_the_key_of_the_stream_is_kafka_s_own() -> None:
    """As any other producer of this topic would place the key, so not by crc32."""
    record = record_of(plain(), key=Key("stream"), order="key", partitions=100)
    assert record.key is not None
    assert record.partition == partition_of(record.key, 100)


@given(messages, st.sampled_from(("label", "source", "message_id", "correlation_id", "none")))
def test_the_key_does_not_move_a_stream(message: Message, kind: str) -> None:  # DM-36, D2
    plainly, keyed = record_of(message), record_of(message, key=Key(kind))
    assert plainly.partition == keyed.partition
    assert (keyed.topic, keyed.value, keyed.headers) == (
        plainly.topic,
        plainly.value,
        plainly.headers,
    )


# -- time -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp", "sent", "expected", "arrived"),
    [
        ("arrival", NOW - 60, NOW * 1000 + 7, None),
        ("sent", NOW - 60, (NOW - 60) * 1000, b"%d" % (NOW * 1000 + 7)),
        ("sent", 1, 1000, b"%d" % (NOW * 1000 + 7)),
        ("sent", NOW + 1, NOW * 1000 + 7, b"%d" % (NOW * 1000 + 7)),  # a clock that is ahead
        ("sent", 0xFFFFFFFF, NOW * 1000 + 7, b"%d" % (NOW * 1000 + 7)),
        ("sent", 0, NOW * 1000 + 7, None),  # the sender set none
    ],
)
def test_timestamps(timestamp: str, sent: int, expected: int, arrived: bytes | None) -> None:
    message = plain(sent_time=sent, arrived_ms=NOW * 1000 + 7)
    record = record_of(message, timestamp=timestamp)
    assert record.timestamp_ms == expected
    assert record.headers.get("msmq.arrived") == arrived
    assert message_from_record(record) == message  # DM-35


# -- values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "body", "body_type", "expected", "why"),
    [
        ("body", XML, 0, XML, None),
        ("text", b"\xff\xfeh\0i\0", 0, b"hi", None),
        ("text", "hé".encode("utf-16-le"), 8, "hé".encode(), None),
        ("text", b"\x2a\0\0\0", 3, b"42", None),
        ("text", b"\0\1\2\3\4\5\6", 0, b"\0\1\2\3\4\5\6", b"not-text"),
        ("text", BINARY, 768, BINARY, b"binary-formatter"),
        ("text", BINARY, 0, BINARY, b"binary-formatter"),
        ("json", b'{"a": 1.10}', 0, b'{"a": 1.10}', None),
        ("json", b"\x2a\0\0\0", 3, b"42", None),
        ("json", b"hello", 0, b'"hello"', None),
        ("json", BINARY, 0, BINARY, b"binary-formatter"),
        ("json", b'{"a": ', 0, b'{"a": ', b"json-malformed"),
        ("json", b"x", 0x7777, b"x", b"unknown-body-type-0x7777"),
    ],
)
def test_values(
    value: str, body: bytes, body_type: int, expected: bytes, why: bytes | None
) -> None:
    record = record_of(plain(body=body, body_type=body_type), value=value)
    assert (record.value, record.headers.get(VALUE_ERROR)) == (expected, why)


def test_xml_as_json() -> None:
    record = record_of(plain(body=XML), value="json")
    assert msgspec.json.decode(record.value) == {
        "Order": {"@id": "7", "Id": "A-1", "Total": "12.50"}
    }


def test_the_envelope() -> None:  # design 3.6
    message = step(3, body=XML, label="L", extension=b"\0ext")
    record = record_of(message, value="envelope")
    told = msgspec.json.decode(record.value)
    assert told["message_id"] == f"{SENDER}\\3"
    assert (told["queue"], told["label"]) == ("private$\\orders", "L")
    assert (told["tx_sequence_id"], told["tx_sequence_number"]) == (SEQUENCE, 3)
    assert told["value"]["Order"]["Id"] == "A-1"
    assert record.headers["msmq.label"] == b"L"  # the headers are there too
    assert record.headers == record_of(message).headers


def test_the_envelope_has_the_table_before_the_rules() -> None:
    rules = HeaderRules(include="none", add={"env": "prod"})
    record = record_of(step(3, label="L"), value="envelope", headers=rules)
    assert record.headers == {"env": b"prod"}
    told = msgspec.json.decode(record.value)
    assert told["headers"]["msmq.dest"] == ORDERS
    assert "env" not in told["headers"]


@given(messages, st.sampled_from(("text", "json", "envelope")))
def test_any_message_has_some_value(message: Message, value: str) -> None:
    record = record_of(message, value=value)
    if VALUE_ERROR in record.headers:
        assert record.value == message.body  # untouched, and a header says why
        assert record.headers[VALUE_ERROR]
    elif value != "text":
        msgspec.json.decode(record.value)
    else:
        record.value.decode()


# -- headers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (HeaderRules(include=("msmq.id", "msmq.label")), {"msmq.id", "msmq.label"}),
        (HeaderRules(include="none"), set()),
        (HeaderRules(include="none", add={"env": "prod"}), {"env"}),
        (HeaderRules(include=("msmq.label",), rename={"msmq.label": "title"}), {"title"}),
        (HeaderRules(include=("msmq.id", "msmq.label"), prefix=""), {"id", "label"}),
        (
            HeaderRules(include=("msmq.id", "msmq.label"), prefix="x-", rename={"msmq.id": "Id"}),
            {"Id", "x-label"},
        ),
        (
            HeaderRules(include="none", cloudevents=True),
            {"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "ce_subject"}
            | {"content-type"},
        ),
    ],
)
def test_header_rules(rules: HeaderRules, expected: set[str]) -> None:
    assert set(record_of(plain(label="L"), headers=rules).headers) == expected


def test_exclude_leaves_the_rest() -> None:
    message = plain(label="L", wire=b"W")
    whole = record_of(message).headers
    rules = HeaderRules(exclude=("msmq.wire", "msmq.peer"))
    record = record_of(message, headers=rules)
    assert record.headers == {name: data for name, data in whole.items() if name != "msmq.wire"}
    assert message_from_record(record) == msgspec.structs.replace(message, wire=b"")


@pytest.mark.parametrize(
    ("value", "body", "content_type"),
    [
        ("body", b"{}", b"application/octet-stream"),
        ("text", b"{}", b"text/plain; charset=utf-8"),
        ("json", b"{}", b"application/json"),
        ("envelope", b"\0", b"application/json"),
        ("json", b"\0\1\2", b"application/octet-stream"),  # it went through as it was
        ("text", b"\0\1\2", b"application/octet-stream"),
    ],
)
def test_a_cloud_event_says_what_its_value_is(
    value: str, body: bytes, content_type: bytes
) -> None:  # CloudEvents, Kafka binding 3.2.1
    headers = record_of(
        plain(5, body=body),
        name="private$\\plain",
        value=value,
        headers=HeaderRules(cloudevents=True),
    ).headers
    assert headers["content-type"] == content_type
    assert headers["ce_id"] == f"{SENDER}\\5".encode()
    assert headers["ce_source"] == f"/msmq/{SENDER}".encode()
    assert headers["ce_subject"] == b"private$\\plain"
    assert headers["ce_time"] == b"2023-11-14T22:13:20Z"
    assert (VALUE_ERROR in headers) == (body == b"\0\1\2")


def test_why_a_value_is_not_what_was_asked_for_is_never_lost_by_include() -> None:
    record = record_of(plain(body=b"\0\1"), value="json", headers=HeaderRules(include="none"))
    assert record.headers == {VALUE_ERROR: b"not-text"}


# -- topics ---------------------------------------------------------------------------------


def by_label(**settings: Any) -> QueueMapping:
    return QueueMapping(queue=QueuePath("private$\\plain"), topic=Topic("p-{label}"), **settings)


def test_a_label_names_the_topic() -> None:
    catalogue = known(by_label(), p_a=3, p_b=7)
    maker = Mapper(catalogue)
    crc = crc32(f"{SENDER}/{PLAIN}".encode())
    for label, partitions in (("a", 3), ("b", 7), ("a", 3)):
        message = plain(label=label)
        record = maker.record(message, found(catalogue, message))
        assert (record.topic, record.partition) == (f"p-{label}", crc % partitions)
        assert message_from_record(record) == message


def test_a_label_names_the_topic_and_the_key_its_partition() -> None:
    catalogue = known(by_label(key=Key("source"), order="key"), p_a=64)
    maker = Mapper(catalogue)
    message = plain(label="a", source=OTHER)
    record = maker.record(message, found(catalogue, message))
    assert record.key == str(OTHER).encode()
    assert record.partition == partition_of(record.key, 64)


@pytest.mark.parametrize(
    ("label", "topic"),
    [
        ("", "p-no-label"),
        ("Größe 1", "p-Gr--e-1"),
        ("../../etc", "p-..-..-etc"),
        ("{source}", "p--source-"),  # what a sender writes is no pattern
        ("\ud800", "p--"),
        ("x" * 249, f"p-{'x' * 234}-"),
    ],
)
def test_labels_that_are_no_topics(label: str, topic: str) -> None:
    catalogue = known(by_label())
    record = Mapper(catalogue).record(plain(label=label), found(catalogue, plain()))
    assert record.topic.startswith(topic)
    assert len(record.topic) <= 249
    assert record.headers.get("msmq.label", b"") == label.encode("utf-8", "surrogatepass")


def test_a_source_names_the_topic() -> None:
    mapping = QueueMapping(queue=QueuePath("private$\\plain"), topic=Topic("{source}.{queue}"))
    catalogue = known(mapping)
    maker = Mapper(catalogue)
    for source in (SENDER, OTHER, SENDER):
        message = plain(source=source)
        assert maker.record(message, found(catalogue, message)).topic == f"{source}.plain"


def test_a_wildcard_names_the_topic() -> None:
    mapping = QueueMapping(queue=QueuePath("private$\\p*"), topic=Topic("t-{queue}"))
    catalogue = known(mapping, t_plain=5)
    message = plain(destination="DIRECT=OS:a\\Private$\\PLAIN")
    record = Mapper(catalogue).record(message, found(catalogue, message))
    crc = crc32(f"{SENDER}/{message.destination}".encode())
    assert (record.topic, record.partition) == ("t-plain", crc % 5)
    assert record.headers["msmq.queue"] == b"private$\\plain"


def test_no_label_reaches_our_own_topics() -> None:
    """Neither Kafka's (`__…`) nor ours; a mapping could have written it, a sender cannot."""
    mapping = QueueMapping(queue=QueuePath("private$\\plain"), topic=Topic("{label}"))
    catalogue = known(mapping)
    maker = Mapper(catalogue)
    for label in ("_msmq-bridge.state", "__consumer_offsets", "_msmq-bridge.x"):
        topic = maker.record(plain(label=label), found(catalogue, plain())).topic
        assert not topic.startswith("_")


# The name that a sender wrote becomes the name of the queue.
@pytest.mark.parametrize("name", ["\ud800", "a\udc00b", "Größe", "\U0001f4e6"])
@pytest.mark.parametrize("value", ["body", "json", "envelope"])
def test_any_name_that_a_wildcard_matches(name: str, value: str) -> None:
    """Half a surrogate pair is lawful UTF-16 for MSMQ: it must not end the appliance."""
    catalogue = known(defaults=Defaults(unknown="auto-create", value=value))  # type: ignore[arg-type]
    message = plain(destination=f"DIRECT=OS:a\\private$\\{name}")
    for topic in catalogue.unknown_topics(found(catalogue, message), message):
        catalogue.learn(topic, TopicLimits(2))
    record = Mapper(catalogue).record(message, found(catalogue, message))
    path = f"private$\\{name}".lower()
    assert record.headers["msmq.queue"] == path.encode("utf-8", "surrogatepass")
    if value == "body":
        assert message_from_record(record) == message


# -- what is remembered of a stream ---------------------------------------------------------


def same(maker: Mapper, message: Message, place: Queue) -> None:
    """As one that has never seen the stream."""
    assert maker.record(message, place) == Mapper(Catalogue(LOCAL, ())).record(message, place)


def test_a_stream_that_changes_its_ways() -> None:
    maker, place = Mapper(Catalogue(LOCAL, ())), queue(key=Key("label"))
    for changes in (
        {},
        {"label": "a"},
        {"label": ""},
        {"priority": 7},
        {"priority": 3},
        {"response_queue": "DIRECT=OS:a\\q", "peer": "10.0.0.1"},
        {"peer": "10.0.0.2"},
        {"correlation_id": b"c" * 20, "extension": b"x"},
        {"transaction": Transaction(sequence_id=1, number=1)},
        {"transaction": Transaction(sequence_id=2, number=1)},
        {"transaction": Transaction(sequence_id=0, number=1)},
        {},
        {"transport": "srmp", "sent_time": 0},
    ):
        same(maker, plain(**changes), place)


def test_a_queue_that_is_mapped_anew() -> None:  # hot reload, or a topic that was learned
    maker = Mapper(Catalogue(LOCAL, ()))
    for place in (
        queue(),
        queue(partitions=9),
        queue(topic="other"),
        queue(key=Key("none"), value="json"),
        queue("private$\\plain"),
        queue(headers=HeaderRules(prefix="x.")),
        queue(),
    ):
        same(maker, plain(body=b"[1]"), place)


def test_a_topic_that_is_learned_later() -> None:
    mapping = QueueMapping(queue=QueuePath("private$\\*"), topic=Topic("t-{queue}"))
    catalogue = known(mapping)
    maker, crc = Mapper(catalogue), crc32(f"{SENDER}/{PLAIN}".encode())
    for partitions, used in ((5, 5), (11, 5), (3, 3)):  # streams stay in the partitions they had
        catalogue.learn("t-plain", TopicLimits(partitions))
        record = maker.record(plain(), found(catalogue, plain()))
        assert (record.topic, record.partition) == ("t-plain", crc % used)


def test_records_share_nothing_that_can_be_changed() -> None:
    for place in (queue(), queue(headers=HeaderRules(add={"env": "prod"}))):
        maker = Mapper(Catalogue(LOCAL, ()))
        first, second = maker.record(plain(1), place), maker.record(plain(2), place)
        first.headers["mine"] = b"1"
        first.headers["msmq.queue"] = b"mine"
        third = maker.record(plain(3), place)
        for record in (second, third):
            assert "mine" not in record.headers
            assert record.headers["msmq.queue"] == b"private$\\orders"


few: Mapping[str, st.SearchStrategy[Any]] = {
    "source": st.sampled_from((SENDER, OTHER)),
    "destination": st.sampled_from((ORDERS, PLAIN)),
    "label": st.sampled_from(("", "a", "\ud800")),
    "priority": st.integers(3, 4),
    "peer": st.sampled_from(("", "10.0.0.1")),
    "body": st.sampled_from((b"", b'{"id": 1}', b"\0\1")),
    "transaction": st.none()
    | st.builds(Transaction, sequence_id=st.integers(0, 2), number=st.integers(1, 2)),
}
PLACES = (
    queue(),
    queue(partitions=7),
    queue("private$\\plain", key=Key("json:$.id"), order="key"),
    queue(value="json", timestamp="sent", headers=HeaderRules(cloudevents=True)),
)


@given(st.lists(st.tuples(st.builds(plain, st.integers(1, 9), **few), st.sampled_from(PLACES))))
def test_what_was_before_never_shows(several: list[tuple[Message, Queue]]) -> None:
    maker = Mapper(Catalogue(LOCAL, ()))
    for message, place in several:
        same(maker, message, place)


# -- what came over HTTP --------------------------------------------------------------------


def test_the_stream_of_http_picks_key_and_partition() -> None:  # DM-36; srmp.md 3.5
    """Not the source, which may change within it, nor where it was redirected to."""
    key = f"{OTHER}/DIRECT={TO}".encode()
    for changes in ({}, {"source": LOCAL}, {"destination": "DIRECT=http://nat/msmq/private$/x"}):
        message = part(3, qm=OTHER, source=SENDER)
        message = msgspec.structs.replace(message, **changes)
        record = record_of(message, partitions=50)
        assert (record.key, record.partition) == (key, crc32(key) % 50)
        assert record.headers["msmq.source"] == str(message.source).encode()
        assert record.headers["msmq.dest"] == message.destination.encode()
        assert record.headers["msmq.tx.seqid"] == b"%d" % STREAM


def test_each_has_its_own_envelope() -> None:  # srmp.md 7.1
    maker, place = Mapper(Catalogue(LOCAL, ())), queue()
    soap = [
        maker.record(part(n, soap=f"<{n}/>", soap_compound=b"%d" % n, expires=n), place).headers
        for n in (1, 2)
    ]
    bare = maker.record(part(3), place).headers
    assert [headers["msmq.soap"] for headers in soap] == [b"<1/>", b"<2/>"]
    assert [headers["msmq.soap.compound"] for headers in soap] == [b"1", b"2"]
    assert [headers["msmq.srmp.expires"] for headers in soap] == [b"1", b"2"]
    assert not {"msmq.soap.compound", "msmq.srmp.expires"} & set(bare)


posts = st.builds(
    part,
    st.integers(1, 3),
    qm=st.sampled_from((SENDER, OTHER)),
    stream=st.integers(0, 2),
    source=st.sampled_from((SENDER, OTHER)),
    destination=st.sampled_from((f"DIRECT={TO}", "DIRECT=http://nat/msmq/x")),
    soap=st.sampled_from(("<a/>", "<b/>")),
    expires=st.integers(0, 1),
    status_queue=st.sampled_from(("", "DIRECT=http://s/o")),
)
# A plain message may have the name of such a stream, where a queue takes both.
mixed = posts | st.builds(plain, st.integers(1, 3), destination=st.just(f"DIRECT={TO}"))


@given(st.lists(st.tuples(mixed, st.sampled_from(PLACES))))
def test_what_came_over_http_before_never_shows(several: list[tuple[Message, Queue]]) -> None:
    maker = Mapper(Catalogue(LOCAL, ()))
    for message, place in several:
        same(maker, message, place)


@given(st.lists(messages, min_size=1, max_size=4), st.integers(1, 50))
def test_a_plain_mapping_gives_the_same_message_again(
    several: list[Message], partitions: int
) -> None:  # DM-35: also in the middle of a stream
    maker, place = Mapper(Catalogue(LOCAL, ())), queue(partitions=partitions)
    for first in several:
        for message in several:
            member = msgspec.structs.replace(
                message, source=first.source, destination=first.destination
            )
            record = maker.record(member, place)
            assert message_from_record(record) == member
            assert record.headers == headers_of(member) | {"msmq.queue": b"private$\\orders"}


@given(messages, texts)
def test_the_id_at_hand_is_the_message_s(message: Message, label: str) -> None:
    maker, place = Mapper(Catalogue(LOCAL, ())), queue()
    assert maker.record(message, place, message.id) == maker.record(message, place)


def test_streams_with_long_names_do_not_fill_the_memory() -> None:
    place = queue("private$\\plain", transactional=False)
    maker = Mapper(Catalogue(LOCAL, ()))
    for number in range(2000):
        destination = f"DIRECT=OS:a\\private$\\{number}".ljust(30_000, "x")
        record = maker.record(plain(destination=destination), place)
        assert record.headers["msmq.dest"] == destination.encode()
    assert maker.cached_bytes <= 64 << 20
    kept = sum(len(s.key) + sum(map(len, s.headers.values())) for s in maker._streams.values())
    assert kept <= 64 << 20


def test_large_headers_are_made_anew() -> None:
    place = queue("private$\\plain", transactional=False)
    maker = Mapper(Catalogue(LOCAL, ()))
    maker.record(plain(), place)
    large = plain(admin_queue="DIRECT=OS:a\\" + "x" * 70_000)
    for _ in range(2):
        assert maker.record(large, place) == Mapper(Catalogue(LOCAL, ())).record(large, place)
    assert maker.cached_bytes < 10_000
    assert maker.record(plain(), place) == Mapper(Catalogue(LOCAL, ())).record(plain(), place)
