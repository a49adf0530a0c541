from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.wire.binary.session import SessionHeader
from tests.vectors.binary import V5_SESSION
from tests.wire.binary.strategies import SOME, sessions

RAW = struct.pack("<HHIHHHH", 1, 2, 0x80000003, 4, 5, 6, 0)  # MS-MQMQ 2.2.20.4
EXPECTED = SessionHeader(
    ack_sequence_number=1,
    recoverable_ack_number=2,
    recoverable_ack_flags=0x80000003,
    user_sequence_number=4,
    recoverable_sequence_number=5,
    window_size=6,
)


def test_layout() -> None:
    assert SessionHeader.unpack(RAW) == EXPECTED
    assert EXPECTED.pack() == RAW


def test_reserved_is_ignored() -> None:
    assert SessionHeader.unpack(RAW[:14] + b"\xcd\xcd") == EXPECTED


def test_piggybacked_example() -> None:
    header = SessionHeader(ack_sequence_number=1, user_sequence_number=1, window_size=64)
    assert SessionHeader.unpack(V5_SESSION) == header
    assert header.pack() == V5_SESSION


@pytest.mark.parametrize("length", range(16))
def test_cut_short(length: int) -> None:
    with pytest.raises(WireError):
        SessionHeader.unpack(RAW[:length])


@SOME
@given(sessions)
def test_round_trip(header: SessionHeader) -> None:
    assert SessionHeader.unpack(b"z" + header.pack(), 1) == header
