"""TransactionHeader: a place in a sender's sequence. MS-MQMQ 2.2.20.5"""

from __future__ import annotations

from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.cursor import guid, take

LAYOUT: Final = Struct("<IQII")
_unpack: Final = LAYOUT.unpack_from
_SIZE: Final = LAYOUT.size
_CONNECTOR: Final = 0x1  # CG
_FINAL_ACK: Final = 0x2  # FA
_FIRST: Final = 0x4  # FM
_LAST: Final = 0x8  # LM
INDEX: Final = 0xFFFFF  # ID, above the four flags
# What each combination of the four says, in this order: decoding them one by one is slower.
_BITS: Final = tuple(
    tuple(flags & bit != 0 for bit in (_CONNECTOR, _FINAL_ACK, _FIRST, _LAST))
    for flags in range(16)
)
_SECTION: Final = "MS-MQMQ 2.2.20.5"


class TransactionHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`sequence_id` is the ordinal below a timestamp, so it compares as one integer."""

    sequence_id: int
    number: int
    previous_number: int
    first: bool = False
    last: bool = False
    final_ack: bool = False
    index: int = 0
    connector_qm: Guid | None = None

    def pack(self) -> bytes:
        flags = (
            (0 if self.connector_qm is None else _CONNECTOR)
            | (_FINAL_ACK if self.final_ack else 0)
            | (_FIRST if self.first else 0)
            | (_LAST if self.last else 0)
            | (self.index & INDEX) << 4
        )
        head = LAYOUT.pack(flags, self.sequence_id, self.number, self.previous_number)
        return head + (self.connector_qm or b"")

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int]:
        if end - offset < _SIZE:
            raise WireError("TransactionHeader", end - offset, f"{_SECTION}: 20 bytes")
        flags, sequence_id, number, previous = _unpack(data, offset)
        offset += _SIZE
        has_connector, final_ack, first, last = _BITS[flags & 0xF]
        connector = None
        if has_connector:
            connector = guid(take("ConnectorQMGuid", data, 16, offset, end, _SECTION))
            offset += 16
        header = cls(
            sequence_id=sequence_id,
            number=number,
            previous_number=previous,
            first=first,
            last=last,
            final_ack=final_ack,
            index=flags >> 4 & INDEX,
            connector_qm=connector,
        )
        return header, offset
