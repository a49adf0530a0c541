"""UserHeader: from whom, to which queue, and how. MS-MQMQ 2.2.19.2"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final, Self

import msgspec

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.binary.base import INFINITE
from bridge.wire.cursor import decode_utf16, encode_utf16z, guid, known_guids, pad4, require, take

# Which headers follow; the second argument of pack and the second result of unpack_from.
SECURITY: Final = 0x00080000  # SH
TRANSACTION: Final = 0x00100000  # TH
MULTI_QUEUE: Final = 0x00800000  # MQ
SOAP: Final = 0x10000000  # HH
PRESENT: Final = SECURITY | TRANSACTION | MULTI_QUEUE | SOAP

EXPRESS: Final = 0  # UserHeader.delivery
RECOVERABLE: Final = 1
JOURNAL_NEGATIVE: Final = 1  # JN, in UserHeader.journal
JOURNAL_POSITIVE: Final = 2  # JP

# How a queue is named: QueueRef.code.
NONE: Final = 0
AS_ADMIN: Final = 1  # the response queue is the administration queue
PRIVATE_AT_SOURCE: Final = 2
PRIVATE_AT_DESTINATION: Final = 3
PRIVATE_AT_ADMIN: Final = 4
PUBLIC: Final = 5
PRIVATE: Final = 6
DIRECT: Final = 7

_LAYOUT: Final = Struct("<16s16sIIII")
_unpack: Final = _LAYOUT.unpack_from
_SIZE: Final = _LAYOUT.size
_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_HOPS: Final = 0x1F  # RC
_RECOVERABLE: Final = 0x20  # DM = 1
_DELIVERY_RESERVED: Final = 0x40  # DM = 2 or 3
_PROPERTIES: Final = 0x00200000  # MP
_CONNECTOR: Final = 0x00400000  # CQ
_CAME_BY_HTTP: Final = 0x02000000  # AH
_SECTION: Final = "MS-MQMQ 2.2.19.2"
_DIRECT_SECTION: Final = "MS-MQMQ 2.2.18.1.5.2"
# One bit per code that may stand there.
_DESTINATION_CODES: Final = 0b10101001
_ADMIN_CODES: Final = 0b11101101

_MAX_NAMES: Final = 2048
_MAX_NAME_SIZE: Final = 1024
_direct_names: dict[bytes, QueueRef] = {}


class QueueRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One queue name as it lies in a UserHeader; `text` has no "DIRECT="."""

    code: int = NONE
    number: int = 0
    guid: Guid = NULL_GUID
    text: str = ""

    def pack(self) -> bytes:
        match self.code:
            case 2 | 3 | 4:
                return _U32.pack(self.number)
            case 5:
                return bytes(self.guid)
            case 6:
                return self.guid + _U32.pack(self.number)
            case 7:
                return _pack_direct(self.text)
            case _:
                return b""

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int, code: int) -> tuple[QueueRef, int]:
        if code == DIRECT:
            return _read_direct(data, offset, end)
        if code == PUBLIC:
            raw = take("QueueFormatName", data, 16, offset, end, _SECTION)
            return cls(code=code, guid=guid(raw)), offset + 16
        if code == PRIVATE:
            raw = take("QueueFormatName", data, 20, offset, end, _SECTION)
            (number,) = _U32.unpack_from(raw, 16)
            return cls(code=code, number=number, guid=guid(raw[:16])), offset + 20
        if code in (NONE, AS_ADMIN):  # CONFLICT-15: RQ=1 takes no room
            return (NO_QUEUE if code == NONE else cls(code=code)), offset
        require("PrivateQueueIdentifier", 4, offset, end, _SECTION)
        (number,) = _U32.unpack_from(data, offset)
        return cls(code=code, number=number), offset + 4


NO_QUEUE: Final = QueueRef()


def _pack_direct(text: str) -> bytes:
    raw = encode_utf16z(text)
    if len(raw) > 0xFFFF:
        raise WireError("DirectQueueFormatName.Count", len(raw), _DIRECT_SECTION)
    return pad4(_U16.pack(len(raw)) + raw)


def _read_direct(data: bytes, offset: int, end: int) -> tuple[QueueRef, int]:
    if end - offset < 2:
        raise WireError("DirectQueueFormatName.Count", end - offset, _DIRECT_SECTION)
    count = data[offset] | data[offset + 1] << 8
    after = offset + (count + 5 & ~3)
    if after > end:
        raise WireError("DirectQueueFormatName.Count", count, _DIRECT_SECTION)
    raw = data[offset + 2 : offset + 2 + count]
    return _direct_names.get(raw) or _decode_direct(raw), after


def _decode_direct(raw: bytes) -> QueueRef:
    if len(raw) % 2 or raw[-2:] != b"\0\0":
        raise WireError("DirectQueueFormatName", raw[-8:], f"{_DIRECT_SECTION}: ends with NUL")
    name = QueueRef(code=DIRECT, text=decode_utf16(raw[:-2]))
    if len(raw) <= _MAX_NAME_SIZE:
        if len(_direct_names) >= _MAX_NAMES:
            _direct_names.clear()
        _direct_names[raw] = name
    return name


class UserHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """MS-MQMQ 2.2.19.2. Which headers follow is not kept here: the message has them or not."""

    source: Guid
    queue_manager: Guid = NULL_GUID  # of the destination; null with direct names
    time_to_be_received: int = INFINITE  # seconds after sent_time
    sent_time: int  # Unix seconds
    message_id: int  # unique at its source
    hop_count: int = 0
    delivery: int = EXPRESS
    journal: int = 0
    destination: QueueRef
    admin: QueueRef = NO_QUEUE
    response: QueueRef = NO_QUEUE
    connector_type: Guid | None = None

    def pack(self, present: int = 0) -> bytes:
        flags = (
            self.hop_count
            | self.delivery << 5
            | self.journal << 8
            | self.destination.code << 10
            | self.admin.code << 13
            | self.response.code << 16
            | _PROPERTIES
            | present
            | (0 if self.connector_type is None else _CONNECTOR)
        )
        _check(flags)
        head = _LAYOUT.pack(
            self.source,
            self.queue_manager,
            self.time_to_be_received,
            self.sent_time,
            self.message_id,
            flags,
        )
        queues = self.destination.pack() + self.admin.pack() + self.response.pack()
        return head + queues + (self.connector_type or b"")

    @classmethod
    def unpack_from(cls, data: bytes, offset: int, end: int) -> tuple[Self, int, int]:
        """The header, the PRESENT bits, and where the next header starts."""
        if end - offset < _SIZE:
            raise WireError("UserHeader", end - offset, f"{_SECTION}: 48 bytes")
        source, manager, ttbr, sent, message_id, flags = _unpack(data, offset)
        hops, delivery, journal, dq, aq, rq, has_connector, present = _split(flags)
        offset += _SIZE
        if dq == DIRECT:
            destination, offset = _read_direct(data, offset, end)
        else:
            destination, offset = QueueRef.unpack_from(data, offset, end, dq)
        admin = response = NO_QUEUE
        if aq:
            admin, offset = QueueRef.unpack_from(data, offset, end, aq)
        if rq:
            response, offset = QueueRef.unpack_from(data, offset, end, rq)
        connector = None
        if has_connector:
            connector = guid(take("UserHeader.ConnectorType", data, 16, offset, end, _SECTION))
            offset += 16
        header = cls(
            source=known_guids.get(source) or guid(source),
            queue_manager=known_guids.get(manager) or guid(manager),
            time_to_be_received=ttbr,
            sent_time=sent,
            message_id=message_id,
            hop_count=hops,
            delivery=delivery,
            journal=journal,
            destination=destination,
            admin=admin,
            response=response,
            connector_type=connector,
        )
        return header, present, offset


@lru_cache(maxsize=1024)  # a sender sets the same flags every time
def _split(flags: int) -> tuple[int, int, int, int, int, int, bool, int]:
    _check(flags)
    return (
        flags & _HOPS,
        flags >> 5 & 1,
        flags >> 8 & 3,
        flags >> 10 & 7,
        flags >> 13 & 7,
        flags >> 16 & 7,
        flags & _CONNECTOR != 0,
        flags & PRESENT,
    )


def _check(flags: int) -> None:
    if fault := _fault(flags):  # MS-MQQB 3.1.5.1.3 (QB-3)
        raise WireError("UserHeader.Flags", hex(flags), f"{_SECTION}: {fault}")


def _fault(flags: int) -> str:
    if not flags & _PROPERTIES:
        return "MP must be 1"
    if flags & _CAME_BY_HTTP:
        return "AH must be 0"
    if flags & _DELIVERY_RESERVED:
        return "DM must be 0 or 1"
    if flags & TRANSACTION and not flags & _RECOVERABLE:
        return "TH requires DM 1"
    if not _DESTINATION_CODES >> (flags >> 10 & 7) & 1:
        return "DQ must be 0, 3, 5 or 7"
    if not _ADMIN_CODES >> (flags >> 13 & 7) & 1:
        return "AQ must be 0, 2, 3, 5, 6 or 7"
    return ""
