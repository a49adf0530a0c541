"""The RemoteRead interface on the retained queues. MS-MQRR 3.1.4

Start locks a message and hands it out, End removes it (ACK) or gives it back (NACK); until then
nobody else sees it (RR-20). A handle that is closed, or whose last connection is gone, gives back
what it has (RR-27, RR-28).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from bridge.adapters.remote_read.opening import Opening
from bridge.adapters.remote_read.reads import Given, Reads
from bridge.adapters.remote_read.served import Entry, ServedInterface
from bridge.core.remote_read.actions import Wanted, wanted
from bridge.core.remote_read.codes import (
    DTC_CONNECT,
    INSUFFICIENT_RESOURCES,
    NT_ACCESS_DENIED,
    OK,
    Failed,
)
from bridge.core.remote_read.contexts import Contexts, Random
from bridge.core.remote_read.replies import packet_of
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.place import low_bits
from bridge.core.retained.queues import Access, Share
from bridge.protocol.rpc.calls import AuthLevel, Call
from bridge.wire.rpc import remote_read as wire
from bridge.wire.rpc.ndr import NULL_HANDLE
from bridge.wire.rpc.sections import split
from bridge.wire.rpc.stub import Result

MOST_CURSORS: Final = 1024  # of one handle
_READS: Final = (Access.RECEIVE, Access.PEEK)


class Open(msgspec.Struct, eq=False):
    """A queue that a reader has open."""

    handle: int  # of the retained queues
    level: AuthLevel
    move_context: int = 0
    cursors: int = 0


class RemoteRead(ServedInterface):
    def __init__(
        self, opening: Opening, reads: Reads, port: Callable[[], int], random: Random
    ) -> None:
        self._opening, self._reads, self._port, self._random = opening, reads, port, random
        self._contexts = Contexts[Open](random)
        self._targets: dict[int, Open] = {}  # of moves, by pMoveContext, whoever opened them
        super().__init__(
            wire.REMOTE_READ,
            opening.access,
            (
                Entry(wire.GetServerPort, self._get_server_port, is_open=True),
                Entry(wire.OpenQueue, self._open),
                Entry(wire.CloseQueue, self._close),
                Entry(wire.CreateCursor, self._create_cursor),
                Entry(wire.CloseCursor, self._close_cursor),
                Entry(wire.PurgeQueue, self._purge),
                Entry(wire.StartReceive, self._start),
                Entry(wire.CancelReceive, self._cancel),
                Entry(wire.EndReceive, self._end),
                Entry(wire.MoveMessage, self._move),
                Entry(wire.OpenQueueForMove, self._open_for_move),
                Entry(wire.EnlistRemoteTransaction, self._enlist),
                Entry(wire.StartTransactionalReceive, self._start_transactional),
                Entry(wire.SetUserAcknowledgementClass, self._set_class),
                Entry(wire.EndTransactionalReceive, self._end),
            ),
        )

    def rundown(self, group: int) -> None:
        """RR-28"""
        for opened in self._contexts.run_down(group):
            self._shut(opened)

    # -- open and close ---------------------------------------------------------------------

    def _get_server_port(self, _call: Call, _request: wire.GetServerPort) -> wire.Port:
        """RR-14"""
        return wire.Port(self._port())

    def _open(self, call: Call, request: wire.OpenQueue) -> wire.Opened:
        """RR-15: it fails by a fault."""
        if request.access not in _READS:
            raise Refused(Status.INVALID_PARAMETER, f"access {request.access:#x}")
        return wire.Opened(self._opened(call, request, Open(handle=0, level=call.level)))

    def _open_for_move(self, call: Call, request: wire.OpenQueueForMove) -> wire.OpenedForMove:
        if (request.access, request.share) != (Access.MOVE, Share.DENY_NONE):
            raise Refused(Status.INVALID_PARAMETER, f"access {request.access:#x}")
        opened = Open(handle=0, level=call.level, move_context=self._move_context())
        handle = self._opened(call, request, opened)
        self._targets[opened.move_context] = opened
        return wire.OpenedForMove(opened.move_context, handle)

    def _move_context(self) -> int:
        """ "A random value": it is all that a move needs to name its target. MS-MQRR 3.1.4.11"""
        while True:
            number = int.from_bytes(self._random(8), "little")
            if number and number not in self._targets:
                return number

    def _opened(self, call: Call, request: wire.OpenQueue, opened: Open) -> bytes:
        opened.handle = self._opening.open(call, request.queue, request.access, request.share)
        try:
            return self._contexts.add(call.group, opened)
        except Failed:
            self._reads.close(opened.handle)
            raise

    def _close(self, call: Call, request: wire.CloseQueue) -> wire.Closed:
        """RR-27; also of a queue that was deleted (RR-37)."""
        self._find(call, request.handle)
        self._shut(self._contexts.pop(call.group, request.handle))
        return wire.Closed(NULL_HANDLE, OK)

    def _shut(self, opened: Open) -> None:
        self._targets.pop(opened.move_context, None)
        self._reads.close(opened.handle)

    def _find(self, call: Call, handle: bytes) -> Open:
        """RR-16: the level counts in each call."""
        opened = self._contexts.get(call.group, handle)
        self._access.demand_level(call, opened.level)
        return opened

    # -- cursors ----------------------------------------------------------------------------

    def _create_cursor(self, call: Call, request: wire.CreateCursor) -> wire.CursorCreated:
        opened = self._find(call, request.handle)
        try:
            if opened.cursors >= MOST_CURSORS:
                raise Failed(INSUFFICIENT_RESOURCES)
            number = self._reads.open_cursor(opened.handle)
        except (Refused, Failed) as failure:
            return wire.CursorCreated(0, failure.status)
        opened.cursors += 1
        return wire.CursorCreated(number, OK)

    def _close_cursor(self, call: Call, request: wire.CloseCursor) -> Result:
        opened = self._find(call, request.handle)
        try:
            self._reads.close_cursor(opened.handle, request.cursor)
        except Refused as refused:
            return Result(refused.status)
        opened.cursors -= 1
        return Result(OK)

    # -- messages ---------------------------------------------------------------------------

    async def _start(self, call: Call, request: wire.StartReceive) -> wire.Started:
        opened = self._find(call, request.handle)
        try:
            want = _wanted(request)
            given = await self._reads.start(opened.handle, request.request_id, want)
        except (Refused, Failed) as failure:
            return wire.Started(status=failure.status)  # RR-21
        return _started(given, request)

    async def _start_transactional(
        self, call: Call, request: wire.StartTransactionalReceive
    ) -> wire.Started:
        """D-8: a unit of work of zeros is none, and this the same as `_start`."""
        opened, uow = self._find(call, request.handle), request.transaction
        try:
            want = _wanted(request)
            if uow == wire.NO_TRANSACTION:
                given = await self._reads.start(opened.handle, request.request_id, want)
            elif not want.is_receive:
                raise Refused(Status.TRANSACTION_USAGE, "a peek is no part of a transaction")
            else:
                given = await self._reads.start(opened.handle, request.request_id, want, uow)
        except (Refused, Failed) as failure:
            return wire.Started(status=failure.status)
        return _started(given, request)

    def _cancel(self, call: Call, request: wire.CancelReceive) -> Result:
        """RR-22"""
        opened = self._find(call, request.handle)
        try:
            self._reads.cancel(opened.handle, request.request_id)
        except Refused as refused:
            return Result(refused.status)
        return Result(OK)

    async def _end(self, call: Call, request: wire.EndReceive) -> Result:
        """RR-23; what is removed is in Kafka before the answer."""
        opened, delete = self._find(call, request.handle), request.ack == wire.ACK
        return await _result(self._reads.end(opened.handle, request.request_id, delete=delete))

    async def _purge(self, call: Call, request: wire.PurgeQueue) -> Result:
        opened = self._find(call, request.handle)
        result = await _result(self._reads.purge(opened.handle))
        is_denied = result.status == Status.ACCESS_DENIED
        return Result(NT_ACCESS_DENIED) if is_denied else result  # MS-MQRR 3.1.4.6

    async def _move(self, call: Call, request: wire.MoveMessage) -> Result:
        """MS-MQRR 3.1.4.10: ullContextTo is sought among all open queues of the queue manager."""
        source, target = self._find(call, request.handle), self._targets.get(request.target)
        if target is None:
            return Result(Status.INVALID_HANDLE)
        uow = None if request.transaction == wire.NO_TRANSACTION else request.transaction
        return await _result(self._reads.move(source.handle, target.handle, request.lookup_id, uow))

    def _enlist(self, _call: Call, _request: wire.EnlistRemoteTransaction) -> Result:
        """RR-36: there is no transaction manager here, so nobody is enlisted."""
        return Result(DTC_CONNECT)

    def _set_class(self, call: Call, request: wire.SetUserAcknowledgementClass) -> Result:
        opened = self._find(call, request.handle)
        try:
            self._reads.reject(opened.handle, request.lookup_id, request.message_class)
        except Refused as refused:
            return Result(refused.status)
        return Result(OK)


async def _result(work: Awaitable[None]) -> Result:
    try:
        await work
    except (Refused, Failed) as failure:
        return Result(int(failure.status))
    return Result(OK)


def _wanted(request: wire.StartReceive) -> Wanted:
    return wanted(
        request.action,
        lookup_id=request.lookup_id,
        cursor=request.cursor,
        timeout_ms=request.timeout_ms,
    )


def _started(given: Given, request: wire.StartReceive) -> wire.Started:
    """RR-31, RR-32"""
    packet = packet_of(given.message, given.row)
    most = request.most_compound if packet.is_srmp else request.most_body
    return wire.Started(
        arrived=given.row.arrived_ms // 1000 & 0xFFFFFFFF,
        sequence_id=low_bits(given.row.lookup_id),
        sections=split(packet, most),
    )
