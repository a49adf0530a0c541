from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.binary.multiqueue import (
    DIRECT,
    DISTRIBUTION_LIST,
    PRIVATE,
    PUBLIC,
    MqfElement,
    MultiQueueHeader,
)
from tests.wire.binary.build import C, S, pad, utf16
from tests.wire.binary.strategies import SOME, multis


def address(
    identifier: int, count: int, content: bytes = b"", size: int | None = None, reserved: int = 0
) -> bytes:
    total = 12 + len(content) if size is None else size
    return pad(struct.pack("<IHHI", total, identifier, reserved, count) + content)


def signature(raw: bytes = b"", identifier: int = 0x15E, size: int | None = None) -> bytes:
    return pad(struct.pack("<HHI", identifier, 0, len(raw) if size is None else size) + raw)


# GUIDs start on 4-byte boundaries, direct names right behind their type. CONFLICT-14
MIXED = (
    struct.pack("<HH16s", 1, 0, S)
    + struct.pack("<HH16sI", 2, 0, C, 0xA)
    + struct.pack("<H", 3)
    + utf16("OS:ab\\q\0")
    + struct.pack("<H", 3)
    + utf16("OS:c\\q\0")
    + struct.pack("<H", 6)  # ends on a 4-byte boundary: no padding
    + S
)
NOBODY = address(0xC8, 0) + address(0x12C, 0)
RAW = address(0x64, 5, MIXED) + NOBODY + signature(b"sig")
EXPECTED = MultiQueueHeader(
    destination=(
        MqfElement(kind=PUBLIC, guid=Guid(S)),
        MqfElement(kind=PRIVATE, guid=Guid(C), number=0xA),
        MqfElement(kind=DIRECT, text="OS:ab\\q"),
        MqfElement(kind=DIRECT, text="OS:c\\q"),
        MqfElement(kind=DISTRIBUTION_LIST, guid=Guid(S)),
    ),
    signature=b"sig",
)


def unpack(raw: bytes) -> MultiQueueHeader:
    return MultiQueueHeader.unpack_from(raw, 0, len(raw))[0]


def test_layout() -> None:  # MS-MQMQ 2.2.20.1, 2.2.18.1.4
    assert MultiQueueHeader.unpack_from(RAW, 0, len(RAW)) == (EXPECTED, len(RAW))
    assert EXPECTED.pack() == RAW


def test_guid_behind_a_name_of_odd_length_is_aligned() -> None:
    content = struct.pack("<H", 3) + utf16("ab\0") + struct.pack("<H", 1) + b"\xcd\xcd" + S
    raw = address(0x64, 2, content) + NOBODY + signature()
    expected = (MqfElement(kind=DIRECT, text="ab"), MqfElement(kind=PUBLIC, guid=Guid(S)))
    assert (12 + len(struct.pack("<H", 3) + utf16("ab\0")) + 2) % 4 == 2
    assert unpack(raw).destination == expected


def test_zero_bytes_across_two_characters_do_not_end_a_name() -> None:
    content = struct.pack("<H", 3) + utf16("\u6100\u0061\u4200\u0100\0")
    raw = address(0x64, 1, content) + NOBODY + signature()
    assert unpack(raw).destination[0].text == "\u6100\u0061\u4200\u0100"


def test_each_address_has_its_own_elements() -> None:
    one = struct.pack("<HH16s", 1, 0, S)
    raw = address(0x64, 0) + address(0xC8, 1, one) + address(0x12C, 1, one) + signature()
    found = unpack(raw)
    assert (len(found.destination), len(found.admin), len(found.response)) == (0, 1, 1)
    assert found.pack() == raw


def test_header_size_decides_where_the_next_one_starts() -> None:
    raw = address(0x64, 0, b"\xcd" * 5, reserved=7) + NOBODY + signature()
    assert unpack(raw) == MultiQueueHeader()


def test_last_padding_may_be_missing() -> None:
    assert unpack(RAW[:-1]) == EXPECTED


@pytest.mark.parametrize(
    "raw",
    [
        address(0x65, 0) + NOBODY + signature(),
        address(0x64, 0) + address(0x12C, 0) + address(0xC8, 0) + signature(),
        address(0x64, 0) + NOBODY + signature(identifier=0x15F),
        address(0x64, 0) + NOBODY + signature(size=1),
        address(0x64, 0) + NOBODY + signature(size=0xFFFFFFFF),
        address(0x64, 0, size=11) + NOBODY + signature(),
        address(0x64, 0, size=0) + NOBODY + signature(),
        address(0x64, 0, size=0xFFFFFFFF) + NOBODY + signature(),
        address(0x64, 0xFFFFFFFF) + NOBODY + signature(),
        address(0x64, 1) + NOBODY + signature(),
        address(0x64, 1, struct.pack("<H", 3) + utf16("no end")) + NOBODY + signature(),
        address(0x64, 1, struct.pack("<HH", 1, 0) + S[:15]) + NOBODY + signature(),
        address(0x64, 1, struct.pack("<HH", 2, 0) + S) + NOBODY + signature(),
        address(0x64, 3, struct.pack("<H", 3) + b"\0\0") + NOBODY + signature(),
    ],
)
def test_malformed(raw: bytes) -> None:  # QB-3
    with pytest.raises(WireError):
        unpack(raw)


@pytest.mark.parametrize("kind", [0, 4, 5, 7, 8, 0xFFFF])
@pytest.mark.parametrize("content", [b"", b"\xcd", S, bytes(100), b"\x03\0no NUL"])
def test_an_element_of_an_unknown_type_is_skipped_by_the_header_size(
    kind: int, content: bytes
) -> None:
    """MS-MQMQ 2.2.18.1.4 lists the types 1, 2, 3 and 6; 2.2.20.2: "HeaderSize [...] MUST contain
    the size, in bytes, of this header including the variable data". What comes behind is read."""
    known = struct.pack("<HH16s", 1, 0, S)
    later = struct.pack("<H", 3) + utf16("OS:ab\\q\0")
    unknown = struct.pack("<H", kind) + content
    raw = (
        address(0x64, 3, known + unknown + later)
        + address(0xC8, 1, unknown)
        + address(0x12C, 1, later)
        + signature(b"sig")
    )
    found, end = MultiQueueHeader.unpack_from(raw, 0, len(raw))
    assert found == MultiQueueHeader(
        destination=(MqfElement(kind=PUBLIC, guid=Guid(S)),),
        response=(MqfElement(kind=DIRECT, text="OS:ab\\q"),),
        signature=b"sig",
    )
    assert end == len(raw)


def test_cut_short() -> None:
    for length in range(len(RAW) - 1):
        with pytest.raises(WireError):
            MultiQueueHeader.unpack_from(RAW, 0, length)


@SOME
@given(multis)
def test_round_trip(header: MultiQueueHeader) -> None:
    raw = header.pack()
    assert len(raw) % 4 == 0
    assert MultiQueueHeader.unpack_from(b"z" + raw, 1, 1 + len(raw)) == (header, 1 + len(raw))
