"""DebugHeader: where trace reports go. MS-MQMQ 2.2.20.8"""

from __future__ import annotations

from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.cursor import guid, require, take

_LAYOUT: Final = Struct("<HH")
_QUEUE_TYPE: Final = 0x0003  # QT
_SECTION: Final = "MS-MQMQ 2.2.20.8"


class DebugHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    queue: Guid | None = None  # a public queue

    def pack(self) -> bytes:
        return _LAYOUT.pack(0 if self.queue is None else 1, 0) + (self.queue or b"")

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int]:
        require("DebugHeader", _LAYOUT.size, offset, end, _SECTION)
        flags, _reserved = _LAYOUT.unpack_from(data, offset)
        offset += _LAYOUT.size
        match flags & _QUEUE_TYPE:
            case 0:
                return cls(), offset
            case 1:
                raw = take("DebugHeader.QueueIdentifier", data, 16, offset, end, _SECTION)
                return cls(queue=guid(raw)), offset + 16
            case other:
                raise WireError("DebugHeader.QT", other, _SECTION)
