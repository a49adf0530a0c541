"""SoapHeader: the SOAP texts of a message that once came by HTTP. MS-MQMQ 2.2.20.7

The spec does not say how its two parts are aligned (CONFLICT-14). We send both on 4-byte
boundaries, like every header, and accept a second part that follows without padding.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.wire.cursor import align4, decode_utf16, encode_utf16z, pad4, require, strip_nul, take

_PART: Final = Struct("<HHI")
_HEADER_ID: Final = 0x0320
_BODY_ID: Final = 0x0384
_SECTION: Final = "MS-MQMQ 2.2.20.7"


class SoapHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    header: str
    body: str

    def pack(self) -> bytes:
        return _pack_part(_HEADER_ID, self.header) + _pack_part(_BODY_ID, self.body)

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int]:
        start = offset
        header, offset = _read_part(data, offset, end, _HEADER_ID)
        # A reserved word of zeros stands where the other reading would find the id, so look
        # at the padded place first: padding may hold anything, also 0x0384.
        padded = start + align4(offset - start)
        if data[padded : min(padded + 2, end)] == b"\x84\x03":
            offset = padded
        body, offset = _read_part(data, offset, end, _BODY_ID)
        return cls(header=header, body=body), min(start + align4(offset - start), end)


def _pack_part(identifier: int, text: str) -> bytes:
    raw = encode_utf16z(text)
    return pad4(_PART.pack(identifier, 0, len(raw) // 2) + raw)


def _read_part(data: bytes, offset: int, end: int, identifier: int) -> tuple[str, int]:
    require("SoapHeader", _PART.size, offset, end, _SECTION)
    found, _reserved, length = _PART.unpack_from(data, offset)
    if found != identifier:
        raise WireError("SoapHeader.SectionID", hex(found), f"{_SECTION}: {identifier:#06x}")
    offset += _PART.size
    raw = take("SoapHeader.DataLength", data, 2 * length, offset, end, _SECTION)
    return strip_nul(decode_utf16(raw)), offset + 2 * length
