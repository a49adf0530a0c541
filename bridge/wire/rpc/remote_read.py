"""The calls of RemoteRead. MS-MQRR 3.1.4

One struct per call, with its IDL, and one for what comes back. A `void` method fails by a fault
whose status is the HRESULT; all others return it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from bridge.model.guid import Guid
from bridge.wire.rpc.ndr import Reader, Writer
from bridge.wire.rpc.queue_format import Format
from bridge.wire.rpc.sections import Sections
from bridge.wire.rpc.stub import (
    U8,
    U16,
    U32,
    U64,
    Codec,
    Handle,
    Id,
    Request,
    Result,
    Stub,
    Uow,
    ranged,
)

REMOTE_READ: Final = Guid.parse("1a9134dd-7b39-45ba-ad88-44d01ca47f28")  # version 1.0
NACK: Final = 1  # EndReceive.ack
ACK: Final = 2
NO_TRANSACTION: Final = bytes(16)  # D-8
_MOST_COOKIE: Final = 131_072

Ack = Annotated[int, ranged("dwAck", NACK, ACK)]


class Port(Stub, frozen=True, gc=False):
    port: U32  # 0: it has none


class GetServerPort(Request, frozen=True, gc=False):
    # DWORD R_GetServerPort([in] handle_t hBind);
    OPNUM: ClassVar[int] = 0
    RESPONSE: ClassVar[type[Stub]] = Port


class Opened(Stub, frozen=True, gc=False):
    handle: Handle


class OpenQueue(Request, frozen=True, gc=False, kw_only=True):
    # void R_OpenQueue([in] handle_t hBind, [in] struct QUEUE_FORMAT* pQueueFormat,
    #   [in] DWORD dwAccess, [in] DWORD dwShareMode, [in] GUID* pClientId,
    #   [in] LONG fNonRoutingServer, [in] unsigned char Major, [in] unsigned char Minor,
    #   [in] USHORT BuildNumber, [in] LONG fWorkgroup,
    #   [out] QUEUE_CONTEXT_HANDLE_NOSERIALIZE* pphContext);
    OPNUM: ClassVar[int] = 2
    RESPONSE: ClassVar[type[Stub]] = Opened
    queue: Format
    access: U32
    share: U32
    client: Id
    non_routing: U32
    major: U8
    minor: U8
    build: U16
    workgroup: U32


class Closed(Stub, frozen=True, gc=False):
    handle: Handle
    status: U32


class CloseQueue(Request, frozen=True, gc=False):
    # HRESULT R_CloseQueue([in] handle_t hBind,
    #   [in, out] QUEUE_CONTEXT_HANDLE_SERIALIZE* pphContext);
    OPNUM: ClassVar[int] = 3
    RESPONSE: ClassVar[type[Stub]] = Closed
    handle: Handle


class CursorCreated(Stub, frozen=True, gc=False):
    cursor: U32
    status: U32


class CreateCursor(Request, frozen=True, gc=False):
    # HRESULT R_CreateCursor([in] handle_t hBind,
    #   [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext, [out] DWORD* phCursor);
    OPNUM: ClassVar[int] = 4
    RESPONSE: ClassVar[type[Stub]] = CursorCreated
    handle: Handle


class CloseCursor(Request, frozen=True, gc=False):
    # HRESULT R_CloseCursor([in] handle_t hBind,
    #   [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext, [in] DWORD hCursor);
    OPNUM: ClassVar[int] = 5
    RESPONSE: ClassVar[type[Stub]] = Result
    handle: Handle
    cursor: U32


class PurgeQueue(Request, frozen=True, gc=False):
    # HRESULT R_PurgeQueue([in] handle_t hBind, [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext);
    OPNUM: ClassVar[int] = 6
    RESPONSE: ClassVar[type[Stub]] = Result
    handle: Handle


class Started(Stub, frozen=True, gc=False):
    arrived: U32 = 0  # Unix seconds
    sequence_id: U64 = 0  # the low 56 bits of the lookup identifier. RR-31
    sections: Sections = ()
    status: U32 = 0


class StartReceive(Request, frozen=True, gc=False, kw_only=True):
    # HRESULT R_StartReceive([in] handle_t hBind, [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext,
    #   [in] ULONGLONG LookupId, [in] DWORD hCursor, [in] DWORD ulAction, [in] DWORD ulTimeout,
    #   [in] DWORD dwRequestId, [in] DWORD dwMaxBodySize, [in] DWORD dwMaxCompoundMessageSize,
    #   [out] DWORD* pdwArriveTime, [out] ULONGLONG* pSequenceId,
    #   [out] DWORD* pdwNumberOfSections,
    #   [out, size_is(,*pdwNumberOfSections)] SectionBuffer** ppPacketSections);
    OPNUM: ClassVar[int] = 7
    RESPONSE: ClassVar[type[Stub]] = Started
    handle: Handle
    lookup_id: U64
    cursor: U32
    action: U32
    timeout_ms: U32
    request_id: U32
    most_body: U32
    most_compound: U32


class CancelReceive(Request, frozen=True, gc=False):
    # HRESULT R_CancelReceive([in] handle_t hBind,
    #   [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext, [in] DWORD dwRequestId);
    OPNUM: ClassVar[int] = 8
    RESPONSE: ClassVar[type[Stub]] = Result
    handle: Handle
    request_id: U32


class EndReceive(Request, frozen=True, gc=False):
    # HRESULT R_EndReceive([in] handle_t hBind, [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext,
    #   [in, range(1, 2)] DWORD dwAck, [in] DWORD dwRequestId);
    OPNUM: ClassVar[int] = 9
    RESPONSE: ClassVar[type[Stub]] = Result
    handle: Handle
    ack: Ack
    request_id: U32


class MoveMessage(Request, frozen=True, gc=False):
    # HRESULT R_MoveMessage([in] handle_t hBind,
    #   [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContextFrom, [in] ULONGLONG ullContextTo,
    #   [in] ULONGLONG LookupId, [in] XACTUOW* pTransactionId);
    OPNUM: ClassVar[int] = 10
    RESPONSE: ClassVar[type[Stub]] = Result
    handle: Handle
    target: U64
    lookup_id: U64
    transaction: Uow = NO_TRANSACTION


class OpenedForMove(Stub, frozen=True, gc=False):
    move_context: U64
    handle: Handle


class OpenQueueForMove(OpenQueue, frozen=True, gc=False, kw_only=True):
    # void R_OpenQueueForMove(as R_OpenQueue, [out] ULONGLONG* pMoveContext,
    #   [out] QUEUE_CONTEXT_HANDLE_NOSERIALIZE* pphContext);
    OPNUM: ClassVar[int] = 11
    RESPONSE: ClassVar[type[Stub]] = OpenedForMove


def _read_cookie(reader: Reader) -> bytes:
    return reader.conformant(reader.ranged("cbPropagationToken", 0, _MOST_COOKIE))


def _write_cookie(writer: Writer, cookie: bytes) -> None:
    writer.u32(len(cookie))
    writer.conformant((cookie,))


class EnlistRemoteTransaction(Request, frozen=True, gc=False):
    # HRESULT R_QMEnlistRemoteTransaction([in] handle_t hBind, [in] XACTUOW* pTransactionId,
    #   [in, range(0, 131072)] DWORD cbPropagationToken,
    #   [in, size_is(cbPropagationToken)] unsigned char* pbPropagationToken,
    #   [in] struct QUEUE_FORMAT* pQueueFormat);
    OPNUM: ClassVar[int] = 12
    RESPONSE: ClassVar[type[Stub]] = Result
    transaction: Uow
    token: Annotated[bytes, Codec(_read_cookie, _write_cookie)]
    queue: Format


class StartTransactionalReceive(StartReceive, frozen=True, gc=False, kw_only=True):
    # HRESULT R_StartTransactionalReceive(as R_StartReceive, with [in] XACTUOW* pTransactionId
    #   after dwMaxCompoundMessageSize);
    OPNUM: ClassVar[int] = 13
    RESPONSE: ClassVar[type[Stub]] = Started
    transaction: Uow


class SetUserAcknowledgementClass(Request, frozen=True, gc=False):
    # HRESULT R_SetUserAcknowledgementClass([in] handle_t hBind,
    #   [in] QUEUE_CONTEXT_HANDLE_NOSERIALIZE phContext, [in] ULONGLONG LookupId,
    #   [in] USHORT usClass);
    OPNUM: ClassVar[int] = 14
    RESPONSE: ClassVar[type[Stub]] = Result
    handle: Handle
    lookup_id: U64
    message_class: U16


class EndTransactionalReceive(EndReceive, frozen=True, gc=False):
    # HRESULT R_EndTransactionalReceive(as R_EndReceive);
    OPNUM: ClassVar[int] = 15
    RESPONSE: ClassVar[type[Stub]] = Result
