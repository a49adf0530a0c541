from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.wire.binary.properties import (
    ACK_ARRIVAL,
    ACK_RECEIVE,
    NACK_ARRIVAL,
    NACK_RECEIVE,
    PropertiesHeader,
)
from tests.wire.binary import build
from tests.wire.binary.build import utf16
from tests.wire.binary.strategies import SOME
from tests.wire.binary.strategies import properties as headers

EXPECTED = PropertiesHeader(
    ack_flags=ACK_ARRIVAL | NACK_RECEIVE,
    label="t1",
    message_class=0x8003,
    correlation_id=bytes(range(20)),
    body_type=8,
    app_specific=0xCAFE,
    allocation_size=9,
    privacy_level=1,
    hash_algorithm=0x800E,
    encryption_algorithm=0x6610,
    extension=b"ext",
    body=b"hello",
)
RAW = build.properties(
    b"hello", utf16("t1\0"), b"ext", flags=0x09, message_class=0x8003, unused=bytes(4)
)


def unpack(raw: bytes) -> PropertiesHeader:
    return PropertiesHeader.unpack_from(raw, 0, len(raw))[0]


def test_layout() -> None:  # MS-MQMQ 2.2.19.3: label, extension and body are not aligned
    assert RAW[56:70] == utf16("t1\0") + b"exthello"
    assert PropertiesHeader.unpack_from(RAW, 0, len(RAW)) == (EXPECTED, 56 + 6 + 3, len(RAW))
    assert EXPECTED.pack() == RAW


def test_cut_short() -> None:
    for length in range(len(RAW) - 4):  # all of it but the allocation that is not used
        with pytest.raises(WireError):
            PropertiesHeader.unpack_from(RAW, 0, length)


def test_ack_flags() -> None:
    raw = build.properties(flags=0xFF)
    assert unpack(raw).ack_flags == ACK_ARRIVAL | ACK_RECEIVE | NACK_ARRIVAL | NACK_RECEIVE


@pytest.mark.parametrize("size", range(9))
def test_the_end_is_padded_with_anything(size: int) -> None:
    raw = build.properties(b"x" * size, filler=b"\xcd")
    header, _body, end = PropertiesHeader.unpack_from(raw, 0, len(raw))
    assert header.body == b"x" * size
    assert end == len(raw) == 56 + (size + 3) // 4 * 4


@pytest.mark.parametrize(
    ("on_wire", "label"),
    [
        (b"", ""),
        (utf16("\0"), ""),
        (utf16("ab\0"), "ab"),
        (utf16("ab"), "ab"),  # lenient: no NUL
        (utf16("a\0\0"), "a\0"),  # one NUL is the terminator
        (utf16("x" * 249 + "\0"), "x" * 249),
        (utf16("\U0001f600\ud800\0"), "\U0001f600\ufffd"),
    ],
)
def test_labels(on_wire: bytes, label: str) -> None:
    assert unpack(build.properties(b"body", on_wire)).label == label


@pytest.mark.parametrize("length", [0xFB, 0xFF])
def test_long_labels(length: int) -> None:  # QB-3
    with pytest.raises(WireError) as caught:
        unpack(build.properties(b"", bytes(2 * length)))
    assert caught.value.field == "MessagePropertiesHeader.LabelLength"
    with pytest.raises(WireError):
        PropertiesHeader(label="x" * 251).pack()


def test_a_full_label_without_nul_goes_out_as_it_came() -> None:
    raw = build.properties(b"body", utf16("x" * 250))
    assert unpack(raw).label == "x" * 250
    assert unpack(raw).pack() == raw


@pytest.mark.parametrize("huge", [100, 0x7FFFFFFF, 0xFFFFFFFC, 0xFFFFFFFF])
def test_lengths_past_the_packet(huge: int) -> None:  # QB-3
    with pytest.raises(WireError):
        unpack(build.properties(b"x", size=huge))
    with pytest.raises(WireError):
        unpack(build.properties(b"x", extension_size=huge))
    with pytest.raises(WireError):
        unpack(build.properties(b"x", size=huge, extension_size=huge))
    with pytest.raises(WireError):
        PropertiesHeader.body_gap(build.properties(extension_size=huge), 0, 60)


def test_allocated_less_than_used() -> None:
    with pytest.raises(WireError):
        unpack(build.properties(b"hello", allocation=4))


@pytest.mark.parametrize("unused", range(10))
def test_the_next_header_is_behind_the_allocation(unused: int) -> None:
    """MS-MQMQ 2.2.19.3, AllocationBodySize: "the size, in bytes, of the data allocated for the
    MessageBody field. This size can be larger than the actual message body size"."""
    raw = build.properties(b"hello", unused=b"\xcd" * unused)
    header, body, after = PropertiesHeader.unpack_from(raw + bytes(20), 0, len(raw) + 20)
    assert (header.body, body, after) == (b"hello", 56, 56 + 5 + unused + (-(5 + unused) & 3))
    assert header.allocation_size == 5 + unused
    assert header.pack() == build.properties(b"hello", unused=bytes(unused))


@pytest.mark.parametrize("allocation", [9, 0x400000, 0xFFFFFFFF])
def test_an_allocation_beyond_the_packet_is_only_a_number(allocation: int) -> None:
    raw = build.properties(b"hello", allocation=allocation)
    header, _, after = PropertiesHeader.unpack_from(raw, 0, len(raw))
    assert (header.body, header.allocation_size, after) == (b"hello", 5, len(raw))


def test_an_allocation_larger_than_a_packet_is_not_packed() -> None:
    with pytest.raises(WireError, match="AllocationBodySize"):
        PropertiesHeader(allocation_size=0xFFFFFFFF).pack()


def test_allocation_defaults_to_the_body() -> None:
    header = PropertiesHeader(body=b"hello")
    assert header.allocation_size == 5
    grown = msgspec.structs.replace(header, body=b"hello world")
    assert unpack(grown.pack()).allocation_size == 11


def test_any_class_and_body_type_pass() -> None:  # QB-5
    header = PropertiesHeader(message_class=0xE1FF, body_type=0xFFFFFFFF)
    assert unpack(header.pack()) == header


def test_body_gap() -> None:
    without = RAW[:65] + RAW[70:]
    assert PropertiesHeader.body_gap(without, 0, len(without)) == (65, 5)
    with pytest.raises(WireError):
        PropertiesHeader.body_gap(without, 0, 55)


@SOME
@given(headers)
def test_round_trip(header: PropertiesHeader) -> None:
    raw = header.pack()
    found, body, end = PropertiesHeader.unpack_from(b"z" + raw, 1, 1 + len(raw))
    assert found == header
    assert (b"z" + raw)[body : body + len(header.body)] == header.body
    assert end == 1 + len(raw)
