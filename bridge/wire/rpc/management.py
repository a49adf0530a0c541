"""The calls of the remote management interface that clients ask every server. C706 appendix Q"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from bridge.model.guid import Guid
from bridge.wire.rpc.endpoint_mapper import InterfaceId, read_interface, write_interface
from bridge.wire.rpc.ndr import BadStub, Reader, Writer
from bridge.wire.rpc.stub import U32, Codec, Request, Stub

MANAGEMENT: Final = Guid.parse("afa8bd80-7d8a-11c9-bef4-08002b102989")  # version 1.0
_MOST: Final = 256


def _read_vector(reader: Reader) -> tuple[InterfaceId, ...]:
    if not reader.pointer():
        return ()
    most, count = reader.u32(), reader.u32()
    if count > most or most > _MOST:
        raise BadStub("rpc_if_id_vector.count", count, f"C706 appendix Q: of {most}")
    there = [reader.pointer() for _ in range(count)]
    return tuple(read_interface(reader) for is_there in there if is_there)


def _write_vector(writer: Writer, value: tuple[InterfaceId, ...]) -> None:
    writer.pointer(True)
    writer.u32(len(value))
    writer.u32(len(value))
    for _ in value:
        writer.pointer(True)
    for interface in value:
        write_interface(writer, interface)


class InterfaceIds(Stub, frozen=True, gc=False):
    interfaces: Annotated[tuple[InterfaceId, ...], Codec(_read_vector, _write_vector)]
    status: U32


class InquireInterfaceIds(Request, frozen=True, gc=False):
    # void rpc_mgmt_inq_if_ids([in] handle_t h, [out] rpc_if_id_vector_p_t* if_id_vector,
    #   [out] error_status_t* status);
    OPNUM: ClassVar[int] = 0
    RESPONSE: ClassVar[type[Stub]] = InterfaceIds


class IsListening(Stub, frozen=True, gc=False):
    status: U32
    answer: U32


class IsServerListening(Request, frozen=True, gc=False):
    # boolean32 rpc_mgmt_is_server_listening([in] handle_t h, [out] error_status_t* status);
    OPNUM: ClassVar[int] = 2
    RESPONSE: ClassVar[type[Stub]] = IsListening


class Text(msgspec.Struct, frozen=True, gc=False):
    """In an array with room for `most` characters, its NUL counted."""

    text: str = ""
    most: int = 1


def _read_text(reader: Reader) -> Text:
    most, offset, size = (reader.u32() for _ in range(3))
    if offset or size > most:
        raise BadStub("princ_name", size, "C706 appendix Q: [string] char[]")
    return Text(reader.take(size).rstrip(b"\0").decode("latin-1"), most)


def _write_text(writer: Writer, value: Text) -> None:
    raw = value.text.encode("latin-1", "replace") + b"\0"
    for number in (value.most, 0, len(raw)):
        writer.u32(number)
    writer.put(raw)


class PrincipalName(Stub, frozen=True, gc=False):
    name: Annotated[Text, Codec(_read_text, _write_text)]
    status: U32


class InquirePrincipalName(Request, frozen=True, gc=False):
    # void rpc_mgmt_inq_princ_name([in] handle_t h, [in] unsigned32 authn_proto,
    #   [in] unsigned32 princ_name_size,
    #   [out, string, size_is(princ_name_size)] char princ_name[], [out] error_status_t* status);
    OPNUM: ClassVar[int] = 4
    RESPONSE: ClassVar[type[Stub]] = PrincipalName
    package: U32
    most: U32
