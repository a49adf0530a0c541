from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.binary.acks import FinalAckBody, OrderAckBody
from tests.wire.binary.build import C
from tests.wire.binary.strategies import SOME, guids, u32, u64

SEQUENCE = 0x60000000_00000001
ORDER = struct.pack("<IIII20x", 1, 0x60000000, 9, 8)  # MS-MQQB 2.2.4
FINAL = struct.pack("<IIII16sI", 1, 0x60000000, 9, 8, C, 42)  # MS-MQQB 2.2.5


def test_order_ack() -> None:
    body = OrderAckBody(sequence_id=SEQUENCE, number=9, previous_number=8)
    assert OrderAckBody.unpack(ORDER) == body
    assert body.pack() == ORDER


def test_order_ack_reserved_bytes_are_garbage() -> None:  # MS-MQQB <17>
    garbage = ORDER[:16] + b"\xcd" * 20
    assert OrderAckBody.unpack(garbage) == OrderAckBody.unpack(ORDER)


def test_final_ack() -> None:
    body = FinalAckBody(
        sequence_id=SEQUENCE, number=9, previous_number=8, source=Guid(C), message_id=42
    )
    assert FinalAckBody.unpack(FINAL) == body
    assert body.pack() == FINAL


@pytest.mark.parametrize("length", [*range(36), 37])
def test_wrong_length(length: int) -> None:
    with pytest.raises(WireError):
        OrderAckBody.unpack(bytes(length))
    with pytest.raises(WireError):
        FinalAckBody.unpack(bytes(length))


@SOME
@given(u64, u32, u32, guids, u32)
def test_round_trip(sequence: int, number: int, previous: int, source: Guid, ident: int) -> None:
    order = OrderAckBody(sequence_id=sequence, number=number, previous_number=previous)
    final = FinalAckBody(
        sequence_id=sequence,
        number=number,
        previous_number=previous,
        source=source,
        message_id=ident,
    )
    assert OrderAckBody.unpack(order.pack()) == order
    assert FinalAckBody.unpack(final.pack()) == final
