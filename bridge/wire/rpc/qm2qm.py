"""The calls of qm2qm, by which old queue managers read. MS-MQQP 3.1.4

Queues are named by the number that R_QMOpenRemoteQueue gave out (see `qmcomm`), a message that was
received by a context handle of its own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import BadStub, Reader, Writer
from bridge.wire.rpc.remote_read import Ack, Port
from bridge.wire.rpc.stub import U8, U16, U32, U64, Codec, Handle, Id, Request, Result, Stub, ranged

QM2QM: Final = Guid.parse("1088a980-eae5-11d0-8d9b-00a02453c337")  # version 1.0
MOST_BUFFER: Final = 0x420000  # RR-41
_SERVER: Final = 1  # Reserved, as a server sends it


class ReadDescriptor(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """REMOTEREADDESC. MS-MQQP 2.2.2.1; `packet` is in pieces so that nobody copies it."""

    remote_queue: int
    cursor: int = 0
    action: int = 0
    timeout_ms: int = 0
    queue: int  # the same number again
    request_id: int = 0
    reserved: int = 0
    arrived: int = 0
    ack: int = 0
    packet: tuple[bytes, ...] | None = None

    @property
    def size(self) -> int:
        return sum(map(len, self.packet or ()))

    def answer(self, arrived: int = 0, packet: tuple[bytes, ...] | None = None) -> ReadDescriptor:
        return msgspec.structs.replace(self, reserved=_SERVER, arrived=arrived, packet=packet)


def _read_descriptor(reader: Reader) -> ReadDescriptor:
    remote_queue, cursor, action, timeout_ms = (reader.u32() for _ in range(4))
    size = reader.ranged("dwSize", 0, MOST_BUFFER)
    queue, request_id, reserved, arrived = (reader.u32() for _ in range(4))
    ack, is_there = reader.u16(), reader.pointer()
    if size and not is_there:
        raise BadStub("dwSize", size, "MS-MQQP 2.2.2.1: but no buffer")
    return ReadDescriptor(
        remote_queue=remote_queue,
        cursor=cursor,
        action=action,
        timeout_ms=timeout_ms,
        queue=queue,
        request_id=request_id,
        reserved=reserved,
        arrived=arrived,
        ack=ack,
        packet=(reader.varying(size),) if is_there else None,
    )


def _write_descriptor(writer: Writer, value: ReadDescriptor) -> None:
    for number in (
        value.remote_queue,
        value.cursor,
        value.action,
        value.timeout_ms,
        value.size,
        value.queue,
        value.request_id,
        value.reserved,
        value.arrived,
    ):
        writer.u32(number)
    writer.u16(value.ack)
    writer.pointer(value.packet is not None)
    if value.packet is not None:
        writer.varying(value.packet)


class ReadDescriptor2(msgspec.Struct, frozen=True, gc=False):
    """REMOTEREADDESC2. MS-MQQP 2.2.2.2"""

    descriptor: ReadDescriptor | None
    sequence_id: int = 0


def _read_descriptor2(reader: Reader) -> ReadDescriptor2:
    reader.align(8)
    is_there, sequence_id = reader.pointer(), reader.u64()
    return ReadDescriptor2(_read_descriptor(reader) if is_there else None, sequence_id)


def _write_descriptor2(writer: Writer, value: ReadDescriptor2) -> None:
    writer.align(8)
    writer.pointer(value.descriptor is not None)
    writer.u64(value.sequence_id)
    if value.descriptor is not None:
        _write_descriptor(writer, value.descriptor)


Descriptor = Annotated[ReadDescriptor, Codec(_read_descriptor, _write_descriptor)]
Descriptor2 = Annotated[ReadDescriptor2, Codec(_read_descriptor2, _write_descriptor2)]


class ReadStarted(Stub, frozen=True, gc=False):
    handle: Handle
    descriptor: Descriptor
    status: U32


class StartReceive(Request, frozen=True, gc=False):
    # HRESULT RemoteQMStartReceive([in] handle_t hBind,
    #   [out] PCTX_REMOTEREAD_HANDLE_TYPE* pphContext,
    #   [in, out] REMOTEREADDESC* lpRemoteReadDesc);
    OPNUM: ClassVar[int] = 0
    RESPONSE: ClassVar[type[Stub]] = ReadStarted
    descriptor: Descriptor


class HandleGone(Stub, frozen=True, gc=False):
    handle: Handle
    status: U32


class EndReceive(Request, frozen=True, gc=False):
    # HRESULT RemoteQMEndReceive([in] handle_t hBind,
    #   [in, out] PCTX_REMOTEREAD_HANDLE_TYPE* pphContext, [in, range(1, 2)] DWORD dwAck);
    OPNUM: ClassVar[int] = 1
    RESPONSE: ClassVar[type[Stub]] = HandleGone
    handle: Handle
    ack: Ack


class OpenQueue(Request, frozen=True, gc=False):
    # HRESULT RemoteQMOpenQueue([in] handle_t hBind, [out] PCTX_RRSESSION_HANDLE_TYPE* phContext,
    #   [in] GUID* pLicGuid, [in, range(0, 16)] DWORD dwMQS, [in] DWORD hQueue,
    #   [in] DWORD pQueue, [in] DWORD dwpContext);
    OPNUM: ClassVar[int] = 2
    RESPONSE: ClassVar[type[Stub]] = HandleGone
    license: Id
    mqs: Annotated[int, ranged("dwMQS", 0, 16)]
    remote_queue: U32
    queue: U32
    context: U32


class CloseQueue(Request, frozen=True, gc=False):
    # HRESULT RemoteQMCloseQueue([in] handle_t hBind,
    #   [in, out] PCTX_RRSESSION_HANDLE_TYPE* pphContext);
    OPNUM: ClassVar[int] = 3
    RESPONSE: ClassVar[type[Stub]] = HandleGone
    handle: Handle


class CloseCursor(Request, frozen=True, gc=False):
    # HRESULT RemoteQMCloseCursor([in] handle_t hBind, [in] DWORD hQueue, [in] DWORD hCursor);
    OPNUM: ClassVar[int] = 4
    RESPONSE: ClassVar[type[Stub]] = Result
    remote_queue: U32
    cursor: U32


class CancelReceive(Request, frozen=True, gc=False):
    # HRESULT RemoteQMCancelReceive([in] handle_t hBind, [in] DWORD hQueue, [in] DWORD pQueue,
    #   [in] DWORD dwRequestID);
    OPNUM: ClassVar[int] = 5
    RESPONSE: ClassVar[type[Stub]] = Result
    remote_queue: U32
    queue: U32
    request_id: U32


class PurgeQueue(Request, frozen=True, gc=False):
    # HRESULT RemoteQMPurgeQueue([in] handle_t hBind, [in] DWORD hQueue);
    OPNUM: ClassVar[int] = 6
    RESPONSE: ClassVar[type[Stub]] = Result
    remote_queue: U32


class GetServerPort(Request, frozen=True, gc=False):
    # DWORD RemoteQMGetQMQMServerPort([in] handle_t hBind, [in, range(0, 3)] DWORD dwPortType);
    OPNUM: ClassVar[int] = 7
    RESPONSE: ClassVar[type[Stub]] = Port
    kind: Annotated[int, ranged("dwPortType", 0, 3)]


class Version(Stub, frozen=True, gc=False):
    major: U8
    minor: U8
    build: U16


class GetVersion(Request, frozen=True, gc=False):
    # void RemoteQmGetVersion([in] handle_t hBind, [out] unsigned char* pMajor,
    #   [out] unsigned char* pMinor, [out] unsigned short* pBuildNumber);
    OPNUM: ClassVar[int] = 8
    RESPONSE: ClassVar[type[Stub]] = Version


class ReadStarted2(Stub, frozen=True, gc=False):
    handle: Handle
    descriptor: Descriptor2
    status: U32


class StartReceive2(Request, frozen=True, gc=False):
    # HRESULT RemoteQMStartReceive2([in] handle_t hBind,
    #   [out] PCTX_REMOTEREAD_HANDLE_TYPE* pphContext,
    #   [in, out] REMOTEREADDESC2* lpRemoteReadDesc2);
    OPNUM: ClassVar[int] = 9
    RESPONSE: ClassVar[type[Stub]] = ReadStarted2
    descriptor: Descriptor2


class StartReceiveByLookupId(Request, frozen=True, gc=False):
    # HRESULT RemoteQMStartReceiveByLookupId([in] handle_t hBind, [in] ULONGLONG LookupId,
    #   [out] PCTX_REMOTEREAD_HANDLE_TYPE* pphContext,
    #   [in, out] REMOTEREADDESC2* lpRemoteReadDesc2);
    OPNUM: ClassVar[int] = 10
    RESPONSE: ClassVar[type[Stub]] = ReadStarted2
    lookup_id: U64
    descriptor: Descriptor2
