from __future__ import annotations

import struct

import pytest
from hypothesis import given

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.binary.transaction import TransactionHeader
from tests.wire.binary.build import C
from tests.wire.binary.strategies import SOME, transactions

# MS-MQMQ 2.2.20.5: flags, ordinal, timestamp, number, previous number
RAW = struct.pack("<IIIII", 0x000A_BCDE | 0xF0_0000, 1, 0x60000000, 9, 8)


def test_layout() -> None:
    header, end = TransactionHeader.unpack_from(RAW, 0, 20)
    assert header == TransactionHeader(
        sequence_id=0x60000000_00000001,  # compared with the timestamp high
        number=9,
        previous_number=8,
        first=True,
        last=True,
        final_ack=True,
        index=0xFABCD,
    )
    assert end == 20
    assert header.pack() == RAW


@pytest.mark.parametrize(
    ("bit", "field"), [(0x2, "final_ack"), (0x4, "first"), (0x8, "last"), (0, "")]
)
def test_bits(bit: int, field: str) -> None:
    raw = struct.pack("<IIIII", bit, 0, 0, 0, 0)
    header, _end = TransactionHeader.unpack_from(raw, 0, 20)
    set_fields = {name for name in ("final_ack", "first", "last") if getattr(header, name)}
    assert set_fields == ({field} if field else set())
    assert header.pack() == raw


def test_connector() -> None:  # CG
    raw = struct.pack("<IIIII", 1, 0, 0, 0, 0) + C
    header, end = TransactionHeader.unpack_from(raw, 0, 36)
    assert (header.connector_qm, end) == (Guid(C), 36)
    assert header.pack() == raw
    for length in range(36):
        with pytest.raises(WireError):
            TransactionHeader.unpack_from(raw, 0, length)


def test_unused_bits_are_ignored() -> None:
    raw = struct.pack("<IIIII", 0xFF000000, 0, 0, 0, 0)
    assert TransactionHeader.unpack_from(raw, 0, 20)[0].pack() == bytes(20)


@SOME
@given(transactions)
def test_round_trip(header: TransactionHeader) -> None:
    raw = header.pack()
    assert TransactionHeader.unpack_from(b"z" + raw, 1, 1 + len(raw)) == (header, 1 + len(raw))
