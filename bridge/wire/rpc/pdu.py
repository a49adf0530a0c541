"""Connection-oriented DCE/RPC: the header that every PDU has, its verifier, and calls.

A TCP stream is a row of fragments; each says its length in 16 bits, so that none is longer than
65,535 bytes. Whatever else a fragment says about itself is checked here, before anybody slices.
The PDUs that open a connection are in bind.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError

HEADER: Final = Struct("<BBBBIHHI")
TRAILER: Final = Struct("<BBBBI")
_CALL: Final = Struct("<IHH")
_STATUS: Final = Struct("<II")
_LITTLE_ENDIAN: Final = 0x0010  # of the first two octets: integers and ASCII, IEEE floats
_VERSION: Final = 5
CALL_HEADER: Final = HEADER.size + _CALL.size
OBJECT_SIZE: Final = 16
FAULT_SIZE: Final = CALL_HEADER + _STATUS.size  # RR-11


class PduType(IntEnum):
    """C706 12.6.4, MS-RPCE 2.2.2"""

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    BIND_NAK = 13
    ALTER_CONTEXT = 14
    ALTER_CONTEXT_RESP = 15
    AUTH3 = 16
    SHUTDOWN = 17
    CO_CANCEL = 18
    ORPHANED = 19


class Flags(IntFlag):
    """C706 12.6.3.1; bit 4 has another meaning while a connection is opened. MS-RPCE 2.2.2.3"""

    FIRST = 0x01
    LAST = 0x02
    PENDING_CANCEL = 0x04
    SUPPORT_HEADER_SIGN = 0x04
    CONC_MPX = 0x10
    DID_NOT_EXECUTE = 0x20
    MAYBE = 0x40
    OBJECT_UUID = 0x80


WHOLE: Final = Flags.FIRST | Flags.LAST
_TYPES: Final = {int(kind): kind for kind in PduType}


class VersionError(WireError):
    """A bind of another protocol version; the answer names ours. C706 12.6.3.1"""


class Verifier(msgspec.Struct, frozen=True, gc=False):
    """sec_trailer and what follows it. MS-RPCE 2.2.2.11"""

    type: int
    level: int
    context: int
    value: bytes
    pad: int = 0  # bytes between the stub and this

    def trailer(self) -> bytes:
        return TRAILER.pack(self.type, self.level, self.pad, 0, self.context)


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """One PDU as it came; `data` is the whole of it, `end` where its verifier begins."""

    type: PduType
    flags: int
    call_id: int
    data: bytes
    end: int
    verifier: Verifier | None = None

    @property
    def is_first(self) -> bool:
        return self.flags & Flags.FIRST != 0

    @property
    def is_last(self) -> bool:
        return self.flags & Flags.LAST != 0

    @property
    def body_end(self) -> int:
        """Where the body ends: before the verifier and its padding."""
        return self.end - (self.verifier.pad if self.verifier is not None else 0)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """`data` has the length that its header says."""
        _, _, kind, flags, _, _, auth_length, call_id = HEADER.unpack_from(data)
        verifier, end = None, len(data)
        if auth_length:
            end -= auth_length + TRAILER.size
            if end < HEADER.size:
                raise WireError("auth_length", auth_length, "C706 13.2.6: overlaps the header")
            auth_type, level, pad, _, context = TRAILER.unpack_from(data, end)
            if pad > end - HEADER.size:
                raise WireError("auth_pad_length", pad, "MS-RPCE 2.2.2.11: overlaps the header")
            verifier = Verifier(auth_type, level, context, data[end + TRAILER.size :], pad)
        return cls(_TYPES[kind], flags, call_id, data, end, verifier)


def fragment_size(data: bytes | bytearray | memoryview, offset: int = 0) -> int:
    """How long the fragment is that begins there; its 16 bytes of header are there."""
    major, minor, kind, _, drep, size, _, _ = HEADER.unpack_from(data, offset)
    if major != _VERSION or minor > 1:
        error = VersionError if kind == PduType.BIND else WireError
        raise error("rpc_vers", f"{major}.{minor}", "C706 12.6.3.1")
    if drep & 0xFFFF != _LITTLE_ENDIAN:  # big-endian or EBCDIC: nobody who speaks MSMQ
        raise WireError("packed_drep", hex(drep), "C706 14.1")
    if kind not in _TYPES:
        raise WireError("PTYPE", kind, "C706 12.6.4")
    if size < HEADER.size:
        raise WireError("frag_length", size, "C706 12.6.3.1")
    return int(size)


class FragmentReader:
    """Cuts a stream into fragments; keeps one unfinished fragment at most."""

    def __init__(self) -> None:
        self._pending = bytearray()

    @property
    def unfinished(self) -> int:
        return len(self._pending)

    def feed(self, data: bytes) -> Iterator[Fragment]:
        """Every fragment that is complete now; half a fragment just waits."""
        if self._pending:
            self._pending += data
            if not self._is_complete():
                return
            data, self._pending = bytes(self._pending), bytearray()
        offset, end = 0, len(data)
        while end - offset >= HEADER.size:
            size = fragment_size(data, offset)
            if size > end - offset:
                break
            yield Fragment.unpack(data[offset : offset + size])
            offset += size
        self._pending += memoryview(data)[offset:]

    def _is_complete(self) -> bool:
        pending = self._pending
        return len(pending) >= HEADER.size and len(pending) >= fragment_size(pending)


def pack_header(
    kind: PduType, flags: int, call_id: int, size: int, auth_length: int = 0, minor: int = 0
) -> bytes:
    return HEADER.pack(_VERSION, minor, kind, flags, _LITTLE_ENDIAN, size, auth_length, call_id)


def pack_pdu(
    kind: PduType,
    call_id: int,
    body: bytes,
    *,
    flags: int = WHOLE,
    verifier: Verifier | None = None,
) -> bytes:
    """A PDU that is not sealed; the verifier goes to the next multiple of four."""
    if verifier is None:
        return pack_header(kind, flags, call_id, HEADER.size + len(body)) + body
    pad = -len(body) & 3
    verifier = msgspec.structs.replace(verifier, pad=pad)
    size = HEADER.size + len(body) + pad + TRAILER.size + len(verifier.value)
    header = pack_header(kind, flags, call_id, size, len(verifier.value))
    return b"".join((header, body, bytes(pad), verifier.trailer(), verifier.value))


class Request(msgspec.Struct, frozen=True, gc=False):
    """What a request says before its stub. C706 12.6.4.9"""

    alloc_hint: int
    context: int  # presentation context
    opnum: int
    stub_at: int  # where the stub begins

    @classmethod
    def unpack(cls, fragment: Fragment) -> Self:
        start = CALL_HEADER + (OBJECT_SIZE if fragment.flags & Flags.OBJECT_UUID else 0)
        if fragment.body_end < start:
            raise WireError("request", len(fragment.data), "C706 12.6.4.9: too short")
        alloc_hint, context, opnum = _CALL.unpack_from(fragment.data, HEADER.size)
        return cls(alloc_hint, context, opnum, start)


class Response(msgspec.Struct, frozen=True, gc=False):
    """What a response says before its stub. C706 12.6.4.10"""

    alloc_hint: int
    context: int

    @classmethod
    def unpack(cls, fragment: Fragment) -> Self:
        if fragment.body_end < CALL_HEADER:
            raise WireError("response", len(fragment.data), "C706 12.6.4.10: too short")
        alloc_hint, context, _ = _CALL.unpack_from(fragment.data, HEADER.size)
        return cls(alloc_hint, context)


def pack_call_header(
    kind: PduType,
    flags: int,
    call_id: int,
    size: int,
    *,
    auth_length: int = 0,
    alloc_hint: int,
    context: int,
    opnum: int = 0,  # a response has cancel_count and a reserved byte there
) -> bytes:
    """The 24 bytes before the stub of a request or response."""
    return pack_header(kind, flags, call_id, size, auth_length) + _CALL.pack(
        alloc_hint, context, opnum
    )


class FaultPdu(msgspec.Struct, frozen=True, gc=False):
    """C706 12.6.4.7. We send it without verifier, as Samba does: impacket and Windows read it."""

    call_id: int
    status: int
    context: int = 0
    did_not_execute: bool = False

    def pack(self) -> bytes:
        flags = WHOLE | (Flags.DID_NOT_EXECUTE if self.did_not_execute else 0)
        body = _CALL.pack(FAULT_SIZE, self.context, 0) + _STATUS.pack(self.status, 0)
        return pack_pdu(PduType.FAULT, self.call_id, body, flags=flags)

    @classmethod
    def unpack(cls, fragment: Fragment) -> Self:
        if fragment.end < CALL_HEADER + 4:
            raise WireError("fault", len(fragment.data), "C706 12.6.4.7: too short")
        _, context, _ = _CALL.unpack_from(fragment.data, HEADER.size)
        status = int.from_bytes(fragment.data[CALL_HEADER : CALL_HEADER + 4], "little")
        spared = fragment.flags & Flags.DID_NOT_EXECUTE != 0
        return cls(fragment.call_id, status, context, spared)
