"""The calls of the endpoint mapper that clients find ports by. C706 appendix O, MS-RPCE 2.2.1.2"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.rpc.ndr import NULL_HANDLE, BadStub, Reader, Writer
from bridge.wire.rpc.stub import U32, Codec, Handle, Request, Stub, ranged

ENDPOINT_MAPPER: Final = Guid.parse("e1af8308-5d1f-11c9-91a4-08002b14a0fa")  # version 3.0
VERSION: Final = (3, 0)
NOT_REGISTERED: Final = 0x16C9A0D6  # ept_s_not_registered
_MOST: Final = 500
_ANNOTATION: Final = 64


class InterfaceId(msgspec.Struct, frozen=True, gc=False):
    """RPC_IF_ID"""

    uuid: Guid
    major: int
    minor: int


def _read_guid(reader: Reader) -> Guid | None:
    return reader.guid() if reader.pointer() else None


def _write_guid(writer: Writer, value: Guid | None) -> None:
    writer.pointer(value is not None)
    if value is not None:
        writer.guid(value)


def read_interface(reader: Reader) -> InterfaceId:
    return InterfaceId(reader.guid(), reader.u16(), reader.u16())


def write_interface(writer: Writer, value: InterfaceId) -> None:
    writer.guid(value.uuid)
    writer.u16(value.major)
    writer.u16(value.minor)


def _read_optional_interface(reader: Reader) -> InterfaceId | None:
    return read_interface(reader) if reader.pointer() else None


def _write_optional_interface(writer: Writer, value: InterfaceId | None) -> None:
    writer.pointer(value is not None)
    if value is not None:
        write_interface(writer, value)


def _read_tower(reader: Reader) -> bytes:
    """twr_t: the count of its array comes first, then the length, then the bytes."""
    most, size = reader.u32(), reader.u32()
    if most != size:
        raise BadStub("tower_length", size, f"C706 14.3.7.1: max_count is {most}")
    return reader.take(size)


def _write_tower(writer: Writer, tower: bytes) -> None:
    writer.u32(len(tower))
    writer.u32(len(tower))
    writer.put(tower)


def _read_optional_tower(reader: Reader) -> bytes | None:
    return _read_tower(reader) if reader.pointer() else None


def _write_optional_tower(writer: Writer, value: bytes | None) -> None:
    writer.pointer(value is not None)
    if value is not None:
        _write_tower(writer, value)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """ept_entry_t"""

    tower: bytes
    annotation: str = ""
    object: Guid = NULL_GUID


class Listed(msgspec.Struct, frozen=True, gc=False):
    """Towers or entries, out of an array with room for `most`."""

    items: tuple[bytes, ...] = ()
    most: int = 0


class ListedEntries(msgspec.Struct, frozen=True, gc=False):
    items: tuple[Entry, ...] = ()
    most: int = 0


def _read_counts(reader: Reader) -> tuple[int, int]:
    count, most, offset, actual = (reader.u32() for _ in range(4))
    if offset or actual != count or count > most or most > _MOST:
        raise BadStub("num_towers", count, f"C706 appendix O: {actual} of {most}")
    return count, most


def _write_counts(writer: Writer, count: int, most: int) -> None:
    for number in (count, most, 0, count):
        writer.u32(number)


def _read_towers(reader: Reader) -> Listed:
    count, most = _read_counts(reader)
    there = [reader.pointer() for _ in range(count)]
    return Listed(tuple(_read_tower(reader) for is_there in there if is_there), most)


def _write_towers(writer: Writer, value: Listed) -> None:
    _write_counts(writer, len(value.items), value.most)
    for _ in value.items:
        writer.pointer(True)
    for tower in value.items:
        _write_tower(writer, tower)


def _read_entries(reader: Reader) -> ListedEntries:
    count, most = _read_counts(reader)
    heads = [_read_entry(reader) for _ in range(count)]
    towers = [_read_tower(reader) if is_there else b"" for _, is_there, _ in heads]
    found = zip(heads, towers, strict=True)
    entries = tuple(Entry(tower, note, who) for (who, _, note), tower in found)
    return ListedEntries(entries, most)


def _read_entry(reader: Reader) -> tuple[Guid, bool, str]:
    who, is_there, offset, size = reader.guid(), reader.pointer(), reader.u32(), reader.u32()
    if offset or not 1 <= size <= _ANNOTATION:
        raise BadStub("annotation", size, "C706 appendix O: [string] char[64]")
    return who, is_there, reader.take(size)[:-1].decode("latin-1")


def _write_entries(writer: Writer, value: ListedEntries) -> None:
    _write_counts(writer, len(value.items), value.most)
    for entry in value.items:
        note = entry.annotation.encode("latin-1", "replace")[: _ANNOTATION - 1] + b"\0"
        writer.guid(entry.object)
        writer.pointer(True)
        writer.u32(0)
        writer.u32(len(note))
        writer.put(note)
    for entry in value.items:
        _write_tower(writer, entry.tower)


OptionalGuid = Annotated[Guid | None, Codec(_read_guid, _write_guid)]
OptionalInterface = Annotated[
    InterfaceId | None, Codec(_read_optional_interface, _write_optional_interface)
]
OptionalTower = Annotated[bytes | None, Codec(_read_optional_tower, _write_optional_tower)]
Most = Annotated[int, ranged("max_ents", 0, _MOST)]


class LookedUp(Stub, frozen=True, gc=False):
    handle: Handle
    entries: Annotated[ListedEntries, Codec(_read_entries, _write_entries)]
    status: U32


class Lookup(Request, frozen=True, gc=False, kw_only=True):
    # void ept_lookup([in] handle_t h, [in, range(0, 2)] unsigned long inquiry_type,
    #   [in, unique] UUID* object, [in, unique] RPC_IF_ID* Ifid,
    #   [in, range(1, 5)] unsigned long vers_option, [in, out] ept_lookup_handle_t* entry_handle,
    #   [in, range(0, 500)] unsigned long max_ents, [out] unsigned long* num_ents,
    #   [out, length_is(*num_ents), size_is(max_ents)] ept_entry_t entries[],
    #   [out] error_status* status);
    OPNUM: ClassVar[int] = 2
    RESPONSE: ClassVar[type[Stub]] = LookedUp
    inquiry: U32 = 0
    object: OptionalGuid = None
    interface: OptionalInterface = None
    version_option: U32 = 1
    handle: Handle = NULL_HANDLE
    most: Most = _MOST


class Mapped(Stub, frozen=True, gc=False):
    handle: Handle
    towers: Annotated[Listed, Codec(_read_towers, _write_towers)]
    status: U32


class Map(Request, frozen=True, gc=False, kw_only=True):
    # void ept_map([in] handle_t h, [in, unique] UUID* obj, [in, unique] twr_p_t map_tower,
    #   [in, out] ept_lookup_handle_t* entry_handle, [in, range(0, 500)] unsigned long max_towers,
    #   [out] unsigned long* num_towers,
    #   [out, length_is(*num_towers), size_is(max_towers)] twr_p_t* ITowers,
    #   [out] error_status* status);
    OPNUM: ClassVar[int] = 3
    RESPONSE: ClassVar[type[Stub]] = Mapped
    object: OptionalGuid = None
    tower: OptionalTower = None
    handle: Handle = NULL_HANDLE
    most: Most = 4


class HandleFreed(Stub, frozen=True, gc=False):
    handle: Handle
    status: U32


class FreeHandle(Request, frozen=True, gc=False):
    # void ept_lookup_handle_free([in] handle_t h, [in, out] ept_lookup_handle_t* entry_handle,
    #   [out] error_status* status);
    OPNUM: ClassVar[int] = 4
    RESPONSE: ClassVar[type[Stub]] = HandleFreed
    handle: Handle
