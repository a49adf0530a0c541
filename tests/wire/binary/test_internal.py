from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.binary.internal import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    packet_type,
)
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.session import SessionHeader
from tests.vectors.binary import PACKETS
from tests.wire.binary.build import C, S, base, internal
from tests.wire.binary.strategies import SOME, packets

CLIENT = Guid.parse("557358D1-9150-9595-4997-B6E611EA26C6")
SERVER = Guid.parse("43CD8907-394C-8F11-4445-9078909EA0FC")
OTHER_CLIENT = Guid.parse("1F742305-BE5E-4177-BC77-C4DD7719E474")
OTHER_SERVER = Guid.parse("3C3A6AEB-F567-4143-87D3-85CF4D68CEB4")
PARAMETERS = ConnectionParameters(
    recoverable_ack_timeout=0x5D8, ack_timeout=0x1D4C0, window_size=64
)


def with_reserved(raw: bytes, reserved: int) -> bytes:
    """Byte 1 is arbitrary in a capture and zero from us."""
    return raw[:1] + bytes((reserved,)) + raw[2:]


def test_establish_connection_from_the_spec() -> None:  # MS-MQQB 4.1.3
    raw = PACKETS["F3"].data
    expected = EstablishConnection(
        client=CLIENT, server=SERVER, timestamp=0x1DDECA4E, operating_system=0x0310
    )
    assert EstablishConnection.unpack(raw) == expected
    assert with_reserved(expected.pack(), 0xC0) == raw


def test_establish_connection_response_from_the_spec() -> None:  # MS-MQQB 4.1.4
    raw = PACKETS["F4"].data
    expected = EstablishConnection(
        client=OTHER_CLIENT, server=OTHER_SERVER, timestamp=0x1DDECA4E, operating_system=0x0310
    )
    assert EstablishConnection.unpack(raw) == expected
    assert with_reserved(expected.pack(), 0x5A) == raw


def test_refusal() -> None:  # CS, MS-MQQB 2.2.1
    content = struct.pack("<16s16sIHH", C, S, 7, 0x310, 0) + b"\x5a" * 512
    raw = internal(2, content, bits=0x10)
    expected = EstablishConnection(client=Guid(C), server=Guid(S), timestamp=7, refused=True)
    assert EstablishConnection.unpack(raw) == expected
    assert expected.pack() == raw


def test_establish_connection_defaults_and_ignored_bytes() -> None:
    content = struct.pack("<16s16sIHH", C, bytes(16), 7, 0x310, 0xCDCD) + b"\xcd" * 512
    raw = internal(2, content, bits=0xFFE0)
    packet = EstablishConnection.unpack(raw)
    assert packet == EstablishConnection(client=Guid(C), timestamp=7)
    assert packet.server == NULL_GUID


@pytest.mark.parametrize("name", ["F5", "F6"])
def test_connection_parameters_from_the_spec(name: str) -> None:  # MS-MQQB 4.1.5, 4.1.6
    raw = PACKETS[name].data
    assert ConnectionParameters.unpack(raw) == PARAMETERS
    assert with_reserved(PARAMETERS.pack(), 0xC0) == raw


def test_window_comes_after_the_reserved_word() -> None:  # MS-MQQB 2.2.2
    raw = internal(3, struct.pack("<IIHH", 500, 20000, 0xCDCD, 7), bits=0x10)
    assert ConnectionParameters.unpack(raw) == ConnectionParameters(
        recoverable_ack_timeout=500, ack_timeout=20000, window_size=7, refused=True
    )


def test_session_ack_from_the_spec() -> None:  # MS-MQQB 4.1.8
    raw = PACKETS["F8"].data
    expected = SessionAck(session=SessionHeader(ack_sequence_number=1, window_size=64))
    assert SessionAck.unpack(raw) == expected
    assert with_reserved(expected.pack(), 0xCD) == raw


V4 = SessionAck(
    session=SessionHeader(
        ack_sequence_number=3,
        recoverable_ack_number=1,
        recoverable_ack_flags=0b11,
        user_sequence_number=2,
        recoverable_sequence_number=1,
    )
)


def test_session_ack_v4() -> None:
    assert SessionAck.unpack(PACKETS["V4"].data) == V4
    assert V4.pack() == PACKETS["V4"].data


def test_session_ack_that_does_not_count_its_header() -> None:  # CONFLICT-1
    assert SessionAck.unpack(PACKETS["V4 uncounted"].data) == V4


@pytest.mark.parametrize(
    ("cls", "name"),
    [(EstablishConnection, "F3"), (ConnectionParameters, "F5"), (SessionAck, "F8")],
)
def test_cut_short(
    cls: type[EstablishConnection | ConnectionParameters | SessionAck], name: str
) -> None:
    raw = PACKETS[name].data
    for length in range(len(raw)):
        with pytest.raises(WireError):
            cls.unpack(raw[:length])


@pytest.mark.parametrize(
    "raw",
    [
        PACKETS["F3"].data,  # another type
        internal(3, bytes(11)),
        internal(3, bytes(13)),
        internal(3, bytes(12), flags=0x03),  # IN is not set
        internal(3, bytes(12), flags=0x1B),  # SH
        internal(3, bytes(12), flags=0x2B),  # DH is for user messages
        internal(0, bytes(12)),
    ],
)
def test_not_connection_parameters(raw: bytes) -> None:  # QB-3
    with pytest.raises(WireError):
        ConnectionParameters.unpack(raw)


@pytest.mark.parametrize(
    "raw",
    [
        internal(1, bytes(16)),  # SH is not set
        internal(1, bytes(20), flags=0x1B),
        internal(1, bytes(4), flags=0x1B),
        internal(2, bytes(16), flags=0x1B),
    ],
)
def test_not_a_session_ack(raw: bytes) -> None:
    with pytest.raises(WireError):
        SessionAck.unpack(raw)


def test_packet_type() -> None:
    assert packet_type(internal(3, b"", bits=0xFFF0)) == 3
    with pytest.raises(WireError):
        packet_type(base(19, 0x0B) + bytes(3))


@SOME
@given(packets)
def test_round_trip(packet: EstablishConnection | ConnectionParameters | SessionAck) -> None:
    raw = packet.pack()
    assert type(packet).unpack(raw) == packet
    if not isinstance(packet, UserMessage):
        assert type(packet).unpack(raw).pack() == raw
        assert len(raw) == packet.SIZE
