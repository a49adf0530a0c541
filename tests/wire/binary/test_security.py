from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.binary.security import SENDER_SID, SecurityHeader, sid_bytes, sid_text
from tests.wire.binary.strategies import SOME, securities

SID = struct.pack("<BB6B5I", 1, 5, 0, 0, 0, 0, 0, 5, 21, 1, 2, 3, 1000)


def test_five_items_each_padded() -> None:  # MS-MQMQ 2.2.20.6
    head = struct.pack("<HHHHII", 0x03F1, 28, 5, 2, 3, 1)
    raw = head + SID + b"key..\0\0\0" + b"sg\0\0" + b"crt\0" + b"p\0\0\0"
    header, end = SecurityHeader.unpack_from(raw, 0, len(raw))
    assert header == SecurityHeader(
        sender_type=SENDER_SID,
        authenticated=True,
        encrypted=True,
        default_provider=True,
        security_data=True,
        signature_type=3,
        sender_id=SID,
        encryption_key=b"key..",
        signature=b"sg",
        certificate=b"crt",
        provider_info=b"p",
    )
    assert end == len(raw)
    assert header.pack() == raw
    for length in range(len(raw)):
        with pytest.raises(WireError):
            SecurityHeader.unpack_from(raw, 0, length)


def test_items_are_there_by_their_size_not_by_ai() -> None:  # CONFLICT-5
    raw = struct.pack("<HHHHII", 0x0001, 28, 0, 0, 0, 0) + SID
    header, _end = SecurityHeader.unpack_from(raw, 0, len(raw))
    assert not header.security_data
    assert header.sender_id == SID
    assert header.pack() == raw


@pytest.mark.parametrize(
    ("bit", "field"),
    [
        (0x10, "authenticated"),
        (0x20, "encrypted"),
        (0x40, "default_provider"),
        (0x80, "security_data"),
    ],
)
def test_bits(bit: int, field: str) -> None:
    raw = struct.pack("<HHHHII", bit | 0xF000, 0, 0, 0, 0, 0)
    header, end = SecurityHeader.unpack_from(raw, 0, 16)
    assert header == SecurityHeader(**{field: True})  # type: ignore[arg-type]
    assert end == 16
    assert header.pack() == struct.pack("<HHHHII", bit, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "sizes",
    [
        (0xFFFF, 0, 0, 0, 0),
        (0, 0xFFFF, 0, 0, 0),
        (0, 0, 0xFFFF, 0, 0),
        (0, 0, 0, 0xFFFF, 0),
        (0, 0, 0, 0x10000, 0),  # a certificate has at most 0xFFFF bytes
        (0, 0, 0, 0xFFFFFFFF, 0),
        (0, 0, 0, 0, 0xFFFFFFFF),
        (0, 0, 0, 0, 0xFFFFFFFD),
    ],
)
def test_sizes_past_the_packet(sizes: tuple[int, ...]) -> None:  # QB-3
    with pytest.raises(WireError):
        SecurityHeader.unpack_from(struct.pack("<HHHHII", 0, *sizes) + bytes(64), 0, 80)


@SOME
@given(securities)
def test_round_trip(header: SecurityHeader) -> None:
    raw = header.pack()
    assert len(raw) % 4 == 0
    assert SecurityHeader.unpack_from(b"z" + raw, 1, 1 + len(raw)) == (header, 1 + len(raw))


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("S-1-5-21-1-2-3-1000", SID),
        ("S-1-1-0", bytes.fromhex("0101000000000001 00000000")),
        ("S-1-5", bytes.fromhex("0100000000000005")),
        ("S-1-0x123456789abc-4294967295", bytes.fromhex("0101123456789abcffffffff")),
    ],
)
def test_sid_text(text: str, raw: bytes) -> None:  # MS-DTYP 2.4.2
    assert sid_text(raw) == text
    assert sid_bytes(text) == raw


@pytest.mark.parametrize("raw", [b"", SID[:-1], SID + b"\0", b"\2" + SID[1:], bytes(8), b"\1\x10"])
def test_bad_sids(raw: bytes) -> None:
    with pytest.raises(WireError):
        sid_text(raw)


@pytest.mark.parametrize(
    "text", ["", "S-1", "S-2-5", "S-1-5-4294967296", "S-1-5-x", "S-1-5" + "-1" * 16, "S-1-5-\u0661"]
)
def test_bad_sid_texts(text: str) -> None:
    with pytest.raises(WireError):
        sid_bytes(text)


@SOME
@given(st.integers(0, 15), st.binary(min_size=66, max_size=66))
def test_sids_round_trip(count: int, noise: bytes) -> None:
    raw = bytes((1, count)) + noise[: 6 + 4 * count]
    assert sid_bytes(sid_text(raw)) == raw
