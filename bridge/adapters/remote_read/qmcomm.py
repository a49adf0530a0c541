"""The four calls of qmcomm that open a queue for qm2qm. MS-MQMP 3.1.4.2 to 3.1.4.4, 3.1.4.24"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridge.adapters.remote_read.doors import Door, Doors
from bridge.adapters.remote_read.reads import Reads
from bridge.adapters.remote_read.remote_read import MOST_CURSORS
from bridge.adapters.remote_read.served import Entry, ServedInterface
from bridge.core.remote_read.access import ReadAccess
from bridge.core.remote_read.codes import (
    INSUFFICIENT_RESOURCES,
    NT_SHARING_VIOLATION,
    OBSOLETE,
    OK,
    QUEUE_DELETED,
    Failed,
    translated,
)
from bridge.core.remote_read.contexts import Contexts, Random
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.queues import Access
from bridge.protocol.rpc.calls import Call, Fault
from bridge.wire.rpc import qmcomm as wire
from bridge.wire.rpc.ndr import NULL_HANDLE
from bridge.wire.rpc.remote_read import Port

_GET_REMOTE_QUEUE_NAME: Final = 1  # R_QMGetRemoteQueueName: nobody calls it any more
_READS: Final = (Access.RECEIVE, Access.PEEK)
_OWN_WORDS: Final = {Status.SHARING_VIOLATION: NT_SHARING_VIOLATION}  # dwShareMode, 3.1.4.2


class QmComm(ServedInterface):
    """`ports` are those of qmcomm and of qm2qm."""

    def __init__(
        self,
        doors: Doors,
        reads: Reads,
        access: ReadAccess,
        ports: Callable[[], tuple[int, int]],
        random: Random,
    ) -> None:
        self._doors, self._reads, self._ports = doors, reads, ports
        self._contexts = Contexts[Door](random)
        super().__init__(
            wire.QMCOMM,
            access,
            (
                Entry(wire.OpenRemoteQueue, self._open),
                Entry(wire.CloseRemoteQueueContext, self._close),
                Entry(wire.CreateRemoteCursor, self._create_cursor),
                Entry(wire.GetServerPort, self._get_server_port, is_open=True),
            ),
        )

    async def call(self, call: Call) -> list[bytes]:
        if call.opnum == _GET_REMOTE_QUEUE_NAME:  # MP-53
            raise Fault(OBSOLETE)
        return list(await super().call(call))

    def rundown(self, group: int) -> None:
        """As `_close`. MP-8"""
        for door in self._contexts.run_down(group):
            self._leave(door)

    def _open(self, call: Call, request: wire.OpenRemoteQueue) -> wire.RemoteOpened:
        """MP-56: all three numbers are the same one."""
        try:
            if request.name is None or request.access not in _READS:
                raise Refused(Status.INVALID_PARAMETER, f"access {request.access:#x}")
            door = self._doors.open(call, request.name, request.access, request.share)
            try:
                handle = self._contexts.add(call.group, door)
            except Failed:
                self._doors.close(door)
                raise
        except Refused as refused:
            status = translated(refused.status, _OWN_WORDS)
            return wire.RemoteOpened(NULL_HANDLE, 0, 0, 0, status)
        except Failed as failed:
            return wire.RemoteOpened(NULL_HANDLE, 0, 0, 0, failed.status)
        return wire.RemoteOpened(handle, door.number, door.number, door.number, OK)

    def _close(self, call: Call, request: wire.CloseRemoteQueueContext) -> wire.RemoteClosed:
        """MP-57: a handle that is unknown is as good as closed."""
        try:
            door = self._contexts.pop(call.group, request.handle)
        except Fault:
            return wire.RemoteClosed(NULL_HANDLE)
        self._leave(door)
        return wire.RemoteClosed(NULL_HANDLE)

    def _leave(self, door: Door) -> None:
        """Once there is a session the queue is the session's."""
        if not door.is_ready:
            self._doors.close(door)

    def _create_cursor(
        self, call: Call, request: wire.CreateRemoteCursor
    ) -> wire.RemoteCursorCreated:
        """MP-58"""
        door = self._doors.get(request.remote_queue)
        if door is None:
            return wire.RemoteCursorCreated(0, Status.INVALID_HANDLE)
        self._access.demand_level(call, door.level)
        try:
            if door.cursors >= MOST_CURSORS:
                raise Failed(INSUFFICIENT_RESOURCES)
            number = self._reads.open_cursor(door.handle)
        except (Refused, Failed) as failure:
            gone = failure.status == Status.QUEUE_NOT_AVAILABLE  # MP-33
            return wire.RemoteCursorCreated(0, QUEUE_DELETED if gone else int(failure.status))
        door.cursors += 1
        return wire.RemoteCursorCreated(number, OK)

    def _get_server_port(self, _call: Call, request: wire.GetServerPort) -> Port:
        """MP-24"""
        ports = self._ports()
        return Port(ports[request.kind] if request.kind < len(ports) else 0)
