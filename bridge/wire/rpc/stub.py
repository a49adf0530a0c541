"""Requests and responses as structs: each field says how it lies in the stub.

    class CloseCursor(Stub, frozen=True):
        OPNUM: ClassVar[int] = 5
        handle: Handle
        cursor: U32

A struct packs and unpacks its fields in their order, each aligned as NDR wants it. The annotations
below are the types of IDL that the MSMQ interfaces use; a pointer that stands in a struct is
written by the codec of that struct, because what it points to comes after the struct.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_type_hints

import msgspec

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import Reader, Writer


class Codec(NamedTuple):
    """How one parameter is read and written."""

    read: Callable[[Reader], Any]
    write: Callable[[Writer, Any], None]


def _put_bytes(size: int) -> Codec:
    return Codec(lambda reader: reader.take(size), lambda writer, value: writer.put(value))


def ranged(name: str, low: int, high: int) -> Codec:
    """A DWORD with [range(low, high)]."""
    return Codec(lambda reader: reader.ranged(name, low, high), Writer.u32)


U8 = Annotated[int, Codec(Reader.u8, Writer.u8)]
U16 = Annotated[int, Codec(Reader.u16, Writer.u16)]
U32 = Annotated[int, Codec(Reader.u32, Writer.u32)]
U64 = Annotated[int, Codec(Reader.u64, Writer.u64)]
Id = Annotated[Guid, Codec(Reader.guid, Writer.guid)]  # [in] GUID*, a ref pointer
Handle = Annotated[bytes, Codec(Reader.handle, Writer.handle)]
Uow = Annotated[bytes, _put_bytes(16)]  # XACTUOW: bytes, so it is not aligned


class Stub(msgspec.Struct, frozen=True, gc=False):
    """The parameters of a call, in one direction."""

    def pack(self) -> bytes:
        return b"".join(self.buffers())

    def buffers(self) -> list[bytes]:
        """The same in pieces: large arrays are not copied."""
        writer = Writer()
        for name, codec in codecs(type(self)):
            codec.write(writer, getattr(self, name))
        return writer.buffers()

    @classmethod
    def unpack(cls, stub: bytes) -> Self:
        """BadStub if it is not what the IDL says; more bytes than that do not matter (RR-10)."""
        reader = Reader(stub)
        return cls(**{name: codec.read(reader) for name, codec in codecs(cls)})


class Request(Stub, frozen=True, gc=False):
    """What a client sends. `RESPONSE` is what comes back, unless it is a fault."""

    OPNUM: ClassVar[int]
    RESPONSE: ClassVar[type[Stub]]


class Result(Stub, frozen=True, gc=False):
    """Of a call that answers with nothing but an HRESULT."""

    status: U32


@lru_cache(maxsize=256)
def codecs(struct: type[Stub]) -> tuple[tuple[str, Codec], ...]:
    hints = get_type_hints(struct, include_extras=True)
    return tuple((name, hints[name].__metadata__[0]) for name in struct.__struct_fields__)
