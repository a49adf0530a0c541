"""The kit itself, against the bytes printed in the specification and in its digest."""

import struct
from uuid import UUID

from tests.outside.expected import (
    expected_cp_response,
    expected_ec_response,
    expected_final_ack,
    expected_order_ack,
    expected_session_ack,
)
from tests.outside.rawmsmq import (
    Message,
    SessionHeader,
    Tx,
    build,
    cp_request,
    direct,
    ec_request,
    private,
    security_header,
    sequence_id,
    session_ack,
    without_body,
)
from tests.outside.rawparse import Establish, Parameters, Received, SessionAck, parse

CLIENT = UUID("11111111-2222-3333-4444-555555555555")
SERVER = UUID("A0B1C2D3-E4F5-6071-8293-A4B5C6D7E8F9")
F3_CLIENT = UUID("557358D1-9150-9595-4997-B6E611EA26C6")
F3_SERVER = UUID("43CD8907-394C-8F11-4445-9078909EA0FC")
F4_CLIENT = UUID("1F742305-BE5E-4177-BC77-C4DD7719E474")
F4_SERVER = UUID("3C3A6AEB-F567-4143-87D3-85CF4D68CEB4")

F3 = bytes.fromhex(
    "10C00B004C494F523C020000FFFFFFFF00000200D158735550919595 4997B6E611EA26C6"
    "0789CD434C39118F44459078909EA0FC4ECADE1D10030000"
) + bytes([0x5A] * 512)
F5 = bytes.fromhex("10C00B004C494F5220000000FFFFFFFF00000300D8050000C0D4010000004000")
F7_HEAD = bytes.fromhex(
    "100003004C494F52B008000000460500D1587355509195954997B6E611EA26C6"
    "00000000000000000000000000000000FFFFFFFF4C494F52EE080000001C2800"
    "1A004F0053003A0061003000340062006D00300032005C007100000001001C00"
    "000000000000000000000000010500000000000515000000AD4A9EBD36D9FA3D"
    "63A656DAE80300000F0F00000000000000000000000000000000000000000000"
    "0800000000000000D0070000D007000000000000048000000168000000000000"
    "6D007100730065006E0064006500720020006C006100620065006C000000"
)
F8 = bytes.fromhex("10CD1B004C494F5224000000FFFFFFFF00000100010000000000000000000000 40000000")
V1 = bytes.fromhex(
    "100000004C494F52C40000000046050011111111222233334444555555555555"
    "00000000000000000000000000000000FFFFFFFF100000602A000000201C3000"
    "28004F0053003A006100700070006C005C007000720069007600610074006500"
    "24005C00710031000000 00001E000000010000000000006001000000 00000000"
    "0003000000000000000000000000000000000000000000001110000000000000"
    "0500000005000000000000000480000001680000000000007400310000006865"
    "6C6C6F00"
)
V2 = bytes.fromhex(
    "100000004C494F5208010000FFFFFFFFD3C2B1A0F5E471608293A4B5C6D7E8F9"
    "00000000000000000000000000000000FFFFFFFF1100006001000000001C2000"
    "4A005400430050003A003100390032002E0030002E0032002E00310030005C00"
    "5000520049005600410054004500 24005C006F0072006400650072005F007100"
    "75006500750065002400000000 10FF0000000000000000000000000000000000"
    "0000000000000000000000002400000024000000000000000480000001680000"
    "0000000051004D0020004F00720064006500720069006E006700200041006300"
    "6B00000001000000000000600100000000000000000000000000000000000000"
    "0000000000000000"
)
V4 = bytes.fromhex("10001B004C494F5224000000FFFFFFFF000001000300010003000000020001004000 0000")

V1_MESSAGE = Message(
    source=CLIENT,
    message_id=42,
    destination=direct(r"OS:appl\private$\q1"),
    tx=Tx(sequence_id=sequence_id(0x60000000, 1), number=1, previous=0, final_ack=True),
    label="t1",
    body=b"hello",
    body_type=0x1011,
    sent_time=0x60000010,
)


def reserved_cleared(packet: bytes) -> bytes:
    return packet[:1] + b"\0" + packet[2:]


def received(packet: bytes) -> Received:
    parsed = parse(packet)
    assert isinstance(parsed, Received)
    return parsed


def test_establish_connection() -> None:  # MS-MQQB 4.1.3
    assert ec_request(F3_CLIENT, F3_SERVER) == reserved_cleared(F3)
    parsed = parse(F3)
    assert isinstance(parsed, Establish)
    assert (parsed.client, parsed.server, parsed.refused) == (F3_CLIENT, F3_SERVER, False)
    assert (parsed.timestamp, parsed.system) == (0x1DDECA4E, 0x0310)


def test_establish_connection_response() -> None:  # MS-MQQB 4.1.4
    f4 = bytearray(F3)
    f4[20:52] = bytes.fromhex("0523741F5EBE7741BC77C4DD7719E474EB6A3A3C67F5434187D385CF4D68CEB4")
    expected = expected_ec_response(client=F4_CLIENT, server=F4_SERVER)
    assert expected == reserved_cleared(bytes(f4))
    refused = expected_ec_response(client=F4_CLIENT, server=F4_SERVER, refused=True)
    assert [i for i in range(572) if refused[i] != expected[i]] == [18]
    assert refused[18] == 0x12


def test_connection_parameters() -> None:  # MS-MQQB 4.1.5
    assert cp_request(recoverable_ack_ms=0x5D8, ack_ms=0x1D4C0) == reserved_cleared(F5)
    assert expected_cp_response(recoverable_ack_ms=0x5D8, ack_ms=0x1D4C0) == reserved_cleared(F5)
    parsed = parse(F5)
    assert isinstance(parsed, Parameters)
    assert (parsed.recoverable_ack_ms, parsed.ack_ms, parsed.window) == (0x5D8, 0x1D4C0, 64)


def test_user_message_with_a_sid() -> None:  # MS-MQQB 4.1.7
    sid = bytes.fromhex("010500000000000515000000AD4A9EBD36D9FA3D63A656DAE8030000")
    message = Message(
        source=F3_CLIENT,
        message_id=2286,
        destination=direct(r"OS:a04bm02\q"),
        label="mqsender label",
        body=b"a\0" * 1000,
        body_type=8,
        acks=0x0F,
        sent_time=0x524F494C,
        security=security_header(sid),
    )
    packet = build(message)
    assert packet[:222] == F7_HEAD
    assert len(packet) == 2224
    assert without_body(message) == F7_HEAD + b"\0\0"


def test_session_ack() -> None:  # MS-MQQB 4.1.8, V4
    assert expected_session_ack(ack=1) == reserved_cleared(F8)
    header = SessionHeader(ack=3, recoverable_ack=1, flags=3, sent=2, sent_recoverable=1)
    assert session_ack(header) == V4
    for packet, value in ((F8, SessionHeader(ack=1)), (V4, header)):
        parsed = parse(packet)
        assert isinstance(parsed, SessionAck)
        assert parsed.session == value


def test_transactional_message() -> None:  # V1
    assert build(V1_MESSAGE) == V1
    assert without_body(V1_MESSAGE) == V1[:-6] + V1[-1:]


def test_order_ack() -> None:  # V2
    parsed = received(V2)
    assert parsed.is_order_ack
    assert not parsed.is_final_ack
    assert parsed.sequence == (sequence_id(0x60000000, 1), 1, 0)
    assert (parsed.message_id, parsed.sent_time, parsed.source) == (1, 0x60000011, SERVER)
    expected = expected_order_ack(
        parsed,
        server=SERVER,
        peer="192.0.2.10",
        sequence_id=sequence_id(0x60000000, 1),
        number=1,
    )
    assert expected == V2


def v3() -> bytes:
    """V3 is given as its differences from V2."""
    name = struct.unpack_from("<H", V2, 64)[0] + 2
    packet = bytearray(V2[:64] + bytes.fromhex("04000000") + V2[64 + name :])
    packet[8:12] = bytes.fromhex("C0000000")
    packet[32:48] = CLIENT.bytes_le
    packet[56:64] = bytes.fromhex("02000000200C2000")
    packet[52:56] = bytes.fromhex("12000060")
    packet[70:72] = bytes.fromhex("0040")
    packet[-36:] = bytes.fromhex(
        "01000000000000600100000000000000 11111111222233334444555555555555 2A000000"
    )
    return bytes(packet)


def test_final_ack() -> None:  # V3
    parsed = received(v3())
    assert len(parsed.raw) == 192
    assert parsed.is_final_ack
    assert parsed.is_recoverable
    assert parsed.destination == private(4)
    assert V1_MESSAGE.tx is not None
    expected = expected_final_ack(
        parsed, server=SERVER, peer=CLIENT, tx=V1_MESSAGE.tx, source=CLIENT, message_id=42
    )
    assert expected == v3()


def test_piggybacked_header_in_both_places() -> None:  # V5, CONFLICT-1
    message = Message(
        source=CLIENT, message_id=7, destination=direct(r"OS:appl\private$\q1"), body=b"ping"
    )
    header = SessionHeader(ack=1, sent=1)
    outside = build(message, header)
    assert outside[:12] == bytes.fromhex("100013004C494F52A8000000")
    assert len(outside) == 184
    assert outside[-16:] == bytes.fromhex("01000000000000000100000040000000")
    assert received(outside).session == header
    inside = build(message, header, counted=True)
    assert inside[8:12] == struct.pack("<I", 184)
    assert inside[:8] + inside[12:] == outside[:8] + outside[12:]
