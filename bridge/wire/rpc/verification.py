"""The verification trailer that a client hides after the parameters of a request.

Nobody says where the parameters end, so it is looked for near the end of the stub. What it says
protects what level integrity does not cover on old servers. MS-RPCE 2.2.2.13
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.rpc.bind import Syntax
from bridge.wire.rpc.pdu import PduType

SIGNATURE: Final = bytes.fromhex("8ae3137102f43671")
_SEARCHED: Final = 1024  # bytes from the end of a stub
_COMMAND: Final = Struct("<HH")
_CONTEXT: Final = Struct("<16sHH16sHH")
_HEADER2: Final = Struct("<BBHIIHH")
_LITTLE_ENDIAN: Final = 0x10

BITMASK: Final = 0x0001
PCONTEXT: Final = 0x0002
HEADER2: Final = 0x0003
_KIND: Final = 0x3FFF
END: Final = 0x4000
MUST_PROCESS: Final = 0x8000


class Header2(msgspec.Struct, frozen=True, gc=False):
    """What the client says its PDU's header was."""

    type: int
    drep: int
    call_id: int
    context: int
    opnum: int


class Trailer(msgspec.Struct, frozen=True, gc=False):
    """What was found; None for a command that is not there."""

    bits: int | None = None
    context: tuple[Syntax, Syntax] | None = None  # interface and transfer syntax
    header: Header2 | None = None
    unknown: bool = False  # a command that must be processed, and we cannot

    def agrees(self, *, context: tuple[Syntax, Syntax], call: tuple[int, int, int]) -> bool:
        """`call`: call id, presentation context and opnum of the request. RR-10"""
        expected = Header2(PduType.REQUEST, _LITTLE_ENDIAN, *call)
        return (
            not self.unknown and self.context in (None, context) and self.header in (None, expected)
        )


def find_trailer(stub: bytes) -> Trailer | None:
    """None if there is none; WireError if it breaks off."""
    at = stub.rfind(SIGNATURE, max(0, len(stub) - _SEARCHED))
    while at >= 0 and at % 4:  # it is aligned
        at = stub.rfind(SIGNATURE, max(0, len(stub) - _SEARCHED), at + len(SIGNATURE) - 1)
    return None if at < 0 else _read(stub, at + len(SIGNATURE))


def _read(stub: bytes, at: int) -> Trailer:
    found = Trailer()
    command = 0
    while not command & END:
        if len(stub) - at < _COMMAND.size:
            raise WireError("verification trailer", at, "MS-RPCE 2.2.2.13: breaks off")
        command, size = _COMMAND.unpack_from(stub, at)
        at += _COMMAND.size
        if size > len(stub) - at:
            raise WireError("SEC_VT.length", size, "MS-RPCE 2.2.2.13: breaks off")
        found = _with(found, command, stub[at : at + size])
        at += size
    return found


def _with(found: Trailer, command: int, value: bytes) -> Trailer:
    match command & _KIND, len(value):
        case (1, 4):
            return replace(found, bits=int.from_bytes(value, "little"))
        case (2, 40):
            raw = _CONTEXT.unpack(value)
            pair = Syntax(Guid(raw[0]), raw[1], raw[2]), Syntax(Guid(raw[3]), raw[4], raw[5])
            return replace(found, context=pair)
        case (3, 16):
            kind, _, _, drep, call_id, context, opnum = _HEADER2.unpack(value)
            return replace(found, header=Header2(kind, drep, call_id, context, opnum))
        case _:
            return replace(found, unknown=True) if command & MUST_PROCESS else found
