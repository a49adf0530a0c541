"""The four calls of qmcomm that belong to remote read by old queue managers. MS-MQMP 3.1.4

R_QMOpenRemoteQueue gives out the number that `qm2qm` names a queue by.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import BadStub, Reader, Writer
from bridge.wire.rpc.queue_format import OptionalFormat
from bridge.wire.rpc.remote_read import Port
from bridge.wire.rpc.stub import U32, Codec, Handle, Id, Request, Stub

QMCOMM: Final = Guid.parse("fdb3a030-065f-11d1-bb9b-00a024ea5525")  # version 1.0

# CACTransferBufferV1 after its arm: where the DWORDs are that point nowhere.
_FLAT: Final = 212
_PLAIN: Final = frozenset((44, 48, 60, 68, 76, 104, 124, 136, 148, 156, 164, 172, 192))
_ARMS: Final = {0: 8, 1: 64, 2: 12}  # Send, Receive, CreateCursor: their sizes
_ARMS_PLAIN: Final[dict[int, frozenset[int]]] = {
    0: frozenset(),
    1: frozenset((0, 4, 8, 12, 16, 28, 40, 52)),
    2: frozenset((0, 4, 8)),
}
_SECTION: Final = "MS-MQMP 2.2.3.2"


class RemoteOpened(Stub, frozen=True, gc=False):
    handle: Handle
    context: U32
    queue: U32
    remote_queue: U32
    status: U32


class OpenRemoteQueue(Request, frozen=True, gc=False, kw_only=True):
    # HRESULT R_QMOpenRemoteQueue([in] handle_t hBind,
    #   [out] PCTX_OPENREMOTE_HANDLE_TYPE* pphContext, [out] DWORD* pdwContext,
    #   [in, unique] struct QUEUE_FORMAT* pQueueFormat, [in] DWORD dwCallingProcessID,
    #   [in] DWORD dwDesiredAccess, [in] DWORD dwShareMode, [in] GUID* pLicGuid,
    #   [in] DWORD dwMQS, [out] DWORD* dwpQueue, [out] DWORD* phQueue);
    OPNUM: ClassVar[int] = 2
    RESPONSE: ClassVar[type[Stub]] = RemoteOpened
    name: OptionalFormat
    process: U32
    access: U32
    share: U32
    license: Id
    mqs: U32


class RemoteClosed(Stub, frozen=True, gc=False):
    handle: Handle


class CloseRemoteQueueContext(Request, frozen=True, gc=False):
    # void R_QMCloseRemoteQueueContext([in, out] PCTX_OPENREMOTE_HANDLE_TYPE* pphContext);
    OPNUM: ClassVar[int] = 3
    RESPONSE: ClassVar[type[Stub]] = RemoteClosed
    handle: Handle


def _skip_buffer(reader: Reader) -> None:
    """Nobody looks into it, but what comes next is behind it. Its pointers must be NULL: all
    that clients send is zeros (MP-58), and what they point to would have to be parsed, too."""
    kind, tag = reader.ranged("uTransferType", 0, 2), reader.u32()
    if tag != kind:
        raise BadStub("CACTransferBufferV1.tag", tag, f"{_SECTION}: switch_is(uTransferType)")
    _skip_flat(reader, _ARMS[kind], _ARMS_PLAIN[kind])
    _skip_flat(reader, _FLAT, _PLAIN)


def _skip_flat(reader: Reader, size: int, plain: frozenset[int]) -> None:
    for offset in range(0, size, 4):
        if reader.u32() and offset not in plain:
            raise BadStub("CACTransferBufferV1", offset, f"{_SECTION}: a pointer")


def _write_buffer(writer: Writer, _nothing: None) -> None:
    writer.put(bytes(8 + _ARMS[0] + _FLAT))


class RemoteCursorCreated(Stub, frozen=True, gc=False):
    cursor: U32
    status: U32


class CreateRemoteCursor(Request, frozen=True, gc=False, kw_only=True):
    # HRESULT R_QMCreateRemoteCursor([in] handle_t hBind, [in] struct CACTransferBufferV1* ptb1,
    #   [in] DWORD hQueue, [out] DWORD* phCursor);
    OPNUM: ClassVar[int] = 4
    RESPONSE: ClassVar[type[Stub]] = RemoteCursorCreated
    buffer: Annotated[None, Codec(_skip_buffer, _write_buffer)] = None
    remote_queue: U32


class GetServerPort(Request, frozen=True, gc=False):
    # DWORD R_QMGetRTQMServerPort([in] handle_t hBind, [in] DWORD fIP);
    OPNUM: ClassVar[int] = 31
    RESPONSE: ClassVar[type[Stub]] = Port
    kind: U32
