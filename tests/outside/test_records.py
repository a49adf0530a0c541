"""The records messages become: value, order, partition, every header of data-model section 4."""

import random
import time
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tests.outside.appliance import HOST, Appliance, queue
from tests.outside.conftest import OpenSender
from tests.outside.rawmsmq import (
    ACK_NA,
    ACK_PA,
    INFINITE,
    USER_JN,
    USER_JP,
    Message,
    Tx,
    direct,
    private_on,
    security_header,
    without_body,
)
from tests.outside.rawsender import soon
from tests.outside.records import Record, identity, of_source, read_topic, text

pytestmark = pytest.mark.kafka
SEQUENCE = 0x65000000_00000007
SID = bytes.fromhex("010500000000000515000000AD4A9EBD36D9FA3D63A656DAE8030000")
SID_TEXT = b"S-1-5-21-3181267629-1039849782-3663111779-1000"
# Section 4 gives these names but not their text; one of the second set may be absent.
FREE = {"msmq.v", "msmq.peer", "msmq.queue", "msmq.transport"}
OPTIONAL = {"msmq.lookup", "msmq.outcome"}


def send(
    open_sender: OpenSender, appliance: Appliance, name: str, messages: list[Message]
) -> list[Record]:
    """Sends and returns the records of the source of the first message."""
    sender = open_sender(messages[0].source)
    sender.send_all_windowed(messages, soon(60))
    return of_source(read_topic(appliance.bootstrap, appliance.topic(name)), messages[0].source)


def check_headers(record: Record, message: Message, **properties: bytes) -> None:
    """Exactly these and those every message has; nothing for a property at its default."""
    assert len(record.header) == len(record.headers), record.headers
    expected = {
        "msmq.id": identity(message.source, message.message_id),
        "msmq.source": text(message.source),
        "msmq.dest": f"DIRECT=OS:{HOST}\\private$\\{properties.pop('queue').decode()}".encode(),
        "msmq.sent": b"%d" % message.sent_time,
        "msmq.wire": without_body(message),
    }
    expected |= {
        f"msmq.{name.replace('__', '-').replace('_', '.')}": value
        for name, value in properties.items()
    }
    names = set(record.header)
    assert names >= FREE
    assert {
        name: value for name, value in record.headers if name not in FREE | OPTIONAL
    } == expected
    assert (
        record.header["msmq.queue"]
        .decode()
        .lower()
        .endswith(record.header["msmq.dest"].decode().rpartition("\\")[2].lower())
    )
    assert record.value == message.body


def test_a_message_with_every_property_at_its_default(
    appliance: Appliance, open_sender: OpenSender
) -> None:
    source = uuid4()
    quiet = Message(source=source, message_id=1, destination=queue("plain"), body=b"bare")
    last = replace(quiet, message_id=2, recoverable=True)  # its ack says both are committed
    before = time.time()
    first, second = send(open_sender, appliance, "plain", [quiet, last])
    check_headers(first, quiet, queue=b"plain")
    check_headers(second, last, queue=b"plain", delivery=b"1")
    assert before - 1 <= first.timestamp_ms / 1000 <= time.time() + 1  # arrival, design D7


def test_a_message_with_many_properties(appliance: Appliance, open_sender: OpenSender) -> None:
    source, connector, admin = uuid4(), uuid4(), uuid4()
    message = Message(
        source=source,
        message_id=0xFFFFFFFE,
        destination=queue("plain"),
        recoverable=True,
        label="Bestellung \u00e4\u4e2d\U0001f4e6",
        body="B\u00fccher".encode("utf-16-le"),
        body_type=8,
        app=0xDEADBEEF,
        correlation=bytes(range(1, 21)),
        extension=b"\0ext\xff",
        priority=7,
        admin=private_on(admin, 0xAB),
        response=direct(r"OS:sender7\private$\answers"),
        acks=ACK_PA | ACK_NA,
        journal=USER_JN | USER_JP,
        sent_time=int(time.time()) - 5,
        ttrq=INFINITE,
        ttbr=86_400,
        message_class=0x0100,
        hash_algorithm=0x800E,
        encryption=0x6610,
        hops=3,
        connector=connector,
        security=security_header(SID),
        fill=0xCD,
    )
    [record] = send(open_sender, appliance, "plain", [message])
    check_headers(
        record,
        message,
        queue=b"plain",
        label=message.label.encode(),
        body__type=b"8",
        app=b"3735928559",
        correlation=message.correlation,
        extension=message.extension,
        priority=b"7",
        delivery=b"1",
        admin=f"PRIVATE={admin}\\000000ab".encode(),
        response=b"DIRECT=OS:sender7\\private$\\answers",
        ack=b"5",
        journal=b"3",
        ttrq=b"4294967295",
        ttbr=b"86400",
        expires=b"%d000" % (message.sent_time + 86_400),
        **{"class": b"256"},
        hash=b"32782",
        enc=b"26128",
        hops=b"3",
        connector=text(connector),
        sender=SID_TEXT,
    )


def test_a_transactional_message(appliance: Appliance, open_sender: OpenSender) -> None:
    source, connector = uuid4(), uuid4()
    first = Message(
        source=source,
        message_id=1,
        destination=queue("orders"),
        body=b"one",
        tx=Tx(sequence_id=SEQUENCE, number=1, previous=0, last=False, index=0xABCDE),
    )
    second = replace(
        first,
        message_id=2,
        body=b"two",
        tx=Tx(
            sequence_id=SEQUENCE,
            number=2,
            previous=1,
            final_ack=True,
            first=False,
            index=0xABCDE,
            connector=connector,
        ),
    )
    one, two = send(open_sender, appliance, "orders", [first, second])
    assert (one.header["msmq.tx.first"], one.header.get("msmq.tx.last")) == (b"1", None)
    check_headers(
        two,
        second,
        queue=b"orders",
        delivery=b"1",
        priority=b"0",
        tx_seqid=b"%d" % SEQUENCE,
        tx_seq=b"2",
        tx_prev=b"1",
        tx_id=identity(source, 0xABCDE),
        tx_last=b"1",
        tx_final__ack=b"1",
        connector_qm=text(connector),
    )


def bodies() -> list[bytes]:
    chaos = random.Random(1801)
    return [
        b"",
        b"\0",
        bytes(range(256)),
        "<?xml version='1.0'?><a>\u00e4</a>".encode(),
        b"\xef\xbb\xbf{}",
        "\u4e2d\u6587".encode("utf-16-le"),
        *(chaos.randbytes(size) for size in (1, 2, 3, 5, 4095, 65_537, 300_001)),
    ]


@pytest.mark.parametrize("fill", [0, 0x5A, 0xFF])
def test_values_are_untouched(
    appliance: Appliance, open_sender: OpenSender, fill: int
) -> None:  # DM-3, DM-4: padding and reserved bytes may hold anything
    source = uuid4()
    messages = [
        Message(
            source=source,
            message_id=number,
            destination=queue("plain"),
            recoverable=True,
            label="x" * (number % 4),
            body=body,
            fill=fill,
        )
        for number, body in enumerate(bodies(), 1)
    ]
    records = send(open_sender, appliance, "plain", messages)
    assert [record.value for record in records] == bodies()
    assert [record.header["msmq.wire"] for record in records] == [
        without_body(message) for message in messages
    ]


@pytest.mark.parametrize("size", [249, 1, 0])
def test_labels_of_any_length(
    appliance: Appliance, open_sender: OpenSender, size: int
) -> None:  # 2.12: LabelLength counts WCHARs with the NUL, up to 250
    message = Message(
        source=uuid4(),
        message_id=1,
        destination=queue("plain"),
        recoverable=True,
        label="L" * size,
        body=b"b",
    )
    [record] = send(open_sender, appliance, "plain", [message])
    assert record.header.get("msmq.label", b"") == b"L" * size


def stream(source: UUID, count: int, name: str) -> list[Message]:
    return [
        Message(
            source=source,
            message_id=number,
            destination=queue(name),
            body=b"%d" % number,
            label=f"key {number % 7}",
            tx=Tx(sequence_id=SEQUENCE, number=number, previous=number - 1),
        )
        for number in range(1, count + 1)
    ]


def test_a_stream_lies_in_one_partition_in_order(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # DM-36; the topic has four partitions
    used = set()
    for _ in range(8):
        source = uuid4()
        records = send(open_sender, appliance, "orders", stream(source, 100, "orders"))
        assert [record.value for record in records] == [b"%d" % n for n in range(1, 101)]
        assert len({record.partition for record in records}) == 1
        used.add(records[0].partition)
    assert len(used) > 1  # and streams spread


def test_plain_messages_of_a_stream_keep_their_order_too(
    appliance: Appliance, open_sender: OpenSender
) -> None:  # design D2
    source = uuid4()
    messages = [
        Message(
            source=source,
            message_id=number,
            destination=queue("plain"),
            recoverable=number % 5 == 0,
            body=b"%d" % number,
        )
        for number in range(1, 501)
    ]
    records = send(open_sender, appliance, "plain", messages)
    assert [record.value for record in records] == [message.body for message in messages]
    assert len({record.partition for record in records}) == 1
