"""SessionHeader: acknowledges what came and counts what went. MS-MQMQ 2.2.20.4"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, Self

import msgspec

from bridge.model.errors import WireError

_LAYOUT: Final = Struct("<HHIHHHxx")
_unpack: Final = _LAYOUT.unpack_from
_SIZE: Final = _LAYOUT.size


class SessionHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Bit k of `recoverable_ack_flags`: message `recoverable_ack_number` + k is on disk."""

    SIZE: ClassVar[int] = _SIZE

    ack_sequence_number: int = 0
    recoverable_ack_number: int = 0
    recoverable_ack_flags: int = 0
    user_sequence_number: int = 0
    recoverable_sequence_number: int = 0
    window_size: int = 64

    def pack(self) -> bytes:
        return _LAYOUT.pack(
            self.ack_sequence_number,
            self.recoverable_ack_number,
            self.recoverable_ack_flags,
            self.user_sequence_number,
            self.recoverable_sequence_number,
            self.window_size,
        )

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        if len(data) - offset < _SIZE:
            raise WireError("SessionHeader", len(data) - offset, "MS-MQMQ 2.2.20.4: 16 bytes")
        ack, recoverable_ack, flags, sent, recoverable_sent, window = _unpack(data, offset)
        return cls(
            ack_sequence_number=ack,
            recoverable_ack_number=recoverable_ack,
            recoverable_ack_flags=flags,
            user_sequence_number=sent,
            recoverable_sequence_number=recoverable_sent,
            window_size=window,
        )
