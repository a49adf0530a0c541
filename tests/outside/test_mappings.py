"""The mapping language as senders and consumers meet it. Design 3.3, D1, D2, D7"""

import base64
import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka.admin import AdminClient

from tests.outside.appliance import Appliance, queue
from tests.outside.conftest import Broker, OpenSender
from tests.outside.rawmsmq import Message, Name, Tx, pad4
from tests.outside.rawsender import soon
from tests.outside.records import Record, identity, of_source, read_topic, text
from tests.outside.siege import at_most
from tests.support.kafka import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
SEQUENCE = 0x65000000_00000300
LIMIT = 20_000  # what the small topics take
BODY = bytes(range(256)) * 400  # 102,400 bytes


def mappings(prefix: str) -> dict[str, Any]:
    """Short names below private$; topics begin with the prefix."""
    entries: list[tuple[str, str, dict[str, Any]]] = [
        # Which of them takes a queue: exact, then more literal, then first.
        ("inv*", "any", {}),
        ("inv-eu*", "eu", {}),
        ("inv-eu-1", "one", {}),
        ("inv-e*1", "less", {}),
        ("dup-*", "first", {}),
        ("dup-?", "second", {}),
        # Topics that a message names.
        ("tx.*", "t-{queue}", {"transactional": True, "journal": f"{prefix}-tj-{{queue}}"}),
        ("label", "l-{label}", {"transactional": True}),
        ("source", "s-{source}", {}),
        # The record.
        ("keyed", "keyed", {"key": "json:$.customer", "order": "key"}),
        ("json", "json", {"value": "json"}),
        ("text", "text", {"value": "text", "key": "label", "timestamp": "sent"}),
        ("envelope", "envelope", {"value": "envelope"}),
        (
            "heads",
            "heads",
            {
                "headers": {
                    "exclude": ["msmq.wire", "msmq.peer"],
                    "rename": {"msmq.label": "title"},
                    "add": {"env": "prod"},
                    "prefix": "mq-",
                },
                "key": "header:title",
            },
        ),
        ("events", "events", {"value": "json", "headers": {"cloudevents": True}}),
        # Records that are too large.
        ("chunk", "small", {"oversize": "chunk", "journal": f"{prefix}-small-j"}),
        ("chunk-tx", "small", {"oversize": "chunk", "transactional": True}),
        ("claim", "small", {"oversize": "claim-check", "journal": f"{prefix}-small-j"}),
        ("refuse", "small", {}),
    ]
    return {
        "defaults": {"unknown": "auto-create"},
        "queues": [
            {"queue": f"private$\\{name}", "topic": f"{prefix}-{topic}", **more}
            for name, topic, more in entries
        ],
    }


@pytest.fixture(scope="module")
def appliance(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Appliance]:
    prefix = f"map-{uuid4().hex[:8]}"
    appliance = Appliance(tmp_path_factory.mktemp(prefix), kafka.bootstrap_servers, prefix)
    (appliance.folder / "mappings.yaml").write_text(json.dumps(mappings(prefix)))
    for name in ("small", "small-j"):
        create_topic(appliance.bootstrap, appliance.topic(name), 4, max_message_bytes=str(LIMIT))
    create_topic(appliance.bootstrap, appliance.topic("keyed"), 8)
    appliance.start()
    yield appliance
    appliance.terminate()


def plain(source: UUID, number: int, name: str, body: bytes = b"", **more: Any) -> Message:
    return Message(
        source=source,
        message_id=number,
        destination=queue(name),
        body=body or b"%s %d" % (name.encode(), number),
        recoverable=True,
        **more,
    )


def step(source: UUID, number: int, name: str, body: bytes = b"", **more: Any) -> Message:
    return Message(
        source=source,
        message_id=number,
        destination=queue(name),
        body=body or b"%s %d" % (name.encode(), number),
        tx=Tx(sequence_id=SEQUENCE, number=number, previous=number - 1),
        **more,
    )


def send(open_sender: OpenSender, messages: Sequence[Message]) -> UUID:
    """All of them were acked when this returns."""
    sender = open_sender(messages[0].source)
    sender.send_all_windowed(messages, soon(30))
    return messages[0].source


def read(appliance: Appliance, topic: str, source: UUID) -> list[Record]:
    return of_source(read_topic(appliance.bootstrap, appliance.topic(topic)), source)


def values(appliance: Appliance, topic: str, source: UUID) -> list[bytes]:
    return [record.value for record in read(appliance, topic, source)]


def topics(appliance: Appliance) -> dict[str, int]:
    """Of this module, and their partitions."""
    admin = AdminClient({"bootstrap.servers": appliance.bootstrap})
    return {
        name.removeprefix(f"{appliance.prefix}-"): len(found.partitions)
        for name, found in admin.list_topics(timeout=30).topics.items()
        if name.startswith(f"{appliance.prefix}-")
    }


# -- which mapping, which topic -------------------------------------------------------------


def test_exact_then_more_literal_then_first(appliance: Appliance, open_sender: OpenSender) -> None:
    names = ["inv-eu-1", "inv-eu-2", "inv-1", "INV-EU-1", "dup-1", "dup-12", "inv"]
    source = uuid4()
    send(open_sender, [plain(source, number, name) for number, name in enumerate(names, 1)])
    assert sorted(values(appliance, "one", source)) == [b"INV-EU-1 4", b"inv-eu-1 1"]
    assert values(appliance, "eu", source) == [b"inv-eu-2 2"]
    assert sorted(values(appliance, "any", source)) == [b"inv 7", b"inv-1 3"]
    assert sorted(values(appliance, "first", source)) == [b"dup-1 5", b"dup-12 6"]
    assert values(appliance, "second", source) == values(appliance, "less", source) == []


def test_a_topic_is_made_for_the_first_message(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    assert not {"t-tx.a", "t-tx.b", "tj-tx.a"} & set(topics(appliance))
    source = uuid4()
    messages = [step(source, number, "tx.a") for number in range(1, 6)]
    messages += [step(source, number, "tx.b") for number in range(1, 4)]
    send(open_sender, messages)
    found = topics(appliance)
    assert (found["t-tx.a"], found["t-tx.b"]) == (4, 4)  # as the broker has it
    for name, count in (("tx.a", 5), ("tx.b", 3)):
        records = read(appliance, f"t-{name}", source)
        assert [r.value for r in records] == [f"{name} {n}".encode() for n in range(1, count + 1)]
        assert {r.header["msmq.queue"] for r in records} == {f"private$\\{name}".encode()}
        assert len({r.partition for r in records}) == 1  # DM-36
        copies = read(appliance, f"tj-{name}", source)
        assert [r.value for r in copies] == [r.value for r in records]  # DM-30


def test_a_label_picks_the_topic(appliance: Appliance, open_sender: OpenSender) -> None:
    labels = ["a", "b", "", "a", "Größe/1", "b", "a", "_x"]
    source = uuid4()
    send(
        open_sender,
        [step(source, number, "label", label=label) for number, label in enumerate(labels, 1)],
    )
    assert values(appliance, "l-a", source) == [b"label 1", b"label 4", b"label 7"]
    assert values(appliance, "l-b", source) == [b"label 2", b"label 6"]
    assert values(appliance, "l-no-label", source) == [b"label 3"]
    assert values(appliance, "l-Gr--e-1", source) == [b"label 5"]
    assert values(appliance, "l-_x", source) == [b"label 8"]


def test_a_source_picks_the_topic(appliance: Appliance, open_sender: OpenSender) -> None:
    sources = [uuid4(), uuid4()]
    for source in sources:
        send(open_sender, [plain(source, 1, "source", text(source))])
    for source in sources:
        [record] = read_topic(appliance.bootstrap, appliance.topic(f"s-{source}"))
        assert record.value == text(source)


def test_a_queue_that_nobody_listed_is_made(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # defaults: unknown: auto-create
    name, source = f"{appliance.prefix}-auto", uuid4()
    assert "auto" not in topics(appliance)
    messages = [step(source, 1, name, b"t1"), plain(source, 1001, name, b"p1")]
    messages += [step(source, 2, name, b"t2"), plain(source, 1002, name, b"p2")]
    send(open_sender, messages)
    assert values(appliance, "auto", source) == [b"t1", b"p1", b"t2", b"p2"]


# -- the record -----------------------------------------------------------------------------


def test_the_same_key_in_one_partition_over_streams(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # order: key
    sources = [uuid4() for _ in range(3)]
    for source in sources:
        numbers = range(1, 31)
        bodies = [json.dumps({"customer": f"c{number % 10}"}).encode() for number in numbers]
        send(open_sender, [plain(source, n, "keyed", body) for n, body in enumerate(bodies, 1)])
    places: dict[bytes | None, set[int]] = defaultdict(set)
    for source in sources:
        records = read(appliance, "keyed", source)
        assert len(records) == 30
        for record in records:
            assert record.key == json.loads(record.value)["customer"].encode()
            places[record.key].add(record.partition)
    assert len(places) == 10
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(set.union(*places.values())) > 2  # and keys spread


def test_no_key_stays_with_its_stream(appliance: Appliance, open_sender: OpenSender) -> None:
    source = uuid4()
    send(open_sender, [plain(source, number, "keyed", b"no json") for number in range(1, 11)])
    records = read(appliance, "keyed", source)
    assert {record.key for record in records} == {None}
    assert len({record.partition for record in records}) == 1


# Body, BodyType, the JSON; as .NET's XmlMessageFormatter, COM and others write it.
BODIES: list[tuple[bytes, int, object]] = [
    (b'<?xml version="1.0"?>\r\n<string>Hall\xc3\xb6</string>', 0, "Hall\u00f6"),
    (b'<?xml version="1.0"?>\r\n<int>42</int>', 0, 42),
    (
        b'<?xml version="1.0"?>\r\n<Order xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        b"<Id>7</Id><Line>a</Line><Line>b</Line></Order>",
        0,
        {"Order": {"Id": "7", "Line": ["a", "b"]}},
    ),
    ("caf\u00e9".encode("utf-16-le"), 8, "caf\u00e9"),
    (b"\x2a\0\0\0", 3, 42),
    (b'{"a": [1, 2.50]}', 0, {"a": [1, 2.5]}),
]
UNREADABLE: list[tuple[bytes, int, bytes]] = [
    (b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0\x0c", 768, b"binary-formatter"),
    (b"\0\1\2\3\xff", 0, b"not-text"),
    (b'<?xml version="1.0"?><a><b></a>', 0, b"xml-malformed"),
]


def test_values_as_json(appliance: Appliance, open_sender: OpenSender) -> None:
    source = uuid4()
    bodies = [*BODIES, *UNREADABLE]
    send(
        open_sender,
        [
            plain(source, number, "json", body, body_type=kind)
            for number, (body, kind, _) in enumerate(bodies, 1)
        ],
    )
    records = read(appliance, "json", source)
    assert len(records) == len(bodies)
    for record, (_, _, expected) in zip(records, BODIES, strict=False):
        assert json.loads(record.value) == expected
        assert "msmq.value-error" not in record.header
    for record, (body, _, why) in zip(records[len(BODIES) :], UNREADABLE, strict=True):
        assert record.value == body  # untouched, and the header says why
        assert record.header["msmq.value-error"] == why


def test_text_label_and_sent_time(appliance: Appliance, open_sender: OpenSender) -> None:
    message = plain(
        uuid4(), 1, "text", "caf\u00e9".encode("utf-16-le"), body_type=8, label="k\u00e9y"
    )
    source = send(open_sender, [message])
    [record] = read(appliance, "text", source)
    assert (record.value, record.key) == ("caf\u00e9".encode(), "k\u00e9y".encode())
    assert record.timestamp_ms <= message.sent_time * 1000
    assert int(record.header["msmq.arrived"]) >= record.timestamp_ms


def test_the_envelope(appliance: Appliance, open_sender: OpenSender) -> None:  # design 3.6
    message = plain(uuid4(), 5, "envelope", b'{"a": 1}', label="L", app=9)
    source = send(open_sender, [message])
    [record] = read(appliance, "envelope", source)
    told = json.loads(record.value)
    assert told["message_id"].encode() == identity(source, 5)
    assert (told["queue"], told["label"], told["app_specific"]) == ("private$\\envelope", "L", 9)
    assert base64.b64decode(told["body"]) == b'{"a": 1}'
    assert told["value"] == {"a": 1}


def test_headers_by_the_rules(appliance: Appliance, open_sender: OpenSender) -> None:
    source = send(open_sender, [plain(uuid4(), 3, "heads", label="L")])
    [record] = [
        record
        for record in read_topic(appliance.bootstrap, appliance.topic("heads"))
        if record.header["mq-source"] == text(source)
    ]
    assert (record.header["title"], record.header["env"], record.key) == (b"L", b"prod", b"L")
    assert record.header["mq-id"] == identity(source, 3)
    assert record.header["mq-queue"] == b"private$\\heads"
    assert not {"mq-wire", "mq-peer", "mq-label"} & set(record.header)
    assert not [name for name in record.header if name.startswith("msmq.")]


def test_cloud_events(appliance: Appliance, open_sender: OpenSender) -> None:
    message = plain(uuid4(), 4, "events", b'{"a": 1}')
    source = send(open_sender, [message])
    [record] = read(appliance, "events", source)
    assert record.header["ce_specversion"] == b"1.0"
    assert record.header["ce_id"] == identity(source, 4)
    assert record.header["ce_source"] == b"/msmq/" + text(source)
    assert record.header["ce_type"] == b"com.microsoft.msmq.message"
    assert record.header["ce_subject"] == b"private$\\events"
    assert record.header["ce_time"].endswith(b"Z")
    assert record.header["content-type"] == b"application/json"


# -- too large ------------------------------------------------------------------------------


def small_records(appliance: Appliance, topic: str) -> list[Record]:
    return read_topic(appliance.bootstrap, appliance.topic(topic))


def assembled(records: Sequence[Record], message_id: bytes) -> tuple[bytes, Record]:
    """By the documented headers alone."""
    parts = [r for r in records if r.header.get("msmq.chunk.id") == message_id]
    first = parts[0]
    assert [int(r.header["msmq.chunk.index"]) for r in parts] == list(range(len(parts)))
    assert {int(r.header["msmq.chunk.count"]) for r in parts} == {len(parts)}
    assert len({(r.partition, r.key, r.timestamp_ms) for r in parts}) == 1
    offsets = [r.offset for r in parts]
    assert offsets == list(range(offsets[0], offsets[0] + len(parts)))  # one after the other
    value = b"".join(r.value for r in parts)
    assert len(value) == int(first.header["msmq.chunk.size"])
    assert sha256(value).hexdigest().encode() == first.header["msmq.chunk.sha256"]
    return value, first


def test_chunks_become_the_body_again(appliance: Appliance, open_sender: OpenSender) -> None:
    source = uuid4()
    messages = [plain(source, 1, "chunk", b"small"), plain(source, 2, "chunk", BODY, label="L")]
    send(open_sender, [*messages, plain(source, 3, "chunk", b"after")])
    for topic in ("small", "small-j"):  # the journal has the same, DM-30
        records = small_records(appliance, topic)
        value, first = assembled(records, identity(source, 2))
        assert value == BODY
        assert (first.header["msmq.label"], first.header["msmq.source"]) == (b"L", text(source))
        whole = [r.value for r in of_source(records, source) if "msmq.chunk.id" not in r.header]
        assert whole == [b"small", b"after"]


def test_a_stream_with_chunks_in_it(appliance: Appliance, open_sender: OpenSender) -> None:
    source = uuid4()
    send(
        open_sender,
        [step(source, n, "chunk-tx", BODY if n % 2 else b"%d" % n) for n in range(1, 6)],
    )
    records = small_records(appliance, "small")
    firsts = of_source(records, source)  # the first chunk has all headers
    assert [r.header["msmq.id"] for r in firsts] == [identity(source, n) for n in range(1, 6)]
    assert len({r.partition for r in firsts}) == 1
    for number in (1, 3, 5):
        assert assembled(records, identity(source, number))[0] == BODY


def test_a_claim_leads_to_the_body(appliance: Appliance, open_sender: OpenSender) -> None:
    source = uuid4()
    send(open_sender, [plain(source, 1, "claim", BODY), plain(source, 2, "claim", b"small")])
    digest = sha256(BODY).hexdigest()
    for topic in ("small", "small-j"):
        large, small = of_source(small_records(appliance, topic), source)
        assert json.loads(large.value) == {"claim": digest, "size": len(BODY)}
        assert large.header["msmq.claim.sha256"].decode() == digest
        assert int(large.header["msmq.claim.size"]) == len(BODY)
        path = appliance.data / "claims" / large.header["msmq.claim.path"].decode()
        assert path.read_bytes() == BODY
        assert small.value == b"small"
        assert "msmq.claim.path" not in small.header


def test_what_is_too_large_and_may_not_be_is_refused(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    source = uuid4()
    send(open_sender, [plain(source, 1, "refuse", BODY), plain(source, 2, "refuse", b"small")])
    assert values(appliance, "small", source) == [b"small"]
    rejects = of_source(read_topic(appliance.bootstrap, appliance.rejects_topic), source)
    [reject] = rejects
    assert reject.value == BODY
    assert reject.header["__connect.errors.exception.message"] == b"larger-than-the-topic-takes"


def test_many_that_fit_go_into_a_small_topic(appliance: Appliance, open_sender: OpenSender) -> None:
    """The limit is one of a batch: what fits alone must not fail together."""
    source = uuid4()
    bodies = [bytes([number]) * (LIMIT // 4) for number in range(40)]
    sender = open_sender(source)
    sender.transmit([plain(source, n, "refuse", body) for n, body in enumerate(bodies, 1)])
    sender.send_all_windowed(deadline=soon(30))
    assert values(appliance, "small", source) == bodies


def test_half_a_surrogate_pair_in_the_name_of_a_queue(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    """Lawful UTF-16 for MSMQ; nobody may end the appliance, or hold up others, with a name."""
    source = uuid4()
    odd = named(f"OS:BRIDGE01\\private$\\{appliance.prefix}-odd\ud800")
    messages = [replace(step(source, n, "x", b"odd %d" % n), destination=odd) for n in (1, 2)]
    send(open_sender, [*messages, plain(source, 1001, "json", b"{}")])
    assert values(appliance, "odd-", source) == [b"odd 1", b"odd 2"]
    assert values(appliance, "json", source) == [b"{}"]
    assert any("-odd" in one["destination"] for one in appliance.status()["stream_list"])


def named(text: str) -> Name:
    """A direct name of any WCHARs."""
    raw = text.encode("utf-16-le", "surrogatepass") + b"\0\0"
    return Name(7, pad4(struct.pack("<H", len(raw)) + raw))


def test_half_a_surrogate_pair_is_replaced_everywhere_but_in_the_packet(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    """Names, labels and queues that UTF-8 cannot hold: U+FFFD, and the packet as it came."""
    source = uuid4()
    odd = plain(source, 1, "envelope", b"odd")
    raw = "OS:BRIDGE01\\private$\\envelope", "OS:odd\udc00\ud800\\private$\\r"
    odd = replace(odd, destination=named(raw[0]), response=named(raw[1]), admin=named(raw[1]))
    send(open_sender, [odd, plain(source, 2, "envelope", b"even")])
    records = read(appliance, "envelope", source)
    assert [json.loads(record.value)["value"] for record in records] == ["odd", "even"]
    response = "DIRECT=OS:odd\ufffd\ufffd\\private$\\r"
    assert records[0].header["msmq.response"].decode() == response
    assert "\udc00\ud800".encode("utf-16-le", "surrogatepass") in records[0].header["msmq.wire"]


# Neither the resolver nor IDNA takes any of these.
HOSTS = ("a\ud800", "\udfff", "a\0b", "a..b", ".", "x" * 64, "y" * 300, "xn--\xfc", "\u202e", " ")


def test_hosts_that_no_resolver_takes(appliance: Appliance, open_sender: OpenSender) -> None:
    """An ack is owed to each; the messages arrive, and so does what others send."""
    source = uuid4()
    odd = [
        plain(source, n, "json", b"%d" % n, admin=named(f"OS:{host}\\private$\\a"), acks=0xF)
        for n, host in enumerate(HOSTS, 1)
    ]
    send(open_sender, odd)
    other = send(open_sender, [plain(uuid4(), 1, "json", b"{}")])
    assert values(appliance, "json", source) == [b'"%d"' % n for n in range(1, len(HOSTS) + 1)]
    assert values(appliance, "json", other) == [b"{}"]


def explosive() -> dict[str, tuple[bytes, str]]:
    """Bodies, and why each cannot be JSON."""
    far = b"u" * 60_000
    near = b"u" * 4_000
    elements = b"<n:a/>" * 100_000
    return {
        "a huge namespace": (b"<a xmlns:n='%s'>%s</a>" % (far, elements), "xml-too-large"),
        "a long namespace": (b"<a xmlns:n='%s'>%s</a>" % (near, elements), ""),
        "by default": (b"<a xmlns='%s'>%s</a>" % (near, b"<b/>" * 100_000), ""),
        "on attributes": (b"<a xmlns:n='%s'>%s</a>" % (near, b"<b n:c=''/>" * 50_000), ""),
        "a huge tag": (b"<a b='%s'/>" % (b"x" * 700_000), "xml-too-large"),
        "many attributes": (
            b"<a%s/>" % b"".join(b" b%d=''" % n for n in range(60_000)),
            "xml-too-large",
        ),
        "many elements": (b"<a>%s</a>" % (b"<b/>" * 210_000), "xml-too-large"),
        "lists": (b"[%s[]]" % (b"[]," * 250_000), ""),
        "deep": (b"[" * 700_000, "json-too-deep"),
        "a number": (b'{"a":%s}' % (b"9" * 700_000), "json-malformed"),
    }


def test_bodies_that_explode(appliance: Appliance, open_sender: OpenSender) -> None:
    """Each arrives, as JSON or untouched; memory stays, and others are served meanwhile."""
    source, cases = uuid4(), explosive()
    sender = open_sender(source)
    messages = [plain(source, n, "json", body) for n, (body, _) in enumerate(cases.values(), 1)]
    with at_most(appliance, 256):
        sender.transmit(messages)
        good = uuid4()
        other = send(open_sender, [plain(good, n, "json", b"{}") for n in range(1, 20)])
        sender.send_all_windowed(deadline=soon(60))
    assert values(appliance, "json", other) == [b"{}"] * 19
    found = read(appliance, "json", source)
    why = [record.header.get("msmq.value-error", b"").decode() for record in found]
    assert dict(zip(cases, why, strict=True)) == {name: why for name, (_, why) in cases.items()}
    for record, (body, reason) in zip(found, cases.values(), strict=True):
        assert record.value == body if reason or body.startswith(b"[") else record.value != body


# -- and once -------------------------------------------------------------------------------


def test_killed_between_messages_of_a_topic_that_was_made(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # design D1: the last test, the data folder is a new one after it
    labels = ["k1", "k2", "k3"]
    sender = open_sender()
    source = sender.guid
    messages = [step(source, number, "label", label=labels[number % 3]) for number in range(1, 301)]
    sender.unsent.extend(messages)
    sender.send_all_windowed(deadline=soon(30), until_acked=100)
    assert sender.in_flight
    appliance.restart(empty_data=True, kill=True)
    sender.resume(appliance.binary_address)
    sender.send_all_windowed(deadline=soon(60))
    for index, label in enumerate(labels):
        expected = [b"label %d" % n for n in range(1, 301) if n % 3 == index]
        assert values(appliance, f"l-{label}", source) == expected
