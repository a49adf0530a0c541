"""The UDP ping of older queue managers: would you take my session? MS-MQQB 2.2.7"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.cursor import guid

_LAYOUT: Final = Struct("<HHI16s")
_SIGNATURE: Final = 0x5548
_CLIENT: Final = 0x0001  # RC
_REFUSED: Final = 0x0002  # RF; the other bits are random
_SECTION: Final = "MS-MQQB 2.2.7"


class Ping(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Request and response look alike; the response echoes `cookie` and `client`."""

    SIZE: ClassVar[int] = _LAYOUT.size

    cookie: int
    queue_manager: Guid  # of whoever made this packet
    client: bool = False  # the initiator is not a server
    refused: bool = False

    def pack(self) -> bytes:
        flags = (_CLIENT if self.client else 0) | (_REFUSED if self.refused else 0)
        return _LAYOUT.pack(flags, _SIGNATURE, self.cookie, self.queue_manager)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        if len(data) < _LAYOUT.size:
            raise WireError("Ping", len(data), f"{_SECTION}: 24 bytes")
        flags, signature, cookie, manager = _LAYOUT.unpack_from(data)
        if signature != _SIGNATURE:
            raise WireError("Ping.Signature", hex(signature), _SECTION)
        return cls(
            cookie=cookie,
            queue_manager=guid(manager),
            client=flags & _CLIENT != 0,
            refused=flags & _REFUSED != 0,
        )
