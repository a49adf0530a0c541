"""The header that opens every packet."""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, Self

import msgspec

from bridge.model.errors import WireError

INFINITE: Final = 0xFFFFFFFF
MAX_PACKET: Final = 0x400000  # MS-MQMQ 2.2.19.1

# BaseHeader.flags; the three priority bits are a field of their own.
INTERNAL: Final = 0x08  # IN
SESSION: Final = 0x10  # SH: a SessionHeader is there
DEBUG: Final = 0x20  # DH: a DebugHeader is there
TRACE: Final = 0x100  # TR

_LAYOUT: Final = Struct("<BxHIII")  # x: Reserved, arbitrary on receipt
_unpack: Final = _LAYOUT.unpack_from
_SIZE: Final = _LAYOUT.size
VERSION: Final = 0x10
SIGNATURE: Final = 0x524F494C  # b"LIOR" on the wire
PRIORITY: Final = 0x7
_KNOWN: Final = INTERNAL | SESSION | DEBUG | TRACE
_SECTION: Final = "MS-MQMQ 2.2.19.1"


class BaseHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Opens every packet on TCP 1801. MS-MQMQ 2.2.19.1

    `packet_size` excludes a SessionHeader that rides on a user message (and nothing else).
    """

    SIZE: ClassVar[int] = _SIZE

    packet_size: int = 0
    flags: int = 0
    priority: int = 3
    time_to_reach_queue: int = INFINITE  # seconds after the sent time

    def pack(self) -> bytes:
        return _LAYOUT.pack(
            VERSION,
            self.flags | self.priority,
            SIGNATURE,
            self.packet_size,
            self.time_to_reach_queue,
        )

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        if len(data) - offset < _SIZE:
            raise WireError("BaseHeader", len(data) - offset, f"{_SECTION}: 16 bytes")
        version, flags, signature, size, ttrq = _unpack(data, offset)
        if version != VERSION:
            raise WireError("BaseHeader.VersionNumber", version, "MS-MQQB 3.1.5.1.2")
        if signature != SIGNATURE:
            raise WireError("BaseHeader.Signature", signature, "MS-MQQB 3.1.5.1.2")
        if not _SIZE <= size <= MAX_PACKET:
            raise WireError("BaseHeader.PacketSize", size, _SECTION)
        if flags & (TRACE | DEBUG) == TRACE:
            raise WireError("BaseHeader.Flags", flags, f"{_SECTION}: TR requires DH")
        return cls(
            packet_size=size,
            flags=flags & _KNOWN,
            priority=flags & PRIORITY,
            time_to_reach_queue=ttrq,
        )
