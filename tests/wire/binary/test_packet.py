from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.binary.acks import ORDER_ACK_LABEL, FinalAckBody, OrderAckBody
from bridge.wire.binary.base import MAX_PACKET, TRACE, BaseHeader
from bridge.wire.binary.debug import DebugHeader
from bridge.wire.binary.internal import ConnectionParameters, EstablishConnection, SessionAck
from bridge.wire.binary.packet import Packet, PacketReader, UserMessage, restore
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.security import SecurityHeader, sid_bytes
from bridge.wire.binary.session import SessionHeader
from bridge.wire.binary.transaction import TransactionHeader
from bridge.wire.binary.user import QueueRef, UserHeader
from tests.vectors.binary import F7_BODY, PACKETS, V5_SESSION
from tests.wire.binary import build
from tests.wire.binary.build import DIRECT_DQ, MP, ZERO, C, S, direct, internal, utf16
from tests.wire.binary.strategies import SOME, user_messages

SEQUENCE = 0x60000000_00000001
F7_SENDER = sid_bytes("S-1-5-21-3181267629-1039849782-3663111779-1000")

F7 = UserMessage(
    base=BaseHeader(packet_size=2224, priority=3, time_to_reach_queue=0x54600),
    user=UserHeader(
        source=Guid.parse("557358D1-9150-9595-4997-B6E611EA26C6"),
        sent_time=0x441105E6,
        message_id=2286,
        destination=QueueRef(code=7, text="OS:a04bm02\\q"),
    ),
    security=SecurityHeader(sender_type=1, sender_id=F7_SENDER),
    properties=PropertiesHeader(ack_flags=0xF, label="mqsender label", body_type=8, body=F7_BODY),
)
V1 = UserMessage(
    base=BaseHeader(packet_size=196, priority=0, time_to_reach_queue=0x54600),
    user=UserHeader(
        source=Guid(C),
        sent_time=0x60000010,
        message_id=42,
        delivery=1,
        destination=QueueRef(code=7, text="OS:appl\\private$\\q1"),
    ),
    transaction=TransactionHeader(
        sequence_id=SEQUENCE,
        number=1,
        previous_number=0,
        first=True,
        last=True,
        final_ack=True,
        index=1,
    ),
    properties=PropertiesHeader(label="t1", body_type=0x1011, body=b"hello"),
)
V2 = UserMessage(
    base=BaseHeader(packet_size=264, priority=0),
    user=UserHeader(
        source=Guid(S),
        sent_time=0x60000011,
        message_id=1,
        destination=QueueRef(code=7, text="TCP:192.0.2.10\\PRIVATE$\\order_queue$"),
    ),
    properties=PropertiesHeader(
        label="QM Ordering Ack",
        message_class=0x00FF,
        body=OrderAckBody(sequence_id=SEQUENCE, number=1, previous_number=0).pack(),
    ),
)
V3 = UserMessage(
    base=BaseHeader(packet_size=192, priority=0),
    user=UserHeader(
        source=Guid(S),
        queue_manager=Guid(C),
        sent_time=0x60000012,
        message_id=2,
        delivery=1,
        destination=QueueRef(code=3, number=4),
    ),
    properties=PropertiesHeader(
        label="QM Ordering Ack",
        message_class=0x4000,
        body=FinalAckBody(
            sequence_id=SEQUENCE, number=1, previous_number=0, source=Guid(C), message_id=42
        ).pack(),
    ),
)
V5 = UserMessage(
    base=BaseHeader(packet_size=168, priority=3, time_to_reach_queue=0x54600),
    user=UserHeader(
        source=Guid(C),
        sent_time=0x60000010,
        message_id=43,
        destination=QueueRef(code=7, text="OS:appl\\private$\\q1"),
    ),
    properties=PropertiesHeader(body_type=0x1011, body=b"ping"),
    session=SessionHeader(ack_sequence_number=1, user_sequence_number=1),
)
MESSAGES = {"F7 mended": F7, "V1": V1, "V2": V2, "V3": V3, "V5": V5}


def read(*chunks: bytes) -> list[Packet]:
    reader = PacketReader()
    return [packet for chunk in chunks for packet in reader.feed(chunk)]


def in_bytes(data: bytes) -> Iterable[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_decode_and_encode(name: str) -> None:
    data, expected = PACKETS[name].data, MESSAGES[name]
    assert UserMessage.unpack(data) == expected
    assert UserMessage.unpack(data).base.packet_size == expected.base.packet_size
    assert expected.pack() == data
    assert UserMessage.unpack(data).pack() == data


def test_f7_as_printed() -> None:  # MS-MQQB 4.1.7; the magic stands where SentTime should be
    message = UserMessage.unpack(PACKETS["F7"].data)
    user = msgspec.structs.replace(F7.user, sent_time=0x524F494C)
    assert message == msgspec.structs.replace(F7, user=user)
    assert message.pack() == PACKETS["F7"].data


@pytest.mark.parametrize("name", PACKETS)
def test_vectors_whole_and_byte_by_byte(name: str) -> None:
    data = PACKETS[name].data
    (packet,) = read(data)
    assert read(*in_bytes(data)) == [packet]
    assert read(data + data + data[:20]) == [packet, packet]


@pytest.mark.parametrize("name", PACKETS)
def test_vectors_cut_short_just_wait(name: str) -> None:
    data = PACKETS[name].data
    (packet,) = read(data)
    for length in range(len(data)):
        reader = PacketReader()
        assert list(reader.feed(data[:length])) == []
        assert list(reader.feed(data[length:])) == [packet]


@pytest.mark.parametrize("name", [name for name in PACKETS if "counted" not in name])
def test_we_write_what_we_read(name: str) -> None:
    data = PACKETS[name].data
    (packet,) = read(data)
    assert packet.pack() == data[:1] + b"\0" + data[2:]  # byte 1 is arbitrary, we send 0


def test_each_kind_of_packet() -> None:
    stream = b"".join(PACKETS[name].data for name in ("F3", "F5", "F8", "V1", "V5", "V4"))
    kinds = [type(packet) for packet in read(stream)]
    assert kinds == [
        EstablishConnection,
        ConnectionParameters,
        SessionAck,
        UserMessage,
        UserMessage,
        SessionAck,
    ]


# CONFLICT-1


def test_session_header_counted_or_not() -> None:
    data = PACKETS["V5 counted"].data
    assert UserMessage.unpack(data) == V5
    assert read(data + PACKETS["V1"].data) == [V5, V1]
    assert read(PACKETS["V5"].data + PACKETS["V1"].data) == [V5, V1]
    assert read(PACKETS["V4 uncounted"].data + PACKETS["V1"].data)[1] == V1


def test_unpack_needs_the_session_header() -> None:
    with pytest.raises(WireError):
        UserMessage.unpack(PACKETS["V5"].data[:168])


# every optional header, in the order of MS-MQMQ 2.2.20


def everything(unused: bytes = b"") -> bytes:
    flags = MP | DIRECT_DQ | 0x20 | 0x00080000 | 0x00100000 | 0x00800000 | 0x10000000
    mqf = b"".join(struct.pack("<IHHI", 12, part, 0, 0) for part in (0x64, 0xC8, 0x12C))
    return build.packet(
        build.user(flags),
        struct.pack("<IQII", 0, SEQUENCE, 2, 1),
        struct.pack("<HHHHII", 2, 16, 0, 0, 0, 0) + S,
        build.properties(b"hello", utf16("l\0"), unused=unused),
        struct.pack("<HH16s", 1, 0, S),
        struct.pack("<HHI", 0x320, 0, 2)
        + utf16("h\0")
        + struct.pack("<HHI", 0x384, 0, 2)
        + b"b\0\0\0",
        mqf + struct.pack("<HHI", 0x15E, 0, 4) + b"sign",
        flags=0x0133,
        after=V5_SESSION,
    )


def test_all_headers() -> None:
    message = UserMessage.unpack(everything())
    assert message.base.flags & TRACE
    assert message.transaction is not None
    assert message.transaction.number == 2
    assert message.security is not None
    assert message.security.sender_id == S
    assert message.properties.body == b"hello"
    assert message.debug == DebugHeader(queue=Guid(S))
    assert message.soap is not None
    assert (message.soap.header, message.soap.body) == ("h", "b")
    assert message.multi is not None
    assert message.multi.signature == b"sign"
    assert message.session == SessionHeader(ack_sequence_number=1, user_sequence_number=1)
    assert message.pack() == everything()


def test_headers_cut_short_inside_the_packet() -> None:  # QB-3
    data = everything()[:-16]
    for size in range(16, len(data)):
        raw = data[:8] + struct.pack("<I", size) + data[12:size] + bytes(16)
        with pytest.raises(WireError):
            UserMessage.unpack(raw)


@pytest.mark.parametrize("unused", [1, 3, 4, 16, 17])
def test_headers_behind_a_body_that_does_not_fill_its_allocation(unused: int) -> None:
    """MS-MQMQ 2.2.19.3: AllocationBodySize "can be larger than the actual message body size"."""
    exact = UserMessage.unpack(everything())
    raw = everything(b"\xcd" * unused)
    message = UserMessage.unpack(raw)
    assert message.properties.body == b"hello"
    assert (message.debug, message.soap) == (exact.debug, exact.soap)
    assert (message.multi, message.session) == (exact.multi, exact.session)
    again = restore(message.wire_without_body, b"hello")
    assert len(again) == len(raw) - 16  # without the SessionHeader
    assert again[12:] == raw[12:-16]


def test_room_behind_the_last_header_is_ignored() -> None:
    raw = build.packet(build.user(), build.properties(b"hello"), b"\xcd" * 8)
    message = UserMessage.unpack(raw)
    assert message.properties.body == b"hello"
    assert restore(message.wire_without_body, b"hello") == raw


def test_unpack_wants_one_whole_user_message() -> None:
    with pytest.raises(WireError):
        UserMessage.unpack(PACKETS["F5"].data)
    with pytest.raises(WireError):
        UserMessage.unpack(PACKETS["V1"].data[:-1])


def test_pack_derives_what_follows_from_the_headers() -> None:
    bare = msgspec.structs.replace(V1, transaction=None, base=BaseHeader(flags=0x38, priority=1))
    raw = bare.pack()
    assert struct.unpack_from("<H", raw, 2) == (1,)
    assert UserMessage.unpack(raw).transaction is None
    express = msgspec.structs.replace(V1, user=msgspec.structs.replace(V1.user, delivery=0))
    with pytest.raises(WireError):  # TH needs DM 1
        express.pack()
    traced = msgspec.structs.replace(V1, base=BaseHeader(flags=TRACE, priority=0))
    assert struct.unpack_from("<H", traced.pack(), 2) == (0,)  # TR needs DH


def test_pack_refuses_more_than_a_packet_holds() -> None:  # MS-MQMQ 2.2.19.1
    fits = MAX_PACKET - len(V1.pack()) + len(V1.properties.body) + 1  # its padding
    big = msgspec.structs.replace(V1.properties, label="t1", body=bytes(fits))
    assert len(msgspec.structs.replace(V1, properties=big).pack()) == MAX_PACKET
    too_big = msgspec.structs.replace(big, body=bytes(fits + 1))
    with pytest.raises(WireError):
        msgspec.structs.replace(V1, properties=too_big).pack()


# equality


def test_equality_looks_at_headers_only() -> None:
    received = UserMessage.unpack(PACKETS["V1"].data)
    assert received.wire_without_body != V1.wire_without_body
    assert received == V1
    assert hash(received) == hash(V1)
    assert received != msgspec.structs.replace(V1, transaction=None)
    assert received != msgspec.structs.replace(V1, base=BaseHeader(priority=7))
    assert received != PACKETS["V1"].data


# wire_without_body and restore


@pytest.mark.parametrize("name", ["F7", "V1", "V2", "V3"])
def test_restore_gives_the_very_bytes(name: str) -> None:
    data = bytearray(PACKETS[name].data)
    data[1] = 0xCD  # also what is reserved
    message = UserMessage.unpack(bytes(data))
    body = message.properties.body
    assert len(message.wire_without_body) == len(data) - len(body)
    assert restore(message.wire_without_body, body) == bytes(data)
    assert UserMessage.restored(message.wire_without_body, body) == message


@pytest.mark.parametrize("name", ["V5", "V5 counted"])
def test_wire_has_no_session_header(name: str) -> None:
    message = UserMessage.unpack(PACKETS[name].data)
    expected = bytearray(PACKETS["V5"].data[:168])
    expected[2] &= ~0x10 & 0xFF  # nothing rides on it any more
    assert restore(message.wire_without_body, b"ping") == bytes(expected)
    alone = UserMessage.restored(message.wire_without_body, b"ping")
    assert alone == msgspec.structs.replace(message, session=None)


@pytest.mark.parametrize("body", [b"", b"hell", b"hello!"])
def test_restore_wants_the_right_body(body: bytes) -> None:
    wire = UserMessage.unpack(PACKETS["V1"].data).wire_without_body
    with pytest.raises(WireError):
        restore(wire, body)
    for length in range(len(wire)):
        with pytest.raises(WireError):
            restore(wire[:length], b"hello")


@SOME
@given(user_messages())
def test_round_trip(message: UserMessage) -> None:
    raw = message.pack()
    received = UserMessage.unpack(raw)
    assert received == message
    assert received.pack() == raw
    assert read(raw, raw) == [message, message]
    body = message.properties.body
    restored = UserMessage.restored(received.wire_without_body, body)
    assert restored == msgspec.structs.replace(message, session=None)


# QB-4


def test_order_and_final_acks() -> None:
    assert (V2.is_order_ack, V2.is_final_ack) == (True, False)
    assert (V3.is_order_ack, V3.is_final_ack) == (False, True)
    assert (V1.is_order_ack, V1.is_final_ack) == (False, False)
    assert OrderAckBody.unpack(V2.properties.body).number == 1
    assert FinalAckBody.unpack(V3.properties.body).message_id == 42


@pytest.mark.parametrize(
    ("queue", "label", "message_class", "kind"),
    [
        (QueueRef(code=7, text="os:X\\private$\\ORDER_QUEUE$"), ORDER_ACK_LABEL, 0xFF, "order"),
        (QueueRef(code=3, number=4), ORDER_ACK_LABEL, 0x8009, "final"),
        (QueueRef(code=3, number=4), ORDER_ACK_LABEL, 0xC002, "final"),
        (QueueRef(code=3, number=4), ORDER_ACK_LABEL, 0x0002, ""),
        (QueueRef(code=3, number=5), ORDER_ACK_LABEL, 0xFF, ""),
        (QueueRef(code=3, number=4), "qm ordering ack", 0xFF, ""),
        (QueueRef(code=7, text="OS:x\\order_queue$"), ORDER_ACK_LABEL, 0xFF, ""),
        (QueueRef(code=5, number=4), ORDER_ACK_LABEL, 0xFF, ""),
    ],
)
def test_which_messages_are_acks(
    queue: QueueRef, label: str, message_class: int, kind: str
) -> None:
    message = msgspec.structs.replace(
        V2,
        user=msgspec.structs.replace(V2.user, destination=queue),
        properties=PropertiesHeader(label=label, message_class=message_class),
    )
    assert (message.is_order_ack, message.is_final_ack) == (kind == "order", kind == "final")


def test_recoverable() -> None:
    assert V1.is_recoverable
    assert not V5.is_recoverable


# the reader


def test_packets_before_a_bad_one_come_first() -> None:
    reader = PacketReader()
    found = reader.feed(PACKETS["V1"].data * 2 + b"\x11" * 16)
    assert [next(found), next(found)] == [V1, V1]
    with pytest.raises(WireError):
        next(found)


def test_a_broken_stream_stays_broken() -> None:
    reader = PacketReader()
    for _ in range(2):
        with pytest.raises(WireError, match="VersionNumber"):
            list(reader.feed(bytes(16)))
    with pytest.raises(WireError, match="VersionNumber"):
        list(reader.feed(PACKETS["V1"].data))


@pytest.mark.parametrize(
    "head",
    [
        build.base(168, version=0x11),
        build.base(168, magic=b"HTTP"),
        build.base(15),
        build.base(0x400001),
        build.base(0x3FFFFF, flags=0x0B),  # no internal packet is that long
        b"GET / HTTP/1.1\r\n",
    ],
)
def test_a_bad_base_header_is_refused_at_once(head: bytes) -> None:  # QB-2, QB-3
    reader = PacketReader()
    assert list(reader.feed(head[:15])) == []
    with pytest.raises(WireError):
        list(reader.feed(head[15:]))


def test_max_packet_while_shaking_hands() -> None:
    reader = PacketReader(max_packet=EstablishConnection.SIZE)
    assert len(list(reader.feed(PACKETS["F3"].data))) == 1
    with pytest.raises(WireError):
        list(reader.feed(build.base(573)))


def test_max_packet_may_be_raised_between_two_packets_of_one_chunk() -> None:
    reader = PacketReader(max_packet=572)
    packets = []
    for packet in reader.feed(PACKETS["F5"].data + PACKETS["F7 mended"].data):
        packets.append(packet)
        reader.max_packet = MAX_PACKET
    assert packets[1:] == [F7]


@pytest.mark.parametrize("kind", [0, 4, 15])
def test_unknown_internal_packets(kind: int) -> None:  # MS-MQQB 2.2.1
    with pytest.raises(WireError, match=r"InternalHeader\.PT"):
        read(internal(kind, bytes(12)))


def test_internal_packet_without_internal_header() -> None:
    with pytest.raises(WireError):
        read(build.base(16, flags=0x0B) + bytes(4))


@pytest.mark.parametrize(
    "content",
    [
        (build.user(DIRECT_DQ), build.properties()),  # MP=0
        (build.user(MP | DIRECT_DQ | 0x00100000), bytes(20), build.properties()),  # TH, DM=0
        (build.user(MP | DIRECT_DQ | 0x40), build.properties()),  # DM=2
        (build.user(MP | DIRECT_DQ | 0x60), build.properties()),  # DM=3
        (build.user(MP | DIRECT_DQ | 0x02000000), build.properties()),  # AH
        (build.user(), build.properties(label=bytes(0x1F6))),  # LabelLength 0xFB
        (build.user(), build.properties(size=1)),  # runs past PacketSize
        (build.user(), build.properties(size=0xFFFFFFFF)),
        (build.user(MP | DIRECT_DQ | 0x00800000), build.properties(), bytes(44)),  # MQF ids
        (build.user(MP | DIRECT_DQ | 0x10000000), build.properties(), bytes(16)),  # Soap ids
        (build.user(),),  # no properties
        (),
    ],
)
def test_structural_violations(content: tuple[bytes, ...]) -> None:  # QB-3
    with pytest.raises(WireError) as caught:
        read(build.packet(*content) + bytes(64))
    assert caught.value.field
    assert caught.value.rule


def test_lengths_may_not_reach_into_the_next_packet() -> None:
    first = build.packet(build.user(), build.properties(size=4))
    with pytest.raises(WireError):
        read(first + PACKETS["V1"].data)


def test_the_largest_packet_in_small_pieces() -> None:
    body = bytes(MAX_PACKET - 16 - len(build.user()) - 56)
    data = build.packet(build.user(), build.properties(body))
    assert len(data) == MAX_PACKET
    reader = PacketReader()
    pieces = (data[i : i + 65536] for i in range(0, len(data), 65536))
    (message,) = [packet for piece in pieces for packet in reader.feed(piece)]
    assert isinstance(message, UserMessage)
    assert message.properties.body == body
    assert len(reader._pending) == 0


def test_waiting_keeps_no_more_than_one_packet() -> None:
    reader = PacketReader()
    data = PACKETS["V1"].data * 1000
    assert len(list(reader.feed(data + data[:100]))) == 1000
    assert len(reader._pending) == 100


def test_a_waiting_session_header_is_waited_for_once() -> None:
    data = PACKETS["V5"].data
    reader = PacketReader()
    assert list(reader.feed(data[:168])) == []
    assert reader._needed == 184
    assert list(reader.feed(data[168:])) == [V5]
    assert reader._needed == 16


def test_null_queue_manager_is_the_constant() -> None:
    message = UserMessage.unpack(build.packet(build.user(manager=ZERO), build.properties()))
    assert message.user.queue_manager is NULL_GUID
    assert message.user.destination.pack() == direct("OS:a\\q")
