"""The short way from bytes to a message, for packets without rare headers.

Most packets are a BaseHeader, a UserHeader with one direct name, perhaps a TransactionHeader, and
a MessagePropertiesHeader. They are read here in one pass, without a struct for every header. The
answer to whatever else a packet has, or has wrong, is None: then `UserMessage` reads it, so every
rule and every refusal stands in one place. tests/wire/binary/test_fast.py compares both ways.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from bridge.model.classes import MessageClass
from bridge.model.message import NO_KIND, Message, Transaction
from bridge.wire.binary.base import MAX_PACKET, PRIORITY, SIGNATURE, VERSION
from bridge.wire.binary.properties import LAYOUT as PROPERTIES
from bridge.wire.binary.properties import MAX_LABEL
from bridge.wire.binary.transaction import INDEX
from bridge.wire.binary.transaction import LAYOUT as TRANSACTION
from bridge.wire.cursor import decode_utf16, guid, known_guids, strip_nul

_HEAD: Final = Struct("<BxHIII16s16sIIIIH")  # both headers and the length of the name
_unpack_head: Final = _HEAD.unpack_from
_unpack_transaction: Final = TRANSACTION.unpack_from
_unpack_properties: Final = PROPERTIES.unpack_from
_NAME: Final = _HEAD.size
_TRANSACTION_SIZE: Final = TRANSACTION.size
_PROPERTIES_SIZE: Final = PROPERTIES.size

_USUAL: Final = 0x00200000 | 7 << 10  # UserHeader.Flags: MP, DQ = direct
_USUAL_TRANSACTIONAL: Final = _USUAL | 0x00100000 | 0x20  # TH, and DM as it demands
_FREE: Final = 0x31F  # RC and JN/JP
_RECOVERABLE: Final = 0x20
_ACKS: Final = MessageClass.ORDER_ACK.value  # this class and those above may be no message at all

_CACHE: Final = 4096
_LONGEST: Final = 1024
_names: dict[bytes, str] = {}
labels: dict[bytes, str] = {}


def read_message(
    data: bytes, start: int, available: int, peer: str, arrived_ms: int
) -> tuple[Message, int] | None:
    """The message at `start` and where it ends; None if only the long way can tell.

    Long, because a call in it would cost more than most of its lines.
    """
    if available - start < _NAME:
        return None
    head = _unpack_head(data, start)
    version, priority, magic, size, ttrq, source, manager, ttbr, sent, ordinal, flags, count = head
    end = start + size
    offset = start + 64 + (count + 5 & ~3)
    if (
        priority > PRIORITY  # a session header follows, or something to debug
        or end > available
        or size > MAX_PACKET
        or version != VERSION
        or magic != SIGNATURE
    ):
        return None
    kind = flags & ~_FREE
    if kind == _USUAL_TRANSACTIONAL:
        if offset + _TRANSACTION_SIZE > end:
            return None
        bits, sequence, number, previous = _unpack_transaction(data, offset)
        if bits & 0x1:  # CG: a GUID follows
            return None
        transaction = Transaction(
            sequence,
            number,
            previous,
            bits >> 4 & INDEX,
            bits & 4 != 0,
            bits & 8 != 0,
            bits & 2 != 0,
        )
        offset += _TRANSACTION_SIZE
    elif kind & ~_RECOVERABLE == _USUAL:
        transaction = None
    else:
        return None
    label = offset + _PROPERTIES_SIZE
    if label > end:
        return None
    properties = _unpack_properties(data, offset)
    acks, length, class_, correlation, body_type, app, body_size, room = properties[:8]
    extension = label + 2 * length
    body = extension + properties[11]
    after = body + body_size
    if length > MAX_LABEL or after + (offset - after & 3) > end or room < body_size:
        return None
    name = data[start + _NAME : start + _NAME + count]
    destination = _names.get(name) or _destination(name)
    if not destination or class_ >= _ACKS:
        return None
    text = ""
    if length:
        raw = data[label:extension]
        text = labels.get(raw) or label_of(raw)
    message = Message(
        known_guids.get(source) or guid(source),
        ordinal,
        destination,
        transaction,
        sent,
        arrived_ms,
        data[body:after],
        data[start:body] + data[after:end],
        text,
        correlation,
        data[extension:body],
        NO_KIND,
        flags >> 5 & 1,
        priority,
        ttrq,
        ttbr,
        body_type,
        peer,
        "binary",
        known_guids.get(manager) or guid(manager),
        class_,
        app,
        acks & 0xF,
        flags >> 8 & 3,
        flags & 0x1F,
        properties[8],
        properties[9],
        properties[10],
    )
    return message, end


def _destination(raw: bytes) -> str:
    if len(raw) % 2 or raw[-2:] != b"\0\0":
        return ""
    return _keep(_names, raw, "DIRECT=" + decode_utf16(raw[:-2]))


def label_of(raw: bytes) -> str:
    return _keep(labels, raw, strip_nul(decode_utf16(raw)))


def _keep(cache: dict[bytes, str], raw: bytes, text: str) -> str:
    """Names and labels come again and again, but they come from outside: bounded."""
    if len(raw) <= _LONGEST:
        if len(cache) >= _CACHE:
            cache.clear()
        cache[raw] = text
    return text
