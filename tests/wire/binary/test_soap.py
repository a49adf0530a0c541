from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.wire.binary.soap import SoapHeader
from tests.wire.binary.build import pad, utf16
from tests.wire.binary.strategies import SOME, soaps


def part(identifier: int, text: str, length: int | None = None, reserved: int = 0) -> bytes:
    count = len(utf16(text)) // 2 if length is None else length
    return struct.pack("<HHI", identifier, reserved, count) + utf16(text)


EXPECTED = SoapHeader(header="<h/>", body="<b>")
RAW = pad(part(0x320, "<h/>\0")) + pad(part(0x384, "<b>\0"))


def unpack(raw: bytes) -> SoapHeader:
    return SoapHeader.unpack_from(raw, 0, len(raw))[0]


def test_layout() -> None:  # MS-MQMQ 2.2.20.7
    assert SoapHeader.unpack_from(RAW, 0, len(RAW)) == (EXPECTED, len(RAW))
    assert EXPECTED.pack() == RAW


def test_second_part_without_padding() -> None:  # CONFLICT-14
    assert unpack(part(0x320, "<h/>\0") + part(0x384, "<b>\0")) == EXPECTED


def test_padding_that_looks_like_the_second_part() -> None:
    raw = part(0x320, "<h/>\0") + b"\x84\x03" + part(0x384, "<b>\0")
    assert unpack(raw) == EXPECTED


def test_the_last_padding_may_be_missing() -> None:
    raw = pad(part(0x320, "<h>\0")) + part(0x384, "<b/>\0")
    assert len(raw) % 4 == 2
    header, end = SoapHeader.unpack_from(raw, 0, len(raw))
    assert header.body == "<b/>"
    assert end == len(raw)


def test_empty_texts() -> None:
    assert unpack(part(0x320, "") + part(0x384, "")) == SoapHeader(header="", body="")


def test_reserved_is_ignored() -> None:
    raw = pad(part(0x320, "<h/>\0", reserved=0xCDCD)) + part(0x384, "<b>\0", reserved=1)
    assert unpack(raw) == EXPECTED


@pytest.mark.parametrize(
    "raw",
    [
        part(0x321, "h\0") + part(0x384, "b\0"),
        part(0x320, "h\0") + part(0x320, "b\0"),
        part(0x320, "h\0") + bytes(4) + part(0x384, "b\0"),
        part(0x320, "h\0", 0xFFFFFFFF),
        part(0x320, "h\0", 0x80000000),
        part(0x320, "h\0") + part(0x384, "b\0", 3),
    ],
)
def test_malformed(raw: bytes) -> None:  # QB-3
    with pytest.raises(WireError):
        unpack(raw)


def test_cut_short() -> None:
    for length in range(len(RAW)):
        with pytest.raises(WireError):
            SoapHeader.unpack_from(RAW, 0, length)


@SOME
@given(soaps)
def test_round_trip(header: SoapHeader) -> None:
    raw = header.pack()
    assert len(raw) % 4 == 0
    assert SoapHeader.unpack_from(b"z" + raw, 1, 1 + len(raw)) == (header, 1 + len(raw))
