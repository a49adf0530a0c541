"""SectionBuffers: a message packet in one piece, or cut short by what its reader can take.

A packet has one part that may be cut: the body, or the CompoundMessageHeader of a message that
came by HTTP. What comes before that part is always sent, and so is what follows it. MS-MQRR 2.2.6
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Final

import msgspec

from bridge.model.errors import WireError
from bridge.wire.pieces import Pieces
from bridge.wire.rpc.ndr import BadStub, Reader, Writer
from bridge.wire.rpc.stub import Codec

MOST: Final = 2
_LARGEST: Final = 16 << 20  # RR-52: of all sections together


class SectionType(IntEnum):
    """MS-MQRR 2.2.7"""

    FULL = 0
    BINARY_FIRST = 1
    BINARY_SECOND = 2
    SRMP_FIRST = 3
    SRMP_SECOND = 4


class Section(msgspec.Struct, frozen=True, gc=False):
    """`alloc` is how large it would have been with the whole part."""

    kind: int
    alloc: int
    pieces: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def data(self) -> bytes:
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)


def split(packet: Pieces, most: int) -> tuple[Section, ...]:
    """`most` bytes of the part are wanted. RR-32, RR-33

    Alloc of a first section is where the headers behind the part begin, padding included (D-12).
    """
    if most >= len(packet.part):
        return (Section(SectionType.FULL, len(packet), packet.all),)
    first = SectionType.SRMP_FIRST if packet.is_srmp else SectionType.BINARY_FIRST
    whole = len(packet) - len(packet.tail)
    sections = (Section(first, whole, (packet.head, packet.part[:most])),)
    if not packet.tail:
        return sections
    second = SectionType.SRMP_SECOND if packet.is_srmp else SectionType.BINARY_SECOND
    return (*sections, Section(second, len(packet.tail), (packet.tail,)))


def check(sections: Sequence[Section]) -> None:
    """What a server may answer with: WireError if it is anything else. RR-52"""
    kinds = tuple(section.kind for section in sections)
    if kinds not in _LAWFUL:
        raise WireError("SectionType", kinds, "MS-MQRR 2.2.6")
    if sum(section.size for section in sections) > _LARGEST:
        raise WireError("SectionSize", sum(s.size for s in sections), "RR-52: 16 MiB at most")


_LAWFUL: Final = {(0,), (1,), (1, 2), (3,), (3, 4)}


# -- in a stub ------------------------------------------------------------------------------


def _read_sections(reader: Reader) -> tuple[Section, ...]:
    """DWORD* pdwNumberOfSections, [size_is(, *pdwNumberOfSections)] SectionBuffer**"""
    count, is_there = reader.u32(), reader.pointer()
    if not is_there:
        if count:
            raise BadStub("pdwNumberOfSections", count, "MS-MQRR 3.1.4.7: but no array")
        return ()
    if count > MOST or reader.u32() != count:
        raise BadStub("pdwNumberOfSections", count, "MS-MQRR 2.2.6: two at most")
    heads = [(reader.u16(), reader.u32(), reader.u32(), reader.pointer()) for _ in range(count)]
    return tuple(_read_body(reader, *head) for head in heads)


def _read_body(reader: Reader, kind: int, alloc: int, size: int, is_there: bool) -> Section:
    if size and not is_there:
        raise BadStub("SectionSize", size, "MS-MQRR 2.2.6: but no buffer")
    if alloc < size:
        raise BadStub("SectionSizeAlloc", alloc, "MS-MQRR 2.2.6: less than SectionSize")
    return Section(kind, alloc, (reader.conformant(size),) if is_there else (b"",))


def _write_sections(writer: Writer, sections: Sequence[Section]) -> None:
    writer.u32(len(sections))
    writer.pointer(bool(sections))
    if not sections:
        return
    writer.u32(len(sections))
    for section in sections:
        writer.align(4)
        writer.u16(section.kind)
        writer.u32(section.alloc)
        writer.u32(section.size)
        writer.pointer(True)
    for section in sections:
        writer.conformant(section.pieces)


Sections = Annotated[tuple[Section, ...], Codec(_read_sections, _write_sections)]
