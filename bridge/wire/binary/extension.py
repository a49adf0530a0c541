"""What a remote reader gets behind the packet itself: the chain of extension headers. MS-MQRR 2.2.5

    ExtensionHeader | SubqueueHeader | [DeadLetterHeader] | ExtendedAddressHeader

Windows Server 2003 sends none of them, later servers all but the dead-letter one always.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.wire.cursor import decode_utf16, encode_utf16, encode_utf16z, pad4, require

_HEAD: Final = Struct("<IIB3x")
_SUBQUEUE: Final = Struct("<IIIII64s64s")
_U32: Final = Struct("<I")
_ADDRESS: Final = Struct("<IHHI16s")
_OVERLAY: Final = Struct("<HHI8s")
_IPV4: Final = 1
_IPV6: Final = 6
_DEAD_LETTER: Final = 0x01  # DL
_HAS_SUBQUEUE: Final = 0x02  # SQ
_BAD_DEAD_LETTER: Final = 0x08  # DI
_HAS_ADDRESS: Final = 0x10  # EA
_NAME: Final = 32  # WCHARs with the NUL
_SECTION: Final = "MS-MQRR 2.2.5"


class Subqueue(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """SubqueueHeader: how often a message was given back and moved. MS-MQRR 2.2.5.3"""

    name: str = ""
    target: str = ""  # of a move that is not committed yet
    message_class: int = 0
    aborts: int = 0
    moves: int = 0
    moved_at: int = 0

    def pack(self) -> bytes:
        return _SUBQUEUE.pack(
            _SUBQUEUE.size,
            self.message_class << 1,  # bit 0 is TM
            self.aborts & 0xFFFFFFFF,
            self.moves & 0xFFFFFFFF,
            self.moved_at & 0xFFFFFFFF,
            _pack_name(self.name),
            _pack_name(self.target),
        )

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        _size, bits, aborts, moves, moved_at, name, target = _SUBQUEUE.unpack(data)
        return cls(
            name=_text(name),
            target=_text(target),
            message_class=bits >> 1 & 0xFFFF,
            aborts=aborts,
            moves=moves,
            moved_at=moved_at,
        )


class Extension(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The whole chain. `peer` is the address that the message came from; empty: unknown."""

    subqueue: Subqueue = Subqueue()
    deadletter: str = ""  # path of a dead-letter queue that the application named
    deadletter_is_valid: bool = True
    peer: str = ""

    def pack(self) -> bytes:
        flags = _HAS_SUBQUEUE | _HAS_ADDRESS
        dead = b""
        if self.deadletter:
            raw = pad4(encode_utf16z(self.deadletter))
            dead = _U32.pack(_U32.size + len(raw)) + raw
            flags |= _DEAD_LETTER | (0 if self.deadletter_is_valid else _BAD_DEAD_LETTER)
        length, kind, scope, address = _address(self.peer)
        rest = b"".join(
            (self.subqueue.pack(), dead, _ADDRESS.pack(_ADDRESS.size, length, kind, scope, address))
        )
        return _HEAD.pack(_HEAD.size, len(rest), flags) + rest

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> Self:
        """From `offset` to the end. Each header says how long it is; a later one may be longer."""
        size, rest, flags = _head(data, offset)
        offset += size
        end = offset + rest
        require("ExtensionHeader.RemainingHeadersSize", rest, offset, len(data), _SECTION)
        subqueue, dead, peer = Subqueue(), "", ""
        if flags & _HAS_SUBQUEUE:
            raw, offset = _header("SubqueueHeader", data, offset, end, _SUBQUEUE.size)
            subqueue = Subqueue.unpack(raw[: _SUBQUEUE.size])
        if flags & _DEAD_LETTER:
            raw, offset = _header("DeadLetterHeader", data, offset, end, _U32.size)
            dead = _text(raw[_U32.size :])
        if flags & _HAS_ADDRESS:
            raw, offset = _header("ExtendedAddressHeader", data, offset, end, _ADDRESS.size)
            _size, length, kind, scope, address = _ADDRESS.unpack(raw[: _ADDRESS.size])
            peer = _address_text(length, kind, scope, address)
        return cls(
            subqueue=subqueue,
            deadletter=dead,
            deadletter_is_valid=not flags & _BAD_DEAD_LETTER,
            peer=peer,
        )


def is_extension(data: bytes, offset: int) -> bool:
    """Whether a chain can begin here: the first header is there and fits."""
    if len(data) - offset < _HEAD.size:
        return False
    size, rest, _ = _HEAD.unpack_from(data, offset)
    return bool(_HEAD.size <= size <= len(data) - offset - rest)


def overlay(peer: str) -> bytes:
    """16 bytes that lie over UserHeader.QueueManagerAddress. MS-MQRR 2.2.5.1"""
    length, kind, scope, address = _address(peer)
    return _OVERLAY.pack(length, kind, scope, address[:8])


def overlaid(raw: bytes) -> str:
    """The address in such bytes; only the first half of an IPv6 address is there."""
    length, kind, scope, address = _OVERLAY.unpack(raw)
    return _address_text(length, kind, scope, address) if kind == _IPV4 else ""


def _head(data: bytes, offset: int) -> tuple[int, int, int]:
    require("ExtensionHeader", _HEAD.size, offset, len(data), _SECTION)
    size, rest, flags = _HEAD.unpack_from(data, offset)
    if size < _HEAD.size:
        raise WireError("ExtensionHeader.HeaderSize", size, f"{_SECTION}.2: 12 bytes")
    require("ExtensionHeader.HeaderSize", size, offset, len(data), _SECTION)
    return size, rest, flags


def _header(field: str, data: bytes, offset: int, end: int, least: int) -> tuple[bytes, int]:
    require(field, least, offset, end, _SECTION)
    (size,) = _U32.unpack_from(data, offset)
    if size < least:
        raise WireError(f"{field}.HeaderSize", size, f"{_SECTION}: {least} bytes at least")
    require(f"{field}.HeaderSize", size, offset, end, _SECTION)
    return data[offset : offset + size], offset + size


def _pack_name(text: str) -> bytes:
    raw = encode_utf16(text)[: 2 * (_NAME - 1)]
    return raw.ljust(2 * _NAME, b"\0")


def _text(raw: bytes) -> str:
    """Up to its NUL."""
    return decode_utf16(raw[: len(raw) & ~1]).partition("\0")[0]


def _address(peer: str) -> tuple[int, int, int, bytes]:
    """Length, type, scope and 16 bytes; all zero if there is no address."""
    try:
        address = ip_address(peer)
    except ValueError:
        return 0, 0, 0, bytes(16)
    scope = 0
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            zone = address.scope_id or ""
            scope = int(zone) & 0xFFFFFFFF if zone.isdecimal() else 0
            return 16, _IPV6, scope, address.packed
        address = address.ipv4_mapped
    return 4, _IPV4, scope, address.packed.ljust(16, b"\0")


def _address_text(length: int, kind: int, scope: int, address: bytes) -> str:
    if kind == _IPV4 and length == 4:
        return str(ip_address(address[:4]))
    if kind == _IPV6 and length == 16 and len(address) == 16:
        return str(ip_address(address)) + (f"%{scope}" if scope else "")
    return ""
