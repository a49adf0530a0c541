"""RemoteRead's stubs: by hand where the digest has offsets, and as stock impacket writes them."""

import struct
from typing import Any

import pytest

from bridge.model.guid import Guid
from bridge.wire.rpc import remote_read as wire
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.sections import Section
from bridge.wire.rpc.stub import Request, Result, Stub
from tests.outside.rpc import idl

G = Guid(bytes(range(16)))
H = bytes(4) + bytes(range(16, 32))
UOW = b"u" * 16
NAME = QueueFormat(kind=3, text="OS:host\\private$\\odd")
OPEN = {
    "access": 1,
    "share": 0,
    "client": G,
    "non_routing": 1,
    "major": 6,
    "minor": 1,
    "build": 7601,
    "workgroup": 0,
}
START = {
    "handle": H,
    "lookup_id": 0x0400000000000007,
    "cursor": 2,
    "action": 0x80000001,
    "timeout_ms": 60_000,
    "request_id": 5,
    "most_body": 0xFFFFFFFF,
    "most_compound": 6,
}


def theirs(call: Any, **fields: Any) -> bytes:
    """As impacket packs it."""
    for name, value in fields.items():
        if name == "pTransactionId":
            call[name]["rgb"] = value
        elif name in ("phContext", "pphContext", "phContextFrom"):
            call[name] = idl.handle(value)
        else:
            call[name] = value
    return bytes(call.getData())


def opening(call: Any) -> bytes:
    return theirs(
        call,
        pQueueFormat=idl.queue_format(3, 0, m_pDirectID=NAME.text),
        dwAccess=1,
        dwShareMode=0,
        pClientId=G,
        fNonRoutingServer=1,
        Major=6,
        Minor=1,
        BuildNumber=7601,
        fWorkgroup=0,
    )


def starting(call: Any, **more: Any) -> bytes:
    return theirs(
        call,
        phContext=H,
        LookupId=0x0400000000000007,
        hCursor=2,
        ulAction=0x80000001,
        ulTimeout=60_000,
        dwRequestId=5,
        dwMaxBodySize=0xFFFFFFFF,
        dwMaxCompoundMessageSize=6,
        **more,
    )


REQUESTS: list[tuple[Request, bytes]] = [
    (wire.GetServerPort(), b""),
    (wire.OpenQueue(queue=NAME, **OPEN), opening(idl.R_OpenQueue())),  # type: ignore[arg-type]
    (wire.CloseQueue(H), theirs(idl.R_CloseQueue(), pphContext=H)),
    (wire.CreateCursor(H), theirs(idl.R_CreateCursor(), phContext=H)),
    (wire.CloseCursor(H, 9), theirs(idl.R_CloseCursor(), phContext=H, hCursor=9)),
    (wire.PurgeQueue(H), theirs(idl.R_PurgeQueue(), phContext=H)),
    (wire.StartReceive(**START), starting(idl.R_StartReceive())),  # type: ignore[arg-type]
    (wire.CancelReceive(H, 5), theirs(idl.R_CancelReceive(), phContext=H, dwRequestId=5)),
    (
        wire.EndReceive(H, 2, 5),
        theirs(idl.R_EndReceive(), phContext=H, dwAck=2, dwRequestId=5),
    ),
    (
        wire.MoveMessage(H, 8, 7, UOW),
        theirs(
            idl.R_MoveMessage(), phContextFrom=H, ullContextTo=8, LookupId=7, pTransactionId=UOW
        ),
    ),
    (
        wire.OpenQueueForMove(queue=NAME, **OPEN),  # type: ignore[arg-type]
        opening(idl.R_OpenQueueForMove()),
    ),
    (
        wire.EnlistRemoteTransaction(UOW, b"token", NAME),
        theirs(
            idl.R_QMEnlistRemoteTransaction(),
            pTransactionId=UOW,
            cbPropagationToken=5,
            pbPropagationToken=b"token",
            pQueueFormat=idl.queue_format(3, 0, m_pDirectID=NAME.text),
        ),
    ),
    (
        wire.StartTransactionalReceive(**START, transaction=UOW),  # type: ignore[arg-type]
        starting(idl.R_StartTransactionalReceive(), pTransactionId=UOW),
    ),
    (
        wire.SetUserAcknowledgementClass(H, 7, 0xC004),
        theirs(idl.R_SetUserAcknowledgementClass(), phContext=H, LookupId=7, usClass=0xC004),
    ),
    (
        wire.EndTransactionalReceive(H, 1, 5),
        theirs(idl.R_EndTransactionalReceive(), phContext=H, dwAck=1, dwRequestId=5),
    ),
]


@pytest.mark.parametrize(("request_", "raw"), REQUESTS, ids=lambda v: type(v).__name__)
def test_requests_of_impacket(request_: Request, raw: bytes) -> None:
    assert type(request_).unpack(raw) == request_
    assert len(request_.pack()) == len(raw)  # padding and referents differ
    assert type(request_).unpack(request_.pack()) == request_


@pytest.mark.parametrize(("request_", "raw"), REQUESTS, ids=lambda v: type(v).__name__)
def test_requests_cut_short(request_: Request, raw: bytes) -> None:
    for size in range(len(raw)):
        with pytest.raises(BadStub):
            type(request_).unpack(raw[:size])


def test_every_opnum_is_there() -> None:
    assert [request.OPNUM for request, _ in REQUESTS] == [0, *range(2, 16)]


def test_sizes_of_the_digest() -> None:
    """2.1: Start 56, End 28, Move 56, transactional Start 72, class 34 bytes; error form 28."""
    sizes = {request.OPNUM: len(request.pack()) for request, _ in REQUESTS}
    assert [sizes[op] for op in (7, 9, 10, 13, 14)] == [56, 28, 56, 72, 34]
    assert len(wire.Started(status=0xC00E001B).pack()) == 28


def test_start_receive_by_hand() -> None:
    raw = H + bytes(4) + struct.pack("<Q", 0x0400000000000007)
    raw += struct.pack("<IIIIII", 2, 0x80000001, 60_000, 5, 0xFFFFFFFF, 6)
    assert wire.StartReceive(**START).pack() == raw  # type: ignore[arg-type]


@pytest.mark.parametrize("ack", [0, 3, 0xFFFFFFFF])
def test_an_ack_is_one_or_two(ack: int) -> None:
    """MS-MQRR 3.1.4.9: range(1, 2)"""
    for request in (wire.EndReceive, wire.EndTransactionalReceive):
        with pytest.raises(BadStub, match="dwAck"):
            request.unpack(H + struct.pack("<II", ack, 5))


def test_a_token_has_a_limit() -> None:
    """MS-MQRR 3.1.4.12: range(0, 131072)"""
    raw = UOW + struct.pack("<II", 131_073, 131_073) + bytes(131_073 + 64)
    with pytest.raises(BadStub, match="cbPropagationToken"):
        wire.EnlistRemoteTransaction.unpack(raw)


SECTIONS = (Section(1, 9, (b"first",)), Section(2, 3, (b"2nd",)))
RESPONSES: list[tuple[Stub, Any, dict[str, Any]]] = [
    (wire.Port(2103), idl.R_GetServerPortResponse, {"port": 2103}),
    (wire.Opened(H), idl.R_OpenQueueResponse, {"pphContext": H}),
    (
        wire.Closed(bytes(20), 3),
        idl.R_CloseQueueResponse,
        {"pphContext": bytes(20), "ErrorCode": 3},
    ),
    (wire.CursorCreated(7, 3), idl.R_CreateCursorResponse, {"phCursor": 7, "ErrorCode": 3}),
    (Result(3), idl.R_EndReceiveResponse, {"ErrorCode": 3}),
    (
        wire.OpenedForMove(8, H),
        idl.R_OpenQueueForMoveResponse,
        {"pMoveContext": 8, "pphContext": H},
    ),
    (
        wire.Started(4, 5, SECTIONS, 3),
        idl.R_StartReceiveResponse,
        {"pdwArriveTime": 4, "pSequenceId": 5, "pdwNumberOfSections": 2, "ErrorCode": 3},
    ),
    (
        wire.Started(status=0xC00E001B),
        idl.R_StartReceiveResponse,
        {"pdwArriveTime": 0, "pdwNumberOfSections": 0, "ErrorCode": 0xC00E001B},
    ),
]


@pytest.mark.parametrize(("mine", "call", "fields"), RESPONSES, ids=lambda v: str(v)[:20])
def test_responses_read_by_impacket(mine: Stub, call: Any, fields: dict[str, Any]) -> None:
    answer = call(mine.pack())
    for name, value in fields.items():
        found = idl.raw_handle(answer[name]) if isinstance(value, bytes) else int(answer[name])
        assert found == value
    assert type(mine).unpack(mine.pack()) == mine


def test_sections_read_by_impacket() -> None:
    answer = idl.R_StartReceiveResponse(wire.Started(4, 5, SECTIONS, 0).pack())
    found = [
        (int(s["SectionBufferType"]), int(s["SectionSizeAlloc"]), bytes(s["pSectionBuffer"]))
        for s in answer["ppPacketSections"]
    ]
    assert found == [(1, 9, b"first"), (2, 3, b"2nd")]
