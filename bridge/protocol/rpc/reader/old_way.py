"""The calls of MS-MQRR over MS-MQQP, for hosts that do not know the newer protocol.

A job asks as if the host spoke MS-MQRR. `OldWay` says what to call on qmcomm and on qm2qm instead,
and makes the answer that the job waits for. One object for each pair of connections: handles and
reads end with them.

    R_OpenQueue     R_QMOpenRemoteQueue, RemoteQMOpenQueue, R_QMCloseRemoteQueueContext
    R_CreateCursor  R_QMCreateRemoteCursor
    R_StartReceive  RemoteQMStartReceive2, ...ByLookupId; RemoteQMStartReceive before XP
    R_EndReceive    RemoteQMEndReceive, by the handle of the read
    R_PurgeQueue    RemoteQMPurgeQueue
    R_CloseCursor   RemoteQMCloseCursor
    R_CloseQueue    RemoteQMCloseQueue

MS-MQQP has no moves. Hosts before XP (NT 4, 2000) tell no lookup ids and find nothing by one: what
they send is numbered as it comes, so on them `is_numbered` is False and calls go one at a time.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from enum import Enum, auto
from itertools import count
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from bridge.model.errors import BridgeError, ProtocolError, WireError
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.results import INVALID_HANDLE, NO_SUCH_CALL, Refused, status_of
from bridge.protocol.rpc.reader.steps import Answer
from bridge.wire.binary.reply import as_reply
from bridge.wire.rpc import qm2qm, qmcomm
from bridge.wire.rpc import remote_read as new
from bridge.wire.rpc.ndr import NULL_HANDLE
from bridge.wire.rpc.sections import Section, SectionType
from bridge.wire.rpc.stub import Request, Result, Stub

IP_READ: Final = 1  # fIP: the port of qm2qm. MS-MQMP 3.1.4.24
_NUMBERED: Final = (5, 1)  # from this version on. MS-MQQP 3.2.4.2
_LOOKUP: Final = 0x40000000  # ulAction: by lookup id
_PEEKS: Final = 0x80000000, 0x80000001, 0x40000010, 0x40000011, 0x40000012

S = TypeVar("S", bound=Stub)


class NotOffered(BridgeError):
    """MS-MQQP cannot do it."""


class Side(Enum):
    QMCOMM = auto()
    QM2QM = auto()


class OldCall(NamedTuple):
    side: Side
    request: Request


Talk: TypeAlias = Generator[OldCall, Answer, Answer]


class _Queue(msgspec.Struct, frozen=True, gc=False):
    """What R_QMOpenRemoteQueue gave out. NT 4 and 2000 tell two different numbers."""

    remote: int  # phQueue
    local: int  # dwpQueue


def is_numbered(answer: Answer) -> bool:
    """By the answer to RemoteQmGetVersion, which NT 4 and 2000 do not have. MS-MQQP 3.1.4.9"""
    if isinstance(answer, Fault) and answer.status != NO_SUCH_CALL:
        raise Refused(answer.status)
    return isinstance(answer, qm2qm.Version) and (answer.major, answer.minor) >= _NUMBERED


class OldWay:
    def __init__(self, *, is_numbered: bool) -> None:
        self.is_numbered = is_numbered
        self._queues: dict[bytes, _Queue] = {}  # by the handle of the session
        self._reads: dict[tuple[bytes, int], bytes] = {}  # by session and request id
        self._numbers = count(1)

    def talk(self, request: Request) -> Talk:
        """Calls to make, one after the other; each is sent its answer. NotOffered at once."""
        match request:
            case new.OpenQueueForMove() | new.MoveMessage():
                raise NotOffered("the host speaks MS-MQQP only, which cannot move messages")
            case new.OpenQueue():
                return self._open(request)
            case new.StartTransactionalReceive():
                raise NotOffered("the host speaks MS-MQQP only, which has no transactions")
            case new.StartReceive():
                return self._start(request)
            case new.EndReceive():
                return self._end(request)
            case new.CreateCursor():
                return self._create_cursor(request)
            case new.CloseCursor():
                return self._close_cursor(request)
            case new.PurgeQueue():
                return self._purge(request)
            case new.CloseQueue():
                return self._close(request)
        name = type(request).__name__
        raise NotOffered(f"the host speaks MS-MQQP only, which does not have {name}")

    # -- queues -----------------------------------------------------------------------------

    def _open(self, request: new.OpenQueue) -> Talk:
        """MS-MQMP 4.2, MS-MQQP 3.2.4.1: we are the application and the supporting server."""
        opening = qmcomm.OpenRemoteQueue(
            name=request.queue,
            process=0,
            access=request.access,
            share=request.share,
            license=request.client,
            mqs=0,  # not declared
        )
        answer = yield OldCall(Side.QMCOMM, opening)
        if status := status_of(answer):
            return Fault(status)
        opened = _as(answer, qmcomm.RemoteOpened)
        answer = yield OldCall(
            Side.QM2QM,
            qm2qm.OpenQueue(request.client, 0, opened.remote_queue, opened.queue, opened.context),
        )
        # From here on the queue is the session's; without one this closes it. MS-MQMP 3.1.4.3
        yield OldCall(Side.QMCOMM, qmcomm.CloseRemoteQueueContext(opened.handle))
        if status := status_of(answer):
            return Fault(status)
        session = _as(answer, qm2qm.HandleGone).handle
        self._queues[session] = _Queue(opened.remote_queue, opened.queue)
        return new.Opened(session)

    def _close(self, request: new.CloseQueue) -> Talk:
        self._queues.pop(request.handle, None)
        for key in [key for key in self._reads if key[0] == request.handle]:
            del self._reads[key]
        answer = yield OldCall(Side.QM2QM, qm2qm.CloseQueue(request.handle))
        return new.Closed(NULL_HANDLE, status_of(answer))

    def _create_cursor(self, request: new.CreateCursor) -> Talk:
        queue = self._queue(request.handle)
        making = qmcomm.CreateRemoteCursor(remote_queue=queue.remote)
        answer = yield OldCall(Side.QMCOMM, making)
        if status := status_of(answer):
            return new.CursorCreated(0, status)
        return new.CursorCreated(_as(answer, qmcomm.RemoteCursorCreated).cursor, 0)

    def _close_cursor(self, request: new.CloseCursor) -> Talk:
        queue = self._queue(request.handle)
        answer = yield OldCall(Side.QM2QM, qm2qm.CloseCursor(queue.remote, request.cursor))
        return Result(status_of(answer))

    def _purge(self, request: new.PurgeQueue) -> Talk:
        """Some hosts return their failure, some throw it. MS-MQQP 3.1.4.7, <18>"""
        queue = self._queue(request.handle)
        answer = yield OldCall(Side.QM2QM, qm2qm.PurgeQueue(queue.remote))
        return Result(status_of(answer))

    def _queue(self, handle: bytes) -> _Queue:
        try:
            return self._queues[handle]
        except KeyError:
            raise Refused(INVALID_HANDLE) from None

    # -- messages ---------------------------------------------------------------------------

    def _start(self, request: new.StartReceive) -> Talk:
        queue, is_lookup = self._queue(request.handle), bool(request.action & _LOOKUP)
        if is_lookup and not self.is_numbered:
            return Fault(NO_SUCH_CALL, did_not_execute=True)
        described = qm2qm.ReadDescriptor(
            remote_queue=queue.remote,
            cursor=request.cursor,
            action=request.action,
            timeout_ms=request.timeout_ms,
            queue=queue.local,
            request_id=request.request_id,
        )
        call: Request
        if is_lookup:
            call = qm2qm.StartReceiveByLookupId(request.lookup_id, qm2qm.ReadDescriptor2(described))
        elif self.is_numbered:
            call = qm2qm.StartReceive2(qm2qm.ReadDescriptor2(described))
        else:
            call = qm2qm.StartReceive(described)
        answer = yield OldCall(Side.QM2QM, call)
        if status := status_of(answer):
            return new.Started(status=status)
        handle, read, number = self._answered(answer)
        if request.action not in _PEEKS:
            self._reads[request.handle, request.request_id] = handle
        return _started(read, number)

    def _answered(self, answer: Answer) -> tuple[bytes, qm2qm.ReadDescriptor, int]:
        if not self.is_numbered:
            plain = _as(answer, qm2qm.ReadStarted)
            return plain.handle, plain.descriptor, next(self._numbers)
        started = _as(answer, qm2qm.ReadStarted2)
        descriptor = started.descriptor.descriptor
        if descriptor is None:
            raise ProtocolError("bad-reply", "a message without a REMOTEREADDESC")
        return started.handle, descriptor, started.descriptor.sequence_id

    def _end(self, request: new.EndReceive) -> Talk:
        read = self._reads.pop((request.handle, request.request_id), None)
        if read is None:
            return Result(INVALID_HANDLE)
        answer = yield OldCall(Side.QM2QM, qm2qm.EndReceive(read, request.ack))
        return Result(status_of(answer))


def _started(read: qm2qm.ReadDescriptor, number: int) -> new.Started:
    packet = b"".join(read.packet or ())
    with suppress(WireError):  # `read_of` will find it, too
        packet = as_reply(packet)
    section = Section(SectionType.FULL, len(packet), (packet,))
    return new.Started(arrived=read.arrived, sequence_id=number, sections=(section,))


def _as(answer: Answer, kind: type[S]) -> S:
    if not isinstance(answer, kind):
        raise ProtocolError("bad-reply", f"{type(answer).__name__} for {kind.__name__}")
    return answer
