from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.binary.debug import DebugHeader
from tests.wire.binary.build import S
from tests.wire.binary.strategies import SOME, debugs


def test_no_queue() -> None:  # MS-MQMQ 2.2.20.8
    raw = struct.pack("<HH", 0, 0)
    assert DebugHeader.unpack_from(raw, 0, 4) == (DebugHeader(queue=None), 4)
    assert DebugHeader().pack() == raw


def test_public_queue() -> None:
    raw = struct.pack("<HH", 1, 0) + S
    assert DebugHeader.unpack_from(raw, 0, 20) == (DebugHeader(queue=Guid(S)), 20)
    assert DebugHeader(queue=Guid(S)).pack() == raw
    for length in range(20):
        with pytest.raises(WireError):
            DebugHeader.unpack_from(raw, 0, length)


def test_reserved_is_ignored() -> None:
    assert DebugHeader.unpack_from(struct.pack("<HH", 0xFFFC, 0xCDCD), 0, 4)[0] == DebugHeader()


@pytest.mark.parametrize("kind", [2, 3])
def test_unknown_queue_types(kind: int) -> None:
    with pytest.raises(WireError):
        DebugHeader.unpack_from(struct.pack("<HH", kind, 0) + S, 0, 20)


@SOME
@given(debugs)
def test_round_trip(header: DebugHeader) -> None:
    raw = header.pack()
    assert DebugHeader.unpack_from(b"z" + raw, 1, 1 + len(raw)) == (header, 1 + len(raw))
