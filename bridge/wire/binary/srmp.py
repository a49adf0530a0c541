"""The two headers that make an SRMP packet of a message packet. MS-MQRR 2.2.5.1.2

They carry the SOAP envelope and the HTTP request that a message came with. The specification gives
their HeaderId no value, so ours are arbitrary and any is taken. It does not say either in what unit
the envelope's length counts: we write WCHARs as SoapHeader does, and read both.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.wire.cursor import decode_utf16, encode_utf16z, pad4, require, take

_ENVELOPE: Final = Struct("<HHI")
_COMPOUND: Final = Struct("<HHIII")
_ENVELOPE_ID: Final = 0x0258
_COMPOUND_ID: Final = 0x02BC
_SECTION: Final = "MS-MQRR 2.2.5.1.2"


def pack_envelope(text: str) -> bytes:
    raw = encode_utf16z(text)
    return pad4(_ENVELOPE.pack(_ENVELOPE_ID, 0, len(raw) // 2) + raw)


def unpack_envelope(data: bytes, offset: int, end: int) -> tuple[str, int]:
    """The text, and where the next header starts."""
    require("SRMPEnvelopeHeader", _ENVELOPE.size, offset, end, _SECTION)
    _id, _reserved, length = _ENVELOPE.unpack_from(data, offset)
    start = offset + _ENVELOPE.size
    for size in (2 * length, length):
        if size % 2 == 0 and 2 <= size <= end - start and data[start + size - 2 :][:2] == b"\0\0":
            text = decode_utf16(data[start : start + size])
            after = start + size
            return text.partition("\0")[0], after + (offset - after & 3)
    raise WireError("SRMPEnvelopeHeader.DataLength", length, f"{_SECTION}.1: no NUL is there")


class Compound(msgspec.Struct, frozen=True, gc=False):
    """CompoundMessageHeader: the HTTP request, and where in it the message body is."""

    data: bytes
    body_size: int = 0
    body_offset: int = 0

    @property
    def body(self) -> bytes:
        return self.data[self.body_offset : self.body_offset + self.body_size]

    def pack(self) -> bytes:
        """Without padding: it is the part of a packet that may be cut."""
        head = _COMPOUND.pack(
            _COMPOUND_ID,
            0,
            len(self.data),
            self.body_size,
            self.body_offset if self.body_size else 0,
        )
        return head + self.data

    @classmethod
    def of(cls, request: bytes, body: bytes) -> Self:
        """A body that is not in the request is empty, or was not sent as an attachment."""
        place = request.rfind(body) if body else -1
        return cls(request, len(body), place) if place >= 0 else cls(request)

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int]:
        require("CompoundMessageHeader", _COMPOUND.size, offset, end, _SECTION)
        _id, _reserved, size, body_size, body_offset = _COMPOUND.unpack_from(data, offset)
        start = offset + _COMPOUND.size
        raw = take("CompoundMessageHeader.HTTPBodySize", data, size, start, end, _SECTION)
        if body_offset + body_size > size:
            raise WireError("CompoundMessageHeader.MsgBodySize", body_size, f"{_SECTION}.2")
        after = start + size
        return cls(raw, body_size, body_offset), min(after + (offset - after & 3), end)


def compound_size(data: bytes, offset: int, end: int) -> int:
    """HTTPBodySize of one that was cut short; 0 if that is cut off, too."""
    if end - offset < _COMPOUND.size:
        return 0
    return int(_COMPOUND.unpack_from(data, offset)[2])
