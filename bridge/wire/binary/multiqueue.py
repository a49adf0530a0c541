"""MultiQueueFormatHeader: all the queues a sender named. MS-MQMQ 2.2.20.1 to 2.2.20.3

It informs; the UserHeader alone decides where this packet goes. An element of a type that MS-MQMQ
2.2.18.1.4 does not list has no known length: it and the elements behind it are skipped, and the
next header is found by HeaderSize.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.cursor import align4, decode_utf16, encode_utf16z, guid, pad4, require, take

PUBLIC: Final = 1  # MqfElement.kind
PRIVATE: Final = 2
DIRECT: Final = 3
DISTRIBUTION_LIST: Final = 6

_ADDRESS: Final = Struct("<IHHI")
_SIGNATURE: Final = Struct("<HHI")
_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_DESTINATION_ID: Final = 0x0064
_ADMIN_ID: Final = 0x00C8
_RESPONSE_ID: Final = 0x012C
_SIGNATURE_ID: Final = 0x015E
_SMALLEST_ELEMENT: Final = 2  # a type
# The specs have no limit; a packet of 4 MiB holds a million, and they take two seconds to read.
_MAX_ELEMENTS: Final = 8192
_SECTION: Final = "MS-MQMQ 2.2.20.1"


class MqfElement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One format name; `text` is a direct name without "DIRECT="."""

    kind: int
    guid: Guid = NULL_GUID
    number: int = 0
    text: str = ""


class MultiQueueHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    destination: tuple[MqfElement, ...] = ()
    admin: tuple[MqfElement, ...] = ()
    response: tuple[MqfElement, ...] = ()
    signature: bytes = b""

    def pack(self) -> bytes:
        signature = _SIGNATURE.pack(_SIGNATURE_ID, 0, len(self.signature)) + self.signature
        return b"".join(
            (
                _pack_address(_DESTINATION_ID, self.destination),
                _pack_address(_ADMIN_ID, self.admin),
                _pack_address(_RESPONSE_ID, self.response),
                pad4(signature),
            )
        )

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int]:
        destination, offset = _read_address(data, offset, end, _DESTINATION_ID)
        admin, offset = _read_address(data, offset, end, _ADMIN_ID)
        response, offset = _read_address(data, offset, end, _RESPONSE_ID)
        require("MQFSignatureHeader", _SIGNATURE.size, offset, end, _SECTION)
        identifier, _reserved, size = _SIGNATURE.unpack_from(data, offset)
        if identifier != _SIGNATURE_ID:
            raise WireError("MQFSignatureHeader.ID", hex(identifier), _SECTION)
        offset += _SIGNATURE.size
        signature = take("MQFSignatureHeader.Size", data, size, offset, end, _SECTION)
        header = cls(destination=destination, admin=admin, response=response, signature=signature)
        return header, min(offset + align4(size), end)


def _pack_address(identifier: int, elements: Sequence[MqfElement]) -> bytes:
    raw = bytearray(_ADDRESS.size)
    for element in elements:
        raw += _U16.pack(element.kind)
        if element.kind == DIRECT:
            raw += encode_utf16z(element.text)
            continue
        raw += bytes(-len(raw) & 3)
        raw += element.guid
        if element.kind == PRIVATE:
            raw += _U32.pack(element.number)
    _ADDRESS.pack_into(raw, 0, len(raw), identifier, 0, len(elements))
    return pad4(bytes(raw))


def _read_address(
    data: bytes, start: int, end: int, identifier: int
) -> tuple[tuple[MqfElement, ...], int]:
    require("MQFAddressHeader", _ADDRESS.size, start, end, _SECTION)
    size, found, _reserved, count = _ADDRESS.unpack_from(data, start)
    if found != identifier:
        raise WireError("MQFAddressHeader.HeaderID", hex(found), f"{_SECTION}: {identifier:#06x}")
    if size < _ADDRESS.size or align4(size) > end - start:
        raise WireError("MQFAddressHeader.HeaderSize", size, _SECTION)
    if count > min(_MAX_ELEMENTS, (size - _ADDRESS.size) // _SMALLEST_ELEMENT):
        raise WireError("MQFAddressHeader.ElementCount", count, _SECTION)
    elements = []
    offset, stop = start + _ADDRESS.size, start + size
    for _ in range(count):
        element, offset = _read_element(data, start, offset, stop)
        if element is None:
            break
        elements.append(element)
    return tuple(elements), start + align4(size)


def _read_element(data: bytes, start: int, offset: int, end: int) -> tuple[MqfElement | None, int]:
    """None: of an unknown type, so only the end of the list can be found."""
    require("MQFFormatNameElement", 2, offset, end, _SECTION)
    (kind,) = _U16.unpack_from(data, offset)
    offset += 2
    if kind == DIRECT:
        nul = _find_nul(data, offset, end)
        return MqfElement(kind=kind, text=decode_utf16(data[offset:nul])), nul + 2
    if kind not in (PUBLIC, PRIVATE, DISTRIBUTION_LIST):
        return None, end
    offset = start + align4(offset - start)  # CONFLICT-14: also for a public queue
    size = 20 if kind == PRIVATE else 16
    raw = take("MQFFormatNameElement", data, size, offset, end, _SECTION)
    number = _U32.unpack_from(raw, 16)[0] if kind == PRIVATE else 0
    return MqfElement(kind=kind, guid=guid(raw[:16]), number=number), offset + size


def _find_nul(data: bytes, offset: int, end: int) -> int:
    """The first WCHAR 0: two zero bytes that do not belong to two characters."""
    found = data.find(b"\0\0", offset, end)
    while found >= 0 and (found - offset) % 2:
        found = data.find(b"\0\0", found + 1, end)
    if found < 0:
        raise WireError("MQFFormatNameElement", end - offset, f"{_SECTION}: no NUL")
    return found
