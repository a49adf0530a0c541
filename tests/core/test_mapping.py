"""A message becomes a record and the same message again: DM-35, DM-36, design D7."""

from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import mapper as module
from bridge.core.catalogue import Catalogue
from bridge.core.mapper import Mapper
from bridge.core.mapping import headers_of, message_from_record, size_of
from bridge.core.mapping_rules import Key
from bridge.core.ports import Record
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message, Transaction
from tests.core.messages import (
    FIELDS,
    LOCAL,
    NOW,
    ORDERS,
    OTHER,
    SENDER,
    guids,
    messages,
    plain,
    queue,
    step,
    texts,
)


def new_mapper() -> Mapper:
    return Mapper(Catalogue(LOCAL, ()))


FULL = Message(
    source=SENDER,
    ordinal=0xFFFFFFFF,
    destination=ORDERS,
    destination_qm=LOCAL,
    transaction=Transaction(
        sequence_id=(1 << 64) - 1,
        number=0xFFFFFFFF,
        previous=0xFFFFFFFE,
        index=0xFFFFF,
        first=True,
        last=True,
        final_ack=True,
        connector_qm=OTHER,
    ),
    delivery=1,
    priority=0,
    sent_time=NOW,
    arrived_ms=NOW * 1000 + 5,
    time_to_reach_queue=0xFFFFFFFF,
    time_to_be_received=0,
    message_class=0x4000,
    label="Größe \ud800",
    body=b"<?xml?>",
    body_type=8,
    extension=b"\x00ext",
    correlation_id=bytes(range(20)),
    app_specific=42,
    ack=0x0E,
    journal=3,
    admin_queue="DIRECT=OS:a\\private$\\admin",
    response_queue="DIRECT=OS:a\\private$\\resp",
    destination_multi="DIRECT=OS:a\\q,DL=x",
    admin_multi="DIRECT=OS:b\\q",
    response_multi="DIRECT=OS:c\\q",
    deadletter_queue="DIRECT=OS:a\\private$\\dead",
    status_queue="DIRECT=OS:a\\private$\\status",
    lookup_id=(1 << 64) - 1,
    sender="S-1-5-7",
    certificate=b"cert",
    authenticated=3,
    signature=b"sig",
    hash_algorithm=0x800E,
    provider="1:Base",
    privacy_level=3,
    encrypted=True,
    encryption_algorithm=0x6602,
    trace_queue=NULL_GUID,
    connector=OTHER,
    soap="<se:Envelope/>",
    soap_compound=b"POST / HTTP/1.1\r\n\r\n\xff",
    expires=NOW + 60,
    hops=29,
    peer="10.1.2.3",
    transport="srmp",
    wire=b"\x10\x00LIOR",
)
# data-model.md section 4: u UTF-8, d ASCII decimal, g GUID text, o guid\decimal, b bytes, 1 = true
FULL_HEADERS = {
    "msmq.v": b"1",
    "msmq.id": b"11111111-2222-3333-4444-555555555555\\4294967295",
    "msmq.source": b"11111111-2222-3333-4444-555555555555",
    "msmq.dest": b"DIRECT=OS:bridge01\\private$\\orders",
    "msmq.dest.qm": b"3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77",
    "msmq.dest.multi": b"DIRECT=OS:a\\q,DL=x",
    "msmq.admin": b"DIRECT=OS:a\\private$\\admin",
    "msmq.admin.multi": b"DIRECT=OS:b\\q",
    "msmq.response": b"DIRECT=OS:a\\private$\\resp",
    "msmq.response.multi": b"DIRECT=OS:c\\q",
    "msmq.class": b"16384",
    "msmq.label": b"Gr\xc3\xb6\xc3\x9fe \xed\xa0\x80",
    "msmq.correlation": bytes(range(20)),
    "msmq.body-type": b"8",
    "msmq.app": b"42",
    "msmq.extension": b"\x00ext",
    "msmq.priority": b"0",
    "msmq.delivery": b"1",
    "msmq.ack": b"14",
    "msmq.journal": b"3",
    "msmq.deadletter": b"DIRECT=OS:a\\private$\\dead",
    "msmq.sent": b"1700000000",
    "msmq.ttrq": b"4294967295",
    "msmq.ttbr": b"0",
    "msmq.expires": b"1700000000000",
    "msmq.lookup": b"18446744073709551615",
    "msmq.tx.seqid": b"18446744073709551615",
    "msmq.tx.seq": b"4294967295",
    "msmq.tx.prev": b"4294967294",
    "msmq.tx.id": b"11111111-2222-3333-4444-555555555555\\1048575",
    "msmq.tx.first": b"1",
    "msmq.tx.last": b"1",
    "msmq.tx.final-ack": b"1",
    "msmq.tx.status-queue": b"DIRECT=OS:a\\private$\\status",
    "msmq.sender": b"S-1-5-7",
    "msmq.cert": b"cert",
    "msmq.auth": b"3",
    "msmq.signature": b"sig",
    "msmq.hash": b"32782",
    "msmq.provider": b"1:Base",
    "msmq.privacy": b"3",
    "msmq.encrypted": b"1",
    "msmq.enc": b"26114",
    "msmq.trace": b"00000000-0000-0000-0000-000000000000",
    "msmq.connector": b"aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    "msmq.connector.qm": b"aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    "msmq.soap": b"<se:Envelope/>",
    "msmq.soap.compound": b"POST / HTTP/1.1\r\n\r\n\xff",
    "msmq.srmp.expires": b"1700000060",
    "msmq.hops": b"29",
    "msmq.peer": b"10.1.2.3",
    "msmq.queue": b"private$\\orders",
    "msmq.transport": b"srmp",
    "msmq.wire": b"\x10\x00LIOR",
}


def test_the_strategy_knows_every_field() -> None:
    assert set(FIELDS) == set(Message.__struct_fields__) - {"kind"}  # which is no property


def test_every_property_has_its_header() -> None:  # section 4, the whole table
    assert new_mapper().record(FULL, queue()).headers == FULL_HEADERS


def test_every_field_of_the_full_message_is_unusual() -> None:
    """So that the test above shows every header there is. What the receiver only needs until it
    has its verdict is no property: what was asked of it, and whose numbers the stream's are."""
    for field in msgspec.structs.fields(Message):
        is_property = field.name not in ("srmp", "kind")
        assert (getattr(FULL, field.name) != field.default) == is_property
    assert FULL.transaction is not None
    for field in msgspec.structs.fields(Transaction):
        assert (getattr(FULL.transaction, field.name) != field.default) == (field.name != "stream")


def test_a_property_at_its_default_has_no_header() -> None:  # design D7
    message = Message(source=SENDER, ordinal=1, destination=ORDERS)
    assert new_mapper().record(message, queue()).headers == {
        "msmq.v": b"1",
        "msmq.id": f"{SENDER}\\1".encode(),
        "msmq.source": str(SENDER).encode(),
        "msmq.dest": ORDERS.encode(),
        "msmq.transport": b"binary",
        "msmq.queue": b"private$\\orders",
    }


def test_a_transactional_message_says_priority_0() -> None:  # section 4: absent = 3
    message = plain(priority=0, transaction=Transaction(sequence_id=0, number=0))
    headers = headers_of(message)
    assert headers["msmq.priority"] == b"0"
    assert headers["msmq.tx.seqid"] == headers["msmq.tx.seq"] == b"0"
    assert not {"msmq.tx.prev", "msmq.tx.id", "msmq.tx.first", "msmq.tx.last"} & set(headers)


def test_the_value_is_the_body_untouched() -> None:  # DM-3, design D7
    record = new_mapper().record(FULL, queue())
    assert record.value == FULL.body
    assert FULL.body not in record.headers.values()  # no header repeats it


@given(messages, st.sampled_from(("arrival", "sent")), st.integers(1, 100))
def test_a_record_rebuilds_the_same_message(
    message: Message, timestamp: str, partitions: int
) -> None:  # DM-35
    place = queue(timestamp=timestamp, partitions=partitions)
    record = new_mapper().record(message, place)
    assert message_from_record(record) == message
    assert (record.topic, record.value) == (place.topic, message.body)
    assert record.partition is not None
    assert 0 <= record.partition < partitions
    assert all(type(value) is bytes for value in record.headers.values())


@given(messages)
def test_size_is_never_told_too_small(message: Message) -> None:
    """Kafka: 61 bytes per batch, 21 per record and its key, 10 per header at most."""
    record = new_mapper().record(message, queue())
    content = len(record.value) + len(record.key or b"")
    content += sum(len(name.encode()) + len(value) + 10 for name, value in record.headers.items())
    assert content + 61 + 31 <= size_of(record) <= content + 500


def test_time_is_arrival_unless_the_mapping_asks() -> None:  # design D7
    message = plain(sent_time=NOW - 60, arrived_ms=NOW * 1000 + 7)
    assert new_mapper().record(message, queue()).timestamp_ms == NOW * 1000 + 7
    assert "msmq.arrived" not in new_mapper().record(message, queue()).headers
    record = new_mapper().record(message, queue(timestamp="sent"))
    assert record.timestamp_ms == (NOW - 60) * 1000
    assert record.headers["msmq.arrived"] == b"%d" % (NOW * 1000 + 7)


@pytest.mark.parametrize("sent_time", [NOW + 1, 0xFFFFFFFF, 0])
def test_a_sent_time_that_a_broker_would_refuse_is_clamped(sent_time: int) -> None:  # design D7
    message = plain(sent_time=sent_time, arrived_ms=NOW * 1000 + 7)
    record = new_mapper().record(message, queue(timestamp="sent"))
    assert record.timestamp_ms == NOW * 1000 + 7
    assert message_from_record(record) == message


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("stream", f"{SENDER}/{ORDERS}".encode()),
        ("message_id", f"{SENDER}\\4294967295".encode()),
        ("correlation_id", bytes(range(20))),
        ("label", b"Gr\xc3\xb6\xc3\x9fe \xed\xa0\x80"),
        ("source", str(SENDER).encode()),
        ("none", None),
    ],
)
def test_keys(kind: str, key: bytes | None) -> None:  # design 3.3
    record = new_mapper().record(FULL, queue(key=Key(kind)))
    assert record.key == key
    assert record.partition == new_mapper().record(FULL, queue()).partition  # the stream picks it


@given(guids, texts, st.lists(messages, min_size=2, max_size=4), st.integers(1, 1000))
def test_a_stream_lies_in_one_partition(
    source: Guid, destination: str, several: list[Message], partitions: int
) -> None:  # DM-36: whatever else differs, and after a restart too
    place = queue(partitions=partitions)
    found = {
        new_mapper()
        .record(msgspec.structs.replace(m, source=source, destination=destination), place)
        .partition
        for m in several
    }
    assert len(found) == 1


def test_the_partition_of_a_stream_never_changes() -> None:
    """A new version that chose another one would break the order of every stream."""
    place = queue(partitions=12)
    assert crc32(f"{SENDER}/{ORDERS}".encode()) % 12 == 4
    assert new_mapper().record(plain(destination=ORDERS), place).partition == 4


@pytest.mark.parametrize(
    ("ttbr", "expires"),
    [
        (INFINITE, None),
        (0, b"1700000000000"),
        (60, b"1700000060000"),
        (INFINITE - 1, b"5994967294000"),
    ],
)
def test_when_its_time_to_be_received_is_over(ttbr: int, expires: bytes | None) -> None:
    """MS-MQDMPR 3.1.1.12: TimeToBeReceived is relative to SentTime. In Unix milliseconds."""
    message = plain(time_to_be_received=ttbr)
    for headers in (headers_of(message), new_mapper().record(message, queue()).headers):
        assert headers.get("msmq.expires") == expires


def test_neighbours_in_a_stream_expire_each_at_their_own_time() -> None:
    maker, place = new_mapper(), queue()
    found = [
        maker.record(step(n, sent_time=NOW + at, time_to_be_received=ttbr), place).headers
        for n, (at, ttbr) in enumerate([(0, 5), (1, 5), (1, INFINITE), (1, 6)], 1)
    ]
    assert [headers.get("msmq.expires") for headers in found] == [
        b"1700000005000",
        b"1700000006000",
        None,
        b"1700000007000",
    ]


def test_a_record_of_an_earlier_build_does_not_say_when_it_expires() -> None:
    record = new_mapper().record(FULL, queue())
    headers = {name: value for name, value in record.headers.items() if name != "msmq.expires"}
    assert message_from_record(msgspec.structs.replace(record, headers=headers)) == FULL


def test_streams_spread_over_the_partitions() -> None:
    place = queue(partitions=4)
    maker = new_mapper()
    found = {maker.record(plain(source=Guid.random()), place).partition for _ in range(200)}
    assert found == {0, 1, 2, 3}


def test_what_is_remembered_is_bounded_and_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CACHE", 3)
    maker, place = new_mapper(), queue(partitions=50)
    for _ in range(2):
        for number in range(10):
            message = plain(destination=f"{ORDERS}{number}")
            assert maker.record(message, place) == new_mapper().record(message, place)
            assert len(maker._streams) <= 3


def test_a_record_that_others_changed_still_gives_a_message() -> None:
    """Headers that we do not know do not matter."""
    record = new_mapper().record(FULL, queue())
    more = Record(
        topic="t",
        value=record.value,
        headers={"trace": b"1", **record.headers, "ce_id": b"x"},
        timestamp_ms=record.timestamp_ms,
    )
    assert message_from_record(more) == FULL
