"""QUEUE_FORMAT: how RPC names a queue. MS-MQMQ 2.2.7

    u8 m_qft, u8 m_SuffixAndFlags, u16 reserved, u8 tag (= m_qft), pad, arm

The arm depends on the tag. Texts are behind a pointer, so they follow the struct.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from bridge.model.formats import (
    CONNECTOR,
    DIRECT,
    DISTRIBUTION_LIST,
    MACHINE,
    MULTICAST,
    PRIVATE,
    PUBLIC,
    SUBQUEUE,
)
from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.rpc.ndr import BAD_TAG, BadStub, Reader, Writer
from bridge.wire.rpc.stub import Codec

UNKNOWN: Final = 0
SYSTEM: Final = 0x80  # QueueFormat.suffix: a queue of the queue manager's own
_GUIDS: Final = (PUBLIC, MACHINE, CONNECTOR)
_TEXTS: Final = (DIRECT, SUBQUEUE)
_SECTION: Final = "MS-MQMQ 2.2.7"


class QueueFormat(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """`text` is a direct name without `DIRECT=`, or the domain of a distribution list; None where
    the pointer is NULL."""

    kind: int  # m_qft
    suffix: int = 0  # m_SuffixAndFlags
    guid: Guid = NULL_GUID
    number: int = 0  # of a private queue; the address of a multicast group
    port: int = 0
    text: str | None = None


def read_queue_format(reader: Reader) -> QueueFormat:
    reader.align(4)
    kind, suffix, _reserved, tag = reader.u8(), reader.u8(), reader.u16(), reader.u8()
    if tag != kind:
        raise BadStub("QUEUE_FORMAT.tag", tag, f"{_SECTION}: switch_is(m_qft), which is {kind}")
    if kind > SUBQUEUE:
        raise BadStub("QUEUE_FORMAT.tag", tag, f"{_SECTION}: there is no such arm", BAD_TAG)
    guid, number, port, text = NULL_GUID, 0, 0, None
    if kind in _GUIDS or kind in (PRIVATE, DISTRIBUTION_LIST):
        guid = reader.guid()
    if kind == PRIVATE:
        number = reader.u32()
    elif kind == MULTICAST:
        number, port = reader.u32(), reader.u32()
    elif (kind in _TEXTS or kind == DISTRIBUTION_LIST) and reader.pointer():
        text = reader.wide_string()
    return QueueFormat(kind=kind, suffix=suffix, guid=guid, number=number, port=port, text=text)


def write_queue_format(writer: Writer, value: QueueFormat) -> None:
    writer.align(4)
    for byte in (value.kind, value.suffix, 0, 0, value.kind):
        writer.u8(byte)
    kind = value.kind
    if kind in _GUIDS or kind in (PRIVATE, DISTRIBUTION_LIST):
        writer.guid(value.guid)
    if kind == PRIVATE:
        writer.u32(value.number)
    elif kind == MULTICAST:
        writer.u32(value.number)
        writer.u32(value.port)
    elif kind in _TEXTS or kind == DISTRIBUTION_LIST:
        writer.pointer(value.text is not None)
        if value.text is not None:
            writer.wide_string(value.text)


def _read_unique(reader: Reader) -> QueueFormat | None:
    return read_queue_format(reader) if reader.pointer() else None


def _write_unique(writer: Writer, value: QueueFormat | None) -> None:
    writer.pointer(value is not None)
    if value is not None:
        write_queue_format(writer, value)


Format = Annotated[QueueFormat, Codec(read_queue_format, write_queue_format)]
OptionalFormat = Annotated[QueueFormat | None, Codec(_read_unique, _write_unique)]
