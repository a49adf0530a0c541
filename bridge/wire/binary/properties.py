"""MessagePropertiesHeader: label, extension and body. MS-MQMQ 2.2.19.3"""

from __future__ import annotations

from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.wire.binary.base import MAX_PACKET
from bridge.wire.cursor import decode_utf16, encode_utf16z, pad4

# PropertiesHeader.ack_flags
ACK_ARRIVAL: Final = 0x01  # PA
ACK_RECEIVE: Final = 0x02  # PR
NACK_ARRIVAL: Final = 0x04  # NA
NACK_RECEIVE: Final = 0x08  # NR

SHA1: Final = 0x8004
RC4: Final = 0x6801
NO_CORRELATION: Final = bytes(20)

LAYOUT: Final = Struct("<BBH20sIIIIIIII")
_unpack: Final = LAYOUT.unpack_from
_SIZE: Final = LAYOUT.size
MAX_LABEL: Final = 0xFA  # WCHARs with the NUL
_SECTION: Final = "MS-MQMQ 2.2.19.3"


class PropertiesHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`allocation_size` is at least len(body), which is its default: the bytes of the packet that
    belong to the body. What the body does not use of them follows it, with any value."""

    ack_flags: int = 0
    label: str = ""
    message_class: int = 0
    correlation_id: bytes = NO_CORRELATION
    body_type: int = 0  # a VARENUM, carried and never judged
    app_specific: int = 0
    allocation_size: int = -1
    privacy_level: int = 0
    hash_algorithm: int = SHA1
    encryption_algorithm: int = RC4
    extension: bytes = b""
    body: bytes = b""

    def __post_init__(self) -> None:
        if self.allocation_size < 0:
            msgspec.structs.force_setattr(self, "allocation_size", len(self.body))

    def pack(self) -> bytes:
        label = encode_utf16z(self.label) if self.label else b""
        if len(label) == 2 * MAX_LABEL + 2:
            label = label[:-2]  # only a peer that sent no NUL can have filled all the room
        if len(label) > 2 * MAX_LABEL:
            raise WireError("MessagePropertiesHeader.LabelLength", len(label) // 2, _SECTION)
        room = max(self.allocation_size, len(self.body))
        if room > MAX_PACKET:
            raise WireError("MessagePropertiesHeader.AllocationBodySize", room, _SECTION)
        head = LAYOUT.pack(
            self.ack_flags,
            len(label) // 2,
            self.message_class,
            self.correlation_id,
            self.body_type,
            self.app_specific,
            len(self.body),
            room,
            self.privacy_level,
            self.hash_algorithm,
            self.encryption_algorithm,
            len(self.extension),
        )
        unused = bytes(room - len(self.body))
        return pad4(b"".join((head, label, self.extension, self.body, unused)))

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int, int]:
        """The header, where its body starts, and where the next header starts."""
        if end - offset < _SIZE:
            raise WireError("MessagePropertiesHeader", end - offset, f"{_SECTION}: 56 bytes")
        (
            flags,
            label_length,
            message_class,
            correlation_id,
            body_type,
            app_specific,
            size,
            allocation_size,
            privacy_level,
            hash_algorithm,
            encryption_algorithm,
            extension_size,
        ) = _unpack(data, offset)
        # Only the end of the header is padded, not what is inside it.
        label = offset + _SIZE
        extension = label + 2 * label_length
        body = extension + extension_size
        after = _behind(offset, body + size)
        if label_length > MAX_LABEL:
            raise WireError("MessagePropertiesHeader.LabelLength", label_length, _SECTION)
        if after > end:
            raise WireError("MessagePropertiesHeader.MessageSize", size, f"{_SECTION}: too long")
        if allocation_size < size:
            raise WireError("MessagePropertiesHeader.AllocationBodySize", allocation_size, _SECTION)
        if allocation_size > size:
            allocated = _behind(offset, body + allocation_size)
            if allocated <= end:
                after = allocated
            else:  # only a number: a packet has no room that reaches beyond it
                allocation_size = size
        text = ""
        if label_length:
            text = decode_utf16(data[label:extension])
            if text[-1] == "\0":
                text = text[:-1]
        header = cls(
            ack_flags=flags & 0x0F,
            label=text,
            message_class=message_class,
            correlation_id=correlation_id,
            body_type=body_type,
            app_specific=app_specific,
            allocation_size=allocation_size,
            privacy_level=privacy_level,
            hash_algorithm=hash_algorithm,
            encryption_algorithm=encryption_algorithm,
            extension=data[extension:body],
            body=data[body : body + size],
        )
        return header, body, after

    @staticmethod
    def body_gap(data: bytes, offset: int, end: int) -> tuple[int, int]:
        """Where the body belongs in a header that lost it, and how long it was."""
        if end - offset < _SIZE:
            raise WireError("MessagePropertiesHeader", end - offset, f"{_SECTION}: 56 bytes")
        fields = _unpack(data, offset)
        gap = offset + _SIZE + 2 * fields[1] + fields[11]
        if gap > end:
            raise WireError("MessagePropertiesHeader.ExtensionSize", fields[11], _SECTION)
        return gap, fields[6]


def _behind(start: int, end: int) -> int:
    """Where the next header starts: this one is padded to a multiple of 4 bytes."""
    return end + (start - end & 3)
