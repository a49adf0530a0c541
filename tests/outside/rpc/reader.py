# mypy: disable-error-code="no-untyped-call, no-any-unimported"
"""A reader of stock impacket: RemoteRead, qm2qm and qmcomm as another program would speak them."""

import re
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

from impacket.dcerpc.v5 import transport
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_WINNT, DCERPCException
from impacket.uuid import uuidtup_to_bin

from tests.outside.rpc import idl
from tests.outside.rpc.idl import handle, queue_format, raw_handle

RECEIVE, PEEK = 1, 0x20
DO_RECEIVE, PEEK_CURRENT, PEEK_NEXT = 0, 0x80000000, 0x80000001
LOOKUP_PEEK, LOOKUP_RECEIVE = 0x40000010, 0x40000020  # CURRENT; NEXT is 1 more, PREV 2
NACK, ACK = 1, 2
ALL = 0xFFFFFFFF
NULL_HANDLE = bytes(20)
_FAULT = re.compile(r"status code: ([0-9a-f]{1,8})")
_NAMED = {"rpc_x_bad_stub_data": 0x6F7, "nca_s_fault_context_mismatch": 0x1C00001A}


class FaultError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"{status:08x}")


@dataclass(frozen=True)
class Account:
    name: str = ""
    password: str = ""
    domain: str = ""
    level: int = 6


@dataclass(frozen=True)
class Started:
    """What R_StartReceive answered; `sections` are (type, alloc, bytes)."""

    status: int
    arrived: int = 0
    sequence_id: int = 0
    sections: tuple[tuple[int, int, bytes], ...] = ()

    @property
    def packet(self) -> bytes:
        ((kind, _, data),) = self.sections
        assert kind == 0
        return data

    @property
    def body(self) -> bytes:
        return body_of(self.packet)


def body_of(packet: bytes) -> bytes:
    """Of a packet with one direct name, and perhaps a TransactionHeader. MS-MQMQ 2.2.20"""
    flags = int.from_bytes(packet[60:64], "little")
    size = int.from_bytes(packet[64:66], "little")
    offset = 64 + (size + 2 + 3 & ~3) + (20 if flags & 0x00100000 else 0)
    label, length = packet[offset + 1], int.from_bytes(packet[offset + 32 : offset + 36], "little")
    extension = int.from_bytes(packet[offset + 52 : offset + 56], "little")
    start = offset + 56 + 2 * label + extension
    return packet[start : start + length]


class Connection:
    """One TCP connection, bound to one interface."""

    def __init__(
        self, address: tuple[str, int], interface: tuple[str, str], account: Account
    ) -> None:
        binding = f"ncacn_ip_tcp:{address[0]}[{address[1]}]"
        carrier = transport.DCERPCTransportFactory(binding)
        carrier.set_connect_timeout(30)
        self._carrier = carrier
        self.dce = carrier.get_dce_rpc()
        if account.level > 1:
            carrier.set_credentials(account.name, account.password, account.domain)
            self.dce.set_auth_type(RPC_C_AUTHN_WINNT)
            self.dce.set_auth_level(account.level)
        self.dce.connect()
        carrier.get_socket().settimeout(30)
        try:
            self.dce.bind(uuidtup_to_bin(interface))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Also twice, and after the other side has gone."""
        self._carrier.get_socket().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: Any) -> Any:
        """impacket takes the last four bytes for a status: it is told not to look."""
        try:
            return self.dce.request(request, checkError=False)
        except DCERPCException as error:
            raise FaultError(_status(error)) from error

    def send(self, request: Any) -> None:
        self.dce.call(request.opnum, request)

    def receive(self, response: Any) -> Any:
        """The next answer, whosever it is."""
        try:
            response.fromString(self.dce.recv())
        except DCERPCException as error:
            raise FaultError(_status(error)) from error
        return response


def _status(error: DCERPCException) -> int:
    text = str(error)
    if found := _FAULT.search(text):
        return int(found[1], 16)
    for name, status in _NAMED.items():
        if name in text:
            return status
    return 5 if "access_denied" in text else int(error.error_code or 0)


class Reader(Connection):
    """RemoteRead."""

    def __init__(self, address: tuple[str, int], account: Account) -> None:
        super().__init__(address, idl.REMOTE_READ, account)
        self.ids = count(1)

    def port(self) -> int:
        return int(self.ask(idl.R_GetServerPort())["port"])

    def open(self, name: str | idl.QUEUE_FORMAT, access: int = RECEIVE, share: int = 0) -> bytes:
        answer = self.ask(_open(idl.R_OpenQueue(), name, access, share))
        return raw_handle(answer["pphContext"])

    def open_for_move(self, name: str | idl.QUEUE_FORMAT) -> tuple[int, bytes]:
        answer = self.ask(_open(idl.R_OpenQueueForMove(), name, 4, 0))
        return int(answer["pMoveContext"]), raw_handle(answer["pphContext"])

    def close_queue(self, queue: bytes) -> tuple[bytes, int]:
        request = idl.R_CloseQueue()
        request["pphContext"] = handle(queue)
        answer = self.ask(request)
        return raw_handle(answer["pphContext"]), int(answer["ErrorCode"])

    def create_cursor(self, queue: bytes) -> tuple[int, int]:
        request = idl.R_CreateCursor()
        request["phContext"] = handle(queue)
        answer = self.ask(request)
        return int(answer["phCursor"]), int(answer["ErrorCode"])

    def close_cursor(self, queue: bytes, cursor: int) -> int:
        request = idl.R_CloseCursor()
        request["phContext"], request["hCursor"] = handle(queue), cursor
        return int(self.ask(request)["ErrorCode"])

    def purge(self, queue: bytes) -> int:
        request = idl.R_PurgeQueue()
        request["phContext"] = handle(queue)
        return int(self.ask(request)["ErrorCode"])

    def start(self, queue: bytes, action: int = DO_RECEIVE, **options: Any) -> Started:
        return started(self.ask(self.start_request(queue, action, **options)))

    def start_request(
        self,
        queue: bytes,
        action: int = DO_RECEIVE,
        *,
        request_id: int | None = None,
        timeout: int = 0,
        cursor: int = 0,
        lookup: int = 0,
        most: int = ALL,
        uow: bytes | None = None,
    ) -> Any:
        request = idl.R_StartReceive() if uow is None else idl.R_StartTransactionalReceive()
        request["phContext"], request["LookupId"] = handle(queue), lookup
        request["hCursor"], request["ulAction"], request["ulTimeout"] = cursor, action, timeout
        request["dwRequestId"] = next(self.ids) if request_id is None else request_id
        request["dwMaxBodySize"] = request["dwMaxCompoundMessageSize"] = most
        if uow is not None:
            request["pTransactionId"]["rgb"] = uow
        return request

    def cancel(self, queue: bytes, request_id: int) -> int:
        return int(self.ask(self.cancel_request(queue, request_id))["ErrorCode"])

    def cancel_request(self, queue: bytes, request_id: int) -> Any:
        request = idl.R_CancelReceive()
        request["phContext"], request["dwRequestId"] = handle(queue), request_id
        return request

    def end(self, queue: bytes, request_id: int, ack: int = ACK, *, op: int = 9) -> int:
        request = idl.R_EndReceive() if op == 9 else idl.R_EndTransactionalReceive()
        request["phContext"], request["dwAck"] = handle(queue), ack
        request["dwRequestId"] = request_id
        return int(self.ask(request)["ErrorCode"])

    def move(self, queue: bytes, target: int, lookup: int, uow: bytes = bytes(16)) -> int:
        request = idl.R_MoveMessage()
        request["phContextFrom"], request["ullContextTo"] = handle(queue), target
        request["LookupId"], request["pTransactionId"]["rgb"] = lookup, uow
        return int(self.ask(request)["ErrorCode"])

    def enlist(self, name: str, token: bytes) -> int:
        request = idl.R_QMEnlistRemoteTransaction()
        request["pTransactionId"]["rgb"], request["cbPropagationToken"] = b"t" * 16, len(token)
        request["pbPropagationToken"], request["pQueueFormat"] = token, _format(name)
        return int(self.ask(request)["ErrorCode"])

    def take(self, queue: bytes, **options: Any) -> bytes:
        """Receive a message for good; its body."""
        request_id = next(self.ids)
        given = self.start(queue, request_id=request_id, **options)
        assert given.status == 0, hex(given.status)
        assert self.end(queue, request_id) == 0
        return given.body


def _format(name: str | idl.QUEUE_FORMAT) -> Any:
    return queue_format(3, 0, m_pDirectID=name) if isinstance(name, str) else name


def _open(request: Any, name: str | idl.QUEUE_FORMAT, access: int, share: int) -> Any:
    request["pQueueFormat"] = _format(name)
    request["dwAccess"], request["dwShareMode"] = access, share
    request["pClientId"], request["fNonRoutingServer"] = b"c" * 16, 1
    request["Major"], request["Minor"], request["BuildNumber"] = 6, 1, 7601
    request["fWorkgroup"] = 0
    return request


def started(answer: Any) -> Started:
    status = int(answer["ErrorCode"])
    if not answer["pdwNumberOfSections"]:
        return Started(status)
    sections = tuple(
        (
            int(section["SectionBufferType"]),
            int(section["SectionSizeAlloc"]),
            bytes(section["pSectionBuffer"]),
        )
        for section in answer["ppPacketSections"]
    )
    return Started(status, int(answer["pdwArriveTime"]), int(answer["pSequenceId"]), sections)


class OldReader(Connection):
    """qm2qm."""

    def __init__(self, address: tuple[str, int], account: Account) -> None:
        super().__init__(address, idl.QM2QM, account)

    def port(self, kind: int) -> int:
        request = idl.RemoteQMGetQMQMServerPort()
        request["dwPortType"] = kind
        return int(self.ask(request)["port"])

    def version(self) -> tuple[int, int, int]:
        answer = self.ask(idl.RemoteQmGetVersion())
        return int(answer["pMajor"]), int(answer["pMinor"]), int(answer["pBuildNumber"])

    def open(self, number: int, context: int | None = None) -> tuple[bytes, int]:
        request = idl.RemoteQMOpenQueue()
        request["pLicGuid"], request["dwMQS"], request["hQueue"] = b"l" * 16, 0, number
        request["pQueue"], request["dwpContext"] = number, number if context is None else context
        answer = self.ask(request)
        return raw_handle(answer["phContext"]), int(answer["ErrorCode"])

    def close_queue(self, session: bytes) -> tuple[bytes, int]:
        request = idl.RemoteQMCloseQueue()
        request["pphContext"] = handle(session)
        answer = self.ask(request)
        return raw_handle(answer["pphContext"]), int(answer["ErrorCode"])

    def start_request(
        self, number: int, request_id: int, action: int = DO_RECEIVE, timeout: int = 0
    ) -> Any:
        request = idl.RemoteQMStartReceive2()
        request["lpRemoteReadDesc2"]["SequentialId"] = 0
        described = request["lpRemoteReadDesc2"]["pRemoteReadDesc"]
        described["hRemoteQueue"] = described["dwQueue"] = number
        described["hCursor"], described["ulAction"], described["ulTimeout"] = 0, action, timeout
        described["dwSize"] = described["Reserved"] = described["dwArriveTime"] = 0
        described["dwRequestID"], described["eAckNack"] = request_id, 0
        described["lpBuffer"] = idl.NULL
        return request

    def start(
        self, number: int, request_id: int, action: int = DO_RECEIVE, timeout: int = 0
    ) -> tuple[bytes, bytes, int]:
        return old_started(self.ask(self.start_request(number, request_id, action, timeout)))

    def end(self, read: bytes, ack: int = ACK) -> tuple[bytes, int]:
        request = idl.RemoteQMEndReceive()
        request["pphContext"], request["dwAck"] = handle(read), ack
        answer = self.ask(request)
        return raw_handle(answer["pphContext"]), int(answer["ErrorCode"])

    def cancel_request(self, number: int, request_id: int) -> Any:
        request = idl.RemoteQMCancelReceive()
        request["hQueue"], request["pQueue"], request["dwRequestID"] = number, number, request_id
        return request

    def purge(self, number: int) -> int:
        request = idl.RemoteQMPurgeQueue()
        request["hQueue"] = number
        return int(self.ask(request)["ErrorCode"])


def old_started(answer: Any) -> tuple[bytes, bytes, int]:
    """Read handle, packet, status."""
    described = answer["lpRemoteReadDesc2"]["pRemoteReadDesc"]
    packet = bytes(described["lpBuffer"]) if described["dwSize"] else b""
    return raw_handle(answer["pphContext"]), packet, int(answer["ErrorCode"])


class Door(Connection):
    """qmcomm."""

    def __init__(self, address: tuple[str, int], account: Account) -> None:
        super().__init__(address, idl.QMCOMM, account)

    def port(self, kind: int) -> int:
        request = idl.R_QMGetRTQMServerPort()
        request["fIP"] = kind
        return int(self.ask(request)["port"])

    def open(self, name: str, access: int = RECEIVE, share: int = 0) -> tuple[bytes, int, int]:
        """Handle, number, status."""
        request = idl.R_QMOpenRemoteQueue()
        request["pQueueFormat"] = _format(name)
        request["dwCallingProcessID"], request["dwDesiredAccess"] = 7, access
        request["dwShareMode"], request["pLicGuid"], request["dwMQS"] = share, b"l" * 16, 0
        answer = self.ask(request)
        numbers = {int(answer[name]) for name in ("pdwContext", "dwpQueue", "phQueue")}
        assert len(numbers) == 1  # MP-56
        return raw_handle(answer["pphContext"]), numbers.pop(), int(answer["ErrorCode"])

    def close_context(self, context: bytes) -> bytes:
        request = idl.R_QMCloseRemoteQueueContext()
        request["pphContext"] = handle(context)
        return raw_handle(self.ask(request)["pphContext"])
