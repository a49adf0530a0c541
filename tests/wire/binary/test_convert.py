"""Packets come from the builder in tests.outside; what is expected is written out here."""

from __future__ import annotations

import struct
from dataclasses import replace
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message, Transaction
from bridge.wire.binary.convert import message_from_packet, packet_from_message, sender_text
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.security import SecurityHeader
from tests.outside import rawmsmq
from tests.outside.rawmsmq import (
    NONE,
    USER_JN,
    USER_JP,
    ZERO,
    Name,
    SessionHeader,
    Tx,
    build,
    direct,
    pad4,
    private,
    private_on,
    public,
    security_header,
    without_body,
)
from tests.vectors.binary import F7_BODY, PACKETS
from tests.wire.binary.strategies import SOME, texts, u16, u32, u64, user_messages

SOURCE = UUID("11111111-2222-3333-4444-555555555555")
MANAGER = UUID("A0B1C2D3-E4F5-6071-8293-A4B5C6D7E8F9")
THIRD = UUID("DEADBEEF-0001-0002-0003-000000000004")
QUEUE = direct("OS:appl\\private$\\q1")
PLAIN = rawmsmq.Message(source=SOURCE, message_id=7, destination=QUEUE, sent_time=0x60000010)


def guid(value: UUID) -> Guid:
    return Guid(value.bytes_le)


def convert(raw: rawmsmq.Message | bytes) -> Message:
    data = raw if isinstance(raw, bytes) else build(raw)
    return message_from_packet(UserMessage.unpack(data), "192.0.2.10", 1234)


# -- from a packet ----------------------------------------------------------------------------


def test_a_plain_message_is_made_of_defaults() -> None:
    assert convert(replace(PLAIN, body=b"x")) == Message(
        source=guid(SOURCE),
        ordinal=7,
        destination="DIRECT=OS:appl\\private$\\q1",
        sent_time=0x60000010,
        body=b"x",
        peer="192.0.2.10",
        arrived_ms=1234,
        wire=without_body(replace(PLAIN, body=b"x")),
    )


def test_v1() -> None:  # digest section 6
    assert convert(PACKETS["V1"].data) == Message(
        source=guid(SOURCE),
        ordinal=42,
        destination="DIRECT=OS:appl\\private$\\q1",
        transaction=Transaction(
            sequence_id=0x60000000_00000001,
            number=1,
            previous=0,
            index=1,
            first=True,
            last=True,
            final_ack=True,
        ),
        delivery=1,
        priority=0,
        sent_time=0x60000010,
        label="t1",
        body=b"hello",
        body_type=0x1011,
        peer="192.0.2.10",
        arrived_ms=1234,
        wire=PACKETS["V1"].data[:-6] + b"\0",
    )


def test_f7() -> None:  # MS-MQQB 4.1.7
    message = convert(PACKETS["F7 mended"].data)
    assert message.id == "557358d1-9150-9595-4997-b6e611ea26c6\\2286"
    assert message.destination == "DIRECT=OS:a04bm02\\q"
    assert message.label == "mqsender label"
    assert message.body == F7_BODY
    assert message.body_type == 8  # BSTR, not in the table: carried
    assert message.ack == 0x0F
    assert message.admin_queue == ""  # QB-115
    assert message.sender == "S-1-5-21-3181267629-1039849782-3663111779-1000"
    assert message.authenticated == 0
    assert message.sent_time == 0x441105E6


FULL = replace(
    PLAIN,
    body=b"body",
    label="Ünïcode \U0001f600",
    recoverable=True,
    priority=6,
    ttrq=60,
    ttbr=90,
    acks=0x0F,
    journal=USER_JN | USER_JP,
    message_class=0x8002,
    correlation=bytes(range(20)),
    body_type=0x1011,
    app=0xCAFE,
    hash_algorithm=0x800E,
    encryption=0x6610,
    privacy=5,
    extension=b"\x01\x02\x03",
    hops=0x1D,
    connector=THIRD,
)


def test_every_field_of_the_fixed_headers() -> None:  # data-model.md section 4
    message = convert(FULL)
    assert (message.delivery, message.priority, message.hops) == (1, 6, 0x1D)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (60, 90)
    assert (message.ack, message.journal, message.message_class) == (0x0F, 3, 0x8002)
    assert message.label == "Ünïcode \U0001f600"
    assert (message.body, message.extension) == (b"body", b"\x01\x02\x03")
    assert (message.correlation_id, message.app_specific) == (bytes(range(20)), 0xCAFE)
    assert (message.body_type, message.privacy_level) == (0x1011, 5)
    assert (message.hash_algorithm, message.encryption_algorithm) == (0x800E, 0x6610)
    assert message.connector == guid(THIRD)
    assert message.transport == "binary"
    assert message.wire == without_body(FULL)


@pytest.mark.parametrize(("flags", "journal"), [(0, 0), (USER_JN, 1), (USER_JP, 2)])
def test_journaling(flags: int, journal: int) -> None:  # PROPID_M_JOURNAL: 1 JN, 2 JP
    assert convert(replace(PLAIN, journal=flags)).journal == journal


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("final_ack", [True, False])
@pytest.mark.parametrize("connector", [THIRD, None])
def test_transactions(first: bool, last: bool, final_ack: bool, connector: UUID | None) -> None:
    tx = Tx(
        sequence_id=0xFFFFFFFF_00000002,
        number=0xFFFFFFFF,
        previous=0xFFFFFFFE,
        first=first,
        last=last,
        final_ack=final_ack,
        index=0xFFFFF,
        connector=connector,
    )
    message = convert(replace(PLAIN, tx=tx))
    assert message.delivery == 1
    assert message.priority == 0
    assert message.transaction == Transaction(
        sequence_id=0xFFFFFFFF_00000002,
        number=0xFFFFFFFF,
        previous=0xFFFFFFFE,
        index=0xFFFFF,
        first=first,
        last=last,
        final_ack=final_ack,
        connector_qm=None if connector is None else guid(connector),
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (NONE, ""),
        (private(0xABC), f"PRIVATE={MANAGER}\\00000abc"),
        (public(THIRD), f"PUBLIC={THIRD}"),
        (direct("TCP:192.0.2.1\\PRIVATE$\\q"), "DIRECT=TCP:192.0.2.1\\PRIVATE$\\q"),
        (direct("os:Appl\\Q;sub"), "DIRECT=os:Appl\\Q;sub"),
        (direct(""), "DIRECT="),
    ],
)
def test_destinations(name: Name, text: str) -> None:  # 2.9: DQ 0, 3, 5, 7; DM-8 byte for byte
    message = convert(replace(PLAIN, destination=name, queue_manager=MANAGER))
    assert message.destination == text
    assert message.destination_qm == guid(MANAGER)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (NONE, ""),
        (private(1, code=2), f"PRIVATE={SOURCE}\\00000001"),
        (private(0xFFFFFFFF), f"PRIVATE={MANAGER}\\ffffffff"),
        (public(THIRD), f"PUBLIC={THIRD}"),
        (private_on(THIRD, 5), f"PRIVATE={THIRD}\\00000005"),
        (direct("HTTP://host/msmq/q"), "DIRECT=HTTP://host/msmq/q"),
    ],
)
def test_administration_and_response_queues(name: Name, text: str) -> None:  # 2.9: AQ, RQ
    message = convert(replace(PLAIN, queue_manager=MANAGER, admin=name))
    assert (message.admin_queue, message.response_queue) == (text, "")
    message = convert(replace(PLAIN, queue_manager=MANAGER, response=name))
    assert (message.admin_queue, message.response_queue) == ("", text)


@pytest.mark.parametrize(
    ("admin", "same", "beside"),
    [
        (private(1, code=2), f"PRIVATE={SOURCE}\\00000001", SOURCE),
        (private(1), f"PRIVATE={MANAGER}\\00000001", MANAGER),
        (private_on(THIRD, 1), f"PRIVATE={THIRD}\\00000001", THIRD),
        (public(THIRD), f"PUBLIC={THIRD}", None),
        (direct("OS:a\\q"), "DIRECT=OS:a\\q", None),
    ],
)
def test_responses_that_lean_on_the_admin_queue(
    admin: Name, same: str, beside: UUID | None
) -> None:  # 2.9: RQ 1 and 4
    message = convert(replace(PLAIN, queue_manager=MANAGER, admin=admin, response=Name(1)))
    assert message.response_queue == message.admin_queue == same
    if beside is not None:
        response = private(9, code=4)
        message = convert(replace(PLAIN, queue_manager=MANAGER, admin=admin, response=response))
        assert message.response_queue == f"PRIVATE={beside}\\00000009"


@pytest.mark.parametrize("admin", [public(THIRD), direct("OS:other\\acks"), NONE])
def test_a_response_queue_beside_an_administration_queue_of_unknown_host(admin: Name) -> None:
    """MS-MQMQ 2.2.19.2: with RQ 0x4 "the PrivateQueueIdentifier [...] MUST identify the private
    queue on the queue manager that hosts the administration queue". A public name tells the GUID
    of the queue, a direct one a host: neither is a queue manager's, so it has no format name."""
    message = convert(replace(PLAIN, admin=admin, response=private(9, code=4)))
    assert message.response_queue == ""
    assert message.wire == without_body(replace(PLAIN, admin=admin, response=private(9, code=4)))


def security(
    sender: bytes = b"",
    *,
    kind: int = 1,
    key: bytes = b"",
    signature: bytes = b"",
    certificate: bytes = b"",
    provider: bytes = b"",
    flags: int = 0,
) -> bytes:
    items = (sender, key, signature, certificate, provider)
    sizes = struct.pack("<HHHHII", kind | flags, *map(len, items))
    return sizes + b"".join(map(pad4, items))


SID = bytes.fromhex("010100000000000512000000")  # S-1-5-18


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (security_header(SID), "S-1-5-18"),
        (security(SID, kind=0), ""),
        (security(b"", kind=1), ""),
        (security(THIRD.bytes_le, kind=2), str(THIRD)),
        (security(SID[:-1], kind=1), "0x" + SID[:-1].hex()),
        (security(b"short", kind=2), "0x" + b"short".hex()),
    ],
)
def test_senders(header: bytes, text: str) -> None:  # 2.11; QB-131: it is only a claim
    message = convert(replace(PLAIN, security=header))
    assert message.sender == text
    assert message.authenticated == 0


def test_the_other_items_of_security() -> None:  # 2.11
    provider = struct.pack("<I", 0x18) + "RSA and AES\0".encode("utf-16-le")
    header = security(
        SID,
        key=b"secret key",
        signature=b"signed",
        certificate=b"der",
        provider=provider,
        flags=0x0010 | 0x0300,  # AU and AS from a stranger: QB-131
    )
    message = convert(replace(PLAIN, security=header))
    assert (message.signature, message.certificate) == (b"signed", b"der")
    assert message.provider == "24:RSA and AES"
    assert message.authenticated == 0


@pytest.mark.parametrize("info", [b"\x01", b"\x01\x00\x00\x00\x41", b"\x01\x00"])
def test_a_cut_provider_is_shown_in_hex(info: bytes) -> None:
    assert convert(replace(PLAIN, security=security(provider=info))).provider == f"0x{info.hex()}"


def test_a_security_header_built_by_hand() -> None:
    assert sender_text(SecurityHeader()) == ""


def mqf(identifier: int, *elements: bytes) -> bytes:
    """An MQFAddressHeader; the elements are aligned by hand. 2.15"""
    content = b"".join(elements)
    return pad4(struct.pack("<IHHI", 12 + len(content), identifier, 0, len(elements)) + content)


def multi(signature: bytes = b"") -> bytes:
    destination = mqf(
        0x64,
        struct.pack("<HH", 1, 0) + THIRD.bytes_le,
        struct.pack("<HH", 2, 0) + MANAGER.bytes_le + struct.pack("<I", 0x1F),
        struct.pack("<H", 3) + "OS:a\\b\0".encode("utf-16-le"),
        struct.pack("<HH", 6, 0) + SOURCE.bytes_le,
    )
    admin = mqf(0xC8, struct.pack("<H", 3) + "OS:x\\y\0".encode("utf-16-le"))
    tail = struct.pack("<HHI", 0x015E, 0, len(signature)) + signature
    return destination + admin + mqf(0x12C) + pad4(tail)


def test_multiple_destinations() -> None:  # 2.15, QB-124
    message = convert(replace(PLAIN, multi=multi(b"mqf-signature")))
    assert message.destination == "DIRECT=OS:appl\\private$\\q1"
    assert message.destination_multi == (
        f"PUBLIC={THIRD},PRIVATE={MANAGER}\\0000001f,DIRECT=OS:a\\b,DL={SOURCE}"
    )
    assert (message.admin_multi, message.response_multi) == ("DIRECT=OS:x\\y", "")
    assert message.signature == b"mqf-signature"


def test_the_signature_of_the_security_header_comes_first() -> None:
    header = security(SID, signature=b"one")
    message = convert(replace(PLAIN, security=header, multi=multi(b"two")))
    assert message.signature == b"one"
    message = convert(replace(PLAIN, security=security(SID), multi=multi(b"two")))
    assert message.signature == b"two"


def test_soap() -> None:  # 2.14
    raw = b""
    for identifier, text in ((0x0320, "<head/>\0"), (0x0384, "<body/>\0")):
        data = text.encode("utf-16-le")
        raw += pad4(struct.pack("<HHI", identifier, 0, len(text)) + data)
    assert convert(replace(PLAIN, soap=raw)).soap == "<head/><body/>"


def test_tracing() -> None:  # 2.13, QB-122
    traced = replace(PLAIN, trace=THIRD)
    assert convert(traced).trace_queue == guid(THIRD)
    raw = bytearray(build(traced))
    raw[3] = 0  # TR off: the header is there and means nothing
    assert convert(bytes(raw)).trace_queue is None
    queueless = build(PLAIN)
    queueless = queueless[:8] + struct.pack("<I", len(queueless) + 4) + queueless[12:] + bytes(4)
    queueless = queueless[:2] + struct.pack("<H", 0x0123) + queueless[4:]
    assert convert(queueless).trace_queue == NULL_GUID  # wanted, but nowhere to send it
    assert convert(PLAIN).trace_queue is None


def test_everything_at_once() -> None:
    message = convert(
        replace(
            FULL,
            tx=Tx(sequence_id=1, number=1, previous=0),
            admin=private(1),
            response=Name(1),
            security=security_header(SID),
            multi=multi(),
            trace=THIRD,
        )
    )
    assert message.sender == "S-1-5-18"
    assert message.admin_queue == message.response_queue == f"PRIVATE={ZERO}\\00000001"
    assert message.destination_multi.startswith("PUBLIC=")
    assert message.trace_queue == message.connector == guid(THIRD)


def test_a_piggyback_leaves_no_trace() -> None:
    """`wire` is the message, not the session that it came through."""
    header = SessionHeader(ack=1, sent=1)
    carried = [convert(build(FULL, header)), convert(build(FULL, header, counted=True))]
    assert carried == [convert(FULL)] * 2


# -- to a packet ------------------------------------------------------------------------------


def test_a_message_of_our_own() -> None:
    message = Message(
        source=guid(SOURCE),
        ordinal=7,
        destination="DIRECT=OS:appl\\private$\\q1",
        sent_time=0x60000010,
        body=b"x",
    )
    assert packet_from_message(message).pack() == build(replace(PLAIN, body=b"x"))


def test_v1_survives() -> None:
    assert packet_from_message(convert(PACKETS["V1"].data)).pack() == PACKETS["V1"].data


def test_a_private_destination_brings_its_queue_manager() -> None:  # 2.9: DQ=3
    """The address is in the name; a packet without it would go to whoever reads it."""
    message = Message(
        source=guid(SOURCE),
        ordinal=7,
        destination=f"PRIVATE={THIRD}\\00000009",
        admin_queue=f"PRIVATE={THIRD}\\0000000a",
        sent_time=0x60000010,
    )
    expected = replace(PLAIN, destination=private(9), queue_manager=THIRD, admin=private(10))
    assert packet_from_message(message).pack() == build(expected)


@pytest.mark.parametrize("name", [f"DL={THIRD}", "MULTICAST=234.1.1.1:80", f"MACHINE={THIRD}"])
def test_names_that_no_packet_can_hold(name: str) -> None:
    message = Message(source=guid(SOURCE), ordinal=7, destination=name)
    with pytest.raises(WireError, match="cannot be in a packet"):
        packet_from_message(message)


names = st.one_of(
    st.just(NONE),
    st.builds(private, u32),
    st.just(public(THIRD)),
    texts(30).map(lambda text: Name(7, raw_direct(text))),
)
other_names = st.one_of(
    names,
    st.builds(private, u32, code=st.just(2)),
    st.builds(private_on, st.just(THIRD), u32),
)


def raw_direct(text: str) -> bytes:
    raw = text.encode("utf-16-le", "surrogatepass") + b"\0\0"
    return pad4(struct.pack("<H", len(raw)) + raw)


raw_messages = st.builds(
    rawmsmq.Message,
    source=st.just(SOURCE),
    message_id=u32,
    destination=names,
    body=st.binary(max_size=60),
    label=st.text(st.characters(min_codepoint=1, max_codepoint=0xD7FF), max_size=60),
    recoverable=st.booleans(),
    tx=st.none()
    | st.builds(
        Tx,
        sequence_id=u64,
        number=u32,
        previous=u32,
        final_ack=st.booleans(),
        first=st.booleans(),
        last=st.booleans(),
        index=st.integers(0, 0xFFFFF),
        connector=st.sampled_from((None, THIRD)),
    ),
    queue_manager=st.just(MANAGER),
    admin=other_names,
    response=other_names,
    priority=st.integers(0, 7),
    ttrq=u32,
    ttbr=u32,
    sent_time=u32,
    acks=st.integers(0, 15),
    journal=st.sampled_from((0, USER_JN, USER_JP, USER_JN | USER_JP)),
    message_class=u16,
    correlation=st.binary(min_size=20, max_size=20),
    body_type=u32,
    app=u32,
    hash_algorithm=u32,
    encryption=u32,
    privacy=u32,
    extension=st.binary(max_size=20),
    hops=st.integers(0, 31),
    connector=st.sampled_from((None, THIRD)),
)


@SOME
@given(raw_messages)
def test_bytes_to_message_to_bytes(raw: rawmsmq.Message) -> None:
    """For all that a packet of ours can hold: DM-3, nothing is changed on the way."""
    assert packet_from_message(convert(raw)).pack() == build(raw)


@SOME
@given(user_messages())
def test_what_a_message_says_survives_its_packet(packet: UserMessage) -> None:
    """Other packets too, as far as a message of ours goes: without what only a sender adds."""
    bare = msgspec.structs.replace(
        packet, security=None, soap=None, multi=None, debug=None, session=None
    )
    message = message_from_packet(bare, "192.0.2.10", 1)
    again = packet_from_message(message)
    assert message_from_packet(again, "192.0.2.10", 1) == message
    assert UserMessage.unpack(again.pack()) == again


@SOME
@given(user_messages())
def test_every_packet_becomes_a_message(packet: UserMessage) -> None:
    message = message_from_packet(packet, "192.0.2.10", 1)
    assert message.body == packet.properties.body
    assert (message.source, message.ordinal) == (packet.user.source, packet.user.message_id)
    assert message.time_to_reach_queue <= INFINITE
    received = UserMessage.unpack(packet.pack())
    if packet.session is None:
        restored = UserMessage.restored(received.wire_without_body, received.properties.body)
        assert message_from_packet(restored, "", 0) == message_from_packet(received, "", 0)
