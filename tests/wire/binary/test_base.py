from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.wire.binary.base import DEBUG, INFINITE, INTERNAL, SESSION, TRACE, BaseHeader
from tests.wire.binary.build import base
from tests.wire.binary.strategies import SOME, bases

# MS-MQMQ 2.2.19.1: version, reserved, flags, signature, size, time to reach queue
PLAIN = struct.pack("<BBH4sII", 0x10, 0, 0x0003, b"LIOR", 0x1234, 0x54600)


def test_decodes() -> None:
    assert BaseHeader.unpack(PLAIN) == BaseHeader(
        packet_size=0x1234, flags=0, priority=3, time_to_reach_queue=0x54600
    )


def test_encodes() -> None:
    assert BaseHeader(packet_size=0x1234, time_to_reach_queue=0x54600).pack() == PLAIN


def test_defaults() -> None:
    header = BaseHeader()
    assert (header.priority, header.flags, header.time_to_reach_queue) == (3, 0, INFINITE)


@pytest.mark.parametrize(
    ("bit", "flag"), [(0x08, INTERNAL), (0x10, SESSION), (0x20, DEBUG), (0x120, TRACE | DEBUG)]
)
def test_flags_do_not_hold_the_priority(bit: int, flag: int) -> None:
    header = BaseHeader.unpack(base(16, flags=bit | 5))
    assert (header.flags, header.priority) == (flag, 5)


def test_reserved_byte_and_bits_are_ignored() -> None:  # it is random: 0xC0, 0x5A, 0xCD seen
    raw = bytearray(base(16, flags=0xFEC3))
    raw[1] = 0xCD
    assert BaseHeader.unpack(bytes(raw)) == BaseHeader(packet_size=16)


@pytest.mark.parametrize("version", [0, 0x0F, 0x11, 0xFF])
def test_other_versions_are_refused(version: int) -> None:  # QB-2
    with pytest.raises(WireError) as caught:
        BaseHeader.unpack(base(16, version=version))
    assert caught.value.field == "BaseHeader.VersionNumber"


def test_other_signatures_are_refused() -> None:  # QB-2
    with pytest.raises(WireError) as caught:
        BaseHeader.unpack(base(16, magic=b"ROIL"))
    assert caught.value.field == "BaseHeader.Signature"


@pytest.mark.parametrize("size", [0, 15, 0x400001, 0xFFFFFFFF])
def test_impossible_sizes_are_refused(size: int) -> None:  # QB-3
    with pytest.raises(WireError) as caught:
        BaseHeader.unpack(base(size))
    assert (caught.value.field, caught.value.value) == ("BaseHeader.PacketSize", size)


@pytest.mark.parametrize("size", [16, 0x400000])
def test_limits_are_allowed(size: int) -> None:
    assert BaseHeader.unpack(base(size)).packet_size == size


def test_tracing_needs_a_debug_header() -> None:  # QB-3
    with pytest.raises(WireError):
        BaseHeader.unpack(base(16, flags=0x100))


@pytest.mark.parametrize("length", range(16))
def test_cut_short(length: int) -> None:
    with pytest.raises(WireError):
        BaseHeader.unpack(PLAIN[:length])
    with pytest.raises(WireError):
        BaseHeader.unpack(b"zzz" + PLAIN[:length], 3)


@SOME
@given(bases)
def test_round_trip(header: BaseHeader) -> None:
    raw = header.pack()
    assert BaseHeader.unpack(raw) == header
    assert BaseHeader.unpack(b"zzz" + raw + b"zzz", 3) == header
    assert BaseHeader.unpack(raw).pack() == raw
