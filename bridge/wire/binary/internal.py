"""The three packets that queue managers exchange about the session itself. MS-MQQB 2.2"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.binary.base import DEBUG, INTERNAL, SESSION, BaseHeader
from bridge.wire.binary.session import SessionHeader
from bridge.wire.cursor import guid

SESSION_ACK: Final = 1  # InternalHeader.Flags.PT
ESTABLISH_CONNECTION: Final = 2
CONNECTION_PARAMETERS: Final = 3

_HEADER: Final = Struct("<HH")
_BODY: Final = BaseHeader.SIZE + _HEADER.size  # where each packet's own fields start
_TYPE: Final = 0x000F  # PT
_REFUSED: Final = 0x0010  # CS
_ESTABLISH: Final = Struct("<16s16sIHH")
_PARAMETERS: Final = Struct("<IIHH")  # the reserved word is before the window
_PADDING: Final = b"\x5a" * 512  # MS-MQQB 2.2.3.1


class EstablishConnection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who are you, and is it me you want? MS-MQQB 2.2.3"""

    SIZE: ClassVar[int] = _BODY + _ESTABLISH.size + len(_PADDING)

    client: Guid
    server: Guid = NULL_GUID
    timestamp: int  # milliseconds since boot, echoed
    operating_system: int = 0x0310
    refused: bool = False

    def pack(self) -> bytes:
        fields = (self.client, self.server, self.timestamp, self.operating_system, 0)
        body = _ESTABLISH.pack(*fields) + _PADDING
        return _pack(ESTABLISH_CONNECTION, body, refused=self.refused)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        refused = _unpack(data, ESTABLISH_CONNECTION, cls.SIZE, "MS-MQQB 2.2.3")
        client, server, timestamp, system, _reserved = _ESTABLISH.unpack_from(data, _BODY)
        return cls(
            client=guid(client),
            server=guid(server),
            timestamp=timestamp,
            operating_system=system,
            refused=refused,
        )


class ConnectionParameters(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How soon to acknowledge, how long to wait, how much to send. MS-MQQB 2.2.2"""

    SIZE: ClassVar[int] = _BODY + _PARAMETERS.size

    recoverable_ack_timeout: int  # milliseconds
    ack_timeout: int  # milliseconds
    window_size: int = 64
    refused: bool = False

    def pack(self) -> bytes:
        fields = (self.recoverable_ack_timeout, self.ack_timeout, 0, self.window_size)
        return _pack(CONNECTION_PARAMETERS, _PARAMETERS.pack(*fields), refused=self.refused)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        refused = _unpack(data, CONNECTION_PARAMETERS, cls.SIZE, "MS-MQQB 2.2.2")
        recoverable, timeout, _reserved, window = _PARAMETERS.unpack_from(data, _BODY)
        return cls(
            recoverable_ack_timeout=recoverable,
            ack_timeout=timeout,
            window_size=window,
            refused=refused,
        )


class SessionAck(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A SessionHeader that travels alone. MS-MQQB 2.2.6"""

    SIZE: ClassVar[int] = _BODY + SessionHeader.SIZE

    session: SessionHeader

    def pack(self) -> bytes:
        return _pack(SESSION_ACK, self.session.pack(), flags=SESSION)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """CONFLICT-1: a PacketSize of 20 leaves the SessionHeader out, one of 36 has it in."""
        base = BaseHeader.unpack(data)
        size = cls.SIZE - SessionHeader.SIZE if base.packet_size == _BODY else cls.SIZE
        _unpack(data, SESSION_ACK, size, "MS-MQQB 2.2.6", flags=SESSION)
        return cls(session=SessionHeader.unpack(data, _BODY))


def packet_type(data: bytes, offset: int = 0) -> int:
    """PT of the InternalHeader behind the BaseHeader at `offset`. MS-MQQB 2.2.1"""
    if len(data) - offset < _BODY:
        raise WireError("InternalHeader", len(data) - offset, "MS-MQQB 2.2.1: 20 bytes")
    (_reserved, flags) = _HEADER.unpack_from(data, offset + BaseHeader.SIZE)
    return int(flags & _TYPE)


def _pack(kind: int, body: bytes, *, flags: int = 0, refused: bool = False) -> bytes:
    base = BaseHeader(packet_size=_BODY + len(body), flags=INTERNAL | flags)
    return base.pack() + _HEADER.pack(0, kind | (_REFUSED if refused else 0)) + body


def _unpack(data: bytes, kind: int, size: int, rule: str, *, flags: int = 0) -> bool:
    """Whether the connection is refused; WireError unless it is the expected packet."""
    base = BaseHeader.unpack(data)
    if base.flags & (INTERNAL | SESSION | DEBUG) != INTERNAL | flags:
        raise WireError("BaseHeader.Flags", hex(base.flags), rule)
    if packet_type(data) != kind:
        raise WireError("InternalHeader.PT", packet_type(data), rule)
    if base.packet_size != size or len(data) < size:
        raise WireError("BaseHeader.PacketSize", base.packet_size, f"{rule}: {size} bytes")
    return bool(_HEADER.unpack_from(data, BaseHeader.SIZE)[1] & _REFUSED)
