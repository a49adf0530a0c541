"""The verification trailer. MS-RPCE 2.2.2.13, RR-10"""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.rpc.bind import NDR, NDR64, Syntax
from bridge.wire.rpc.verification import Trailer, find_trailer
from tests.wire.rpc import raw

MAGIC = bytes.fromhex("8ae3137102f43671")
ECHO = Syntax(Guid.parse(raw.ECHO_UUID), 1, 0)
BITMASK = struct.pack("<HHI", 0x0001, 4, 1)
PCONTEXT = struct.pack("<HH", 0x8002, 40) + raw.ECHO + raw.NDR
HEADER2 = struct.pack("<HHBBHIIHH", 0xC003, 16, 0, 0, 0, 0x10, 2, 0, 7)
CALL = {"context": (ECHO, NDR), "call": (2, 0, 7)}


def agrees(trailer: Trailer | None, **other: object) -> bool:
    assert trailer is not None
    return trailer.agrees(**{**CALL, **other})  # type: ignore[arg-type]


def test_what_windows_appends() -> None:
    trailer = find_trailer(b"parameters12" + MAGIC + BITMASK + PCONTEXT + HEADER2)
    assert trailer is not None
    assert trailer.bits == 1
    assert trailer.context == (ECHO, NDR)
    assert agrees(trailer)


@pytest.mark.parametrize(
    "other",
    [
        {"context": (ECHO, NDR64)},
        {"context": (NDR, NDR)},
        {"call": (3, 0, 7)},
        {"call": (2, 1, 7)},
        {"call": (2, 0, 8)},
    ],
)
def test_a_request_that_was_changed_on_its_way(other: dict[str, object]) -> None:
    assert not agrees(find_trailer(MAGIC + PCONTEXT + HEADER2), **other)


def test_unknown_commands() -> None:  # RR-10: only those that must be processed
    assert agrees(find_trailer(MAGIC + struct.pack("<HH4s", 0x4009, 4, b"what")))
    assert not agrees(find_trailer(MAGIC + struct.pack("<HH4s", 0xC009, 4, b"what")))
    # a known one of a wrong size is as good as unknown
    assert not agrees(find_trailer(MAGIC + struct.pack("<HH4s", 0xC002, 4, b"what")))
    assert agrees(find_trailer(MAGIC + struct.pack("<HH", 0x4001, 0)))


def test_no_trailer() -> None:
    assert find_trailer(b"") is None
    assert find_trailer(bytes(5000)) is None
    assert find_trailer(b"x" + MAGIC + HEADER2) is None  # not aligned
    assert find_trailer(MAGIC + HEADER2 + bytes(2000)) is None  # too far from the end


def test_an_aligned_one_before_an_unaligned_one() -> None:
    assert find_trailer(MAGIC + HEADER2 + b"xyz" + MAGIC) is not None


@pytest.mark.parametrize(
    "broken", [b"", b"\1", BITMASK, BITMASK[:-1], struct.pack("<HH", 0x4001, 0xFFFF)]
)
def test_one_that_breaks_off(broken: bytes) -> None:
    with pytest.raises(WireError):
        find_trailer(MAGIC + broken)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes(before: bytes, after: bytes) -> None:
    with contextlib.suppress(WireError):
        find_trailer(before + bytes(-len(before) & 3) + MAGIC + after)
