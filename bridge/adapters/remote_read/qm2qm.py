"""The qm2qm interface on the retained queues, for old queue managers. MS-MQQP 3.1.4

A session is a queue that qmcomm opened (`doors`); a received message has a handle of its own. What
has nothing but a number (a cursor, a cancel, a purge) is taken from the session's client alone.

The supporting server makes these calls itself, as itself and at its own authentication level
(MS-MQMP 4.2): the level of the application that opened the queue does not bind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from bridge.adapters.remote_read.doors import Door, Doors, Waiting
from bridge.adapters.remote_read.reads import Given, Reads
from bridge.adapters.remote_read.served import Entry, ServedInterface
from bridge.core.remote_read.access import ReadAccess
from bridge.core.remote_read.actions import Wanted, plainly_wanted, wanted_by_lookup
from bridge.core.remote_read.codes import (
    BUFFER_OVERFLOW,
    MQ_ERROR,
    OK,
    REMOTE_CANCELLED,
    Failed,
    translated,
)
from bridge.core.remote_read.contexts import Contexts, Random
from bridge.core.remote_read.replies import old_packet_of
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.place import low_bits
from bridge.protocol.rpc.calls import Call
from bridge.wire.rpc import qm2qm as wire
from bridge.wire.rpc.ndr import NULL_HANDLE
from bridge.wire.rpc.remote_read import ACK, Port
from bridge.wire.rpc.stub import Result

VERSION: Final = wire.Version(6, 1, 7601)  # readers of 5.1 and later use RemoteQMStartReceive2
_OWN_WORDS: Final = {Status.NT_INVALID_HANDLE: int(Status.NT_INVALID_PARAMETER)}  # of a cursor


class Held(msgspec.Struct, frozen=True, eq=False):
    """A received message that its reader has not answered yet. RR-40"""

    door: Door
    tag: int


class Qm2Qm(ServedInterface):
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
        self._sessions, self._held = Contexts[Door](random), Contexts[Held](random)
        doors.on_closed = self._forget
        super().__init__(
            wire.QM2QM,
            access,
            (
                Entry(wire.StartReceive, self._start),
                Entry(wire.EndReceive, self._end),
                Entry(wire.OpenQueue, self._open),
                Entry(wire.CloseQueue, self._close),
                Entry(wire.CloseCursor, self._close_cursor),
                Entry(wire.CancelReceive, self._cancel),
                Entry(wire.PurgeQueue, self._purge),
                Entry(wire.GetServerPort, self._get_server_port, is_open=True),
                Entry(wire.GetVersion, self._get_version, is_open=True),
                Entry(wire.StartReceive2, self._start2),
                Entry(wire.StartReceiveByLookupId, self._start_by_lookup_id),
            ),
        )

    def rundown(self, group: int) -> None:
        """RR-40: a read handle goes with the association that got it."""
        for held in self._held.run_down(group):
            self._reads.release(held.door.handle, held.tag)
        for door in self._sessions.run_down(group):
            self._doors.close(door)

    def _forget(self, door: Door) -> None:
        self._held.forget(lambda held: held.door is door)

    # -- sessions ---------------------------------------------------------------------------

    def _open(self, call: Call, request: wire.OpenQueue) -> wire.HandleGone:
        """MS-MQQP 3.1.4.3, D-15: from here on the queue is ready to be read."""
        door = self._doors.get(request.queue)
        if not request.queue or request.queue != request.context or door is None or door.is_ready:
            return wire.HandleGone(NULL_HANDLE, Status.INVALID_PARAMETER)
        try:
            handle = self._sessions.add(call.group, door)
        except Failed as failed:
            return wire.HandleGone(NULL_HANDLE, failed.status)
        door.is_ready, door.group = True, call.group
        door.session_level, door.user = call.level, call.user
        return wire.HandleGone(handle, OK)

    def _close(self, call: Call, request: wire.CloseQueue) -> wire.HandleGone:
        if request.handle == NULL_HANDLE:
            return wire.HandleGone(NULL_HANDLE, Status.INVALID_HANDLE)
        door = self._sessions.get(call.group, request.handle)
        self._access.demand_level(call, door.session_level)
        self._doors.close(self._sessions.pop(call.group, request.handle))
        return wire.HandleGone(NULL_HANDLE, OK)

    def _own(self, call: Call, number: int) -> Door | None:
        """The caller's own session: a number alone must not purge."""
        door = self._doors.session(number)
        if door is None or door.group != call.group:
            return None
        self._access.demand_level(call, door.session_level)
        return door

    def _close_cursor(self, call: Call, request: wire.CloseCursor) -> Result:
        door = self._own(call, request.remote_queue)
        if door is None:
            return Result(Status.INVALID_HANDLE)
        try:
            self._reads.close_cursor(door.handle, request.cursor)
        except Refused:
            return Result(Status.INVALID_HANDLE)
        door.cursors -= 1
        return Result(OK)

    async def _purge(self, call: Call, request: wire.PurgeQueue) -> Result:
        """MS-MQQP 3.1.4.7: without a session it is a fault, as Windows does it."""
        door = self._own(call, request.remote_queue)
        if door is None:
            raise Refused(Status.INVALID_HANDLE)
        try:
            await self._reads.purge(door.handle)
        except (Refused, Failed) as failure:
            return Result(failure.status)  # D-5: it must be open to receive
        return Result(OK)

    # -- messages ---------------------------------------------------------------------------

    async def _start(self, call: Call, request: wire.StartReceive) -> wire.ReadStarted:
        handle, answer, _, status = await self._read(call, request.descriptor)
        return wire.ReadStarted(handle, answer, status)

    async def _start2(self, call: Call, request: wire.StartReceive2) -> wire.ReadStarted2:
        descriptor = request.descriptor.descriptor
        if descriptor is None:
            return _nothing()
        handle, answer, number, status = await self._read(call, descriptor)
        return wire.ReadStarted2(handle, wire.ReadDescriptor2(answer, number), status)

    async def _start_by_lookup_id(
        self, call: Call, request: wire.StartReceiveByLookupId
    ) -> wire.ReadStarted2:
        descriptor = request.descriptor.descriptor
        if descriptor is None:
            return _nothing()
        handle, answer, number, status = await self._read(call, descriptor, request.lookup_id)
        return wire.ReadStarted2(handle, wire.ReadDescriptor2(answer, number), status)

    async def _read(
        self, call: Call, descriptor: wire.ReadDescriptor, lookup_id: int | None = None
    ) -> tuple[bytes, wire.ReadDescriptor, int, int]:
        """The handle of a message that was received, the answer, its number and the status."""
        try:
            door, want = self._judge(call, descriptor, lookup_id)
            tag = self._doors.next_tag()
            given = await self._wait(door, descriptor.request_id, tag, want)
            packet = self._packet(door, tag, given, want)
            handle = self._hand_out(call, door, tag) if want.is_receive else NULL_HANDLE
        except (Refused, Failed) as failure:
            status = failure.status
            code = translated(status, _OWN_WORDS) if isinstance(status, Status) else status
            return NULL_HANDLE, descriptor.answer(), 0, code
        arrived = given.row.arrived_ms // 1000 & 0xFFFFFFFF
        return handle, descriptor.answer(arrived, packet), low_bits(given.row.lookup_id), OK

    def _judge(
        self, call: Call, descriptor: wire.ReadDescriptor, lookup_id: int | None
    ) -> tuple[Door, Wanted]:
        """In the order of MS-MQQP 3.1.4.1."""
        number = descriptor.remote_queue
        if not number or descriptor.queue != number:
            raise Refused(Status.INVALID_PARAMETER, "two queues, or none")
        door = self._doors.session(number)
        if door is not None and descriptor.request_id in door.waiting:
            raise Refused(Status.INVALID_PARAMETER, "a read with this id is not over yet")
        options = {"cursor": descriptor.cursor, "timeout_ms": descriptor.timeout_ms}
        if lookup_id is None:
            want = plainly_wanted(descriptor.action, **options)
        else:
            want = wanted_by_lookup(descriptor.action, lookup_id=lookup_id, **options)
        if door is None or door.user != call.user:
            raise Refused(Status.INVALID_PARAMETER, "there is no session")
        self._access.demand_level(call, door.session_level)
        return door, want

    async def _wait(self, door: Door, request_id: int, tag: int, want: Wanted) -> Given:
        """RR-39: the entry is there until the read is answered, and can be cancelled so long."""
        waiting = door.waiting[request_id] = Waiting(tag)
        try:
            return await self._reads.start(door.handle, tag, want)
        except Refused as refused:
            if waiting.is_cancelled and refused.status is Status.OPERATION_CANCELLED:
                raise Failed(REMOTE_CANCELLED) from None
            raise
        finally:
            del door.waiting[request_id]

    def _packet(self, door: Door, tag: int, given: Given, want: Wanted) -> tuple[bytes, ...]:
        packet = old_packet_of(given.message)
        if len(packet) > wire.MOST_BUFFER:  # RR-41: only what came by HTTP can be so large
            if want.is_receive:
                self._reads.release(door.handle, tag)
            raise Failed(BUFFER_OVERFLOW)
        return packet.all

    def _hand_out(self, call: Call, door: Door, tag: int) -> bytes:
        try:
            return self._held.add(call.group, Held(door, tag))
        except Failed:
            self._reads.release(door.handle, tag)
            raise

    async def _end(self, call: Call, request: wire.EndReceive) -> wire.HandleGone:
        if request.handle == NULL_HANDLE:
            return wire.HandleGone(NULL_HANDLE, Status.INVALID_HANDLE)
        held = self._held.get(call.group, request.handle)
        self._access.demand_level(call, held.door.session_level)
        status = OK
        try:
            await self._reads.end(held.door.handle, held.tag, delete=request.ack == ACK)
        except Failed as failed:  # Kafka is away: it can be ended later
            return wire.HandleGone(request.handle, failed.status)
        except Refused as refused:
            status = int(refused.status)
        self._held.discard(call.group, request.handle)
        return wire.HandleGone(NULL_HANDLE, status)

    def _cancel(self, call: Call, request: wire.CancelReceive) -> Result:
        """MS-MQQP 3.1.4.6"""
        if not request.queue or request.queue != request.remote_queue:
            return Result(Status.INVALID_PARAMETER)
        door = self._own(call, request.remote_queue)
        if door is None or not door.waiting:
            return Result(Status.INVALID_HANDLE)
        waiting = door.waiting.get(request.request_id)
        if waiting is None:
            return Result(MQ_ERROR)
        waiting.is_cancelled = True
        try:
            self._reads.cancel(door.handle, waiting.tag)
        except Refused:  # it has its message already, which is on its way
            waiting.is_cancelled = False
            return Result(MQ_ERROR)
        return Result(OK)

    # -- what anybody may ask ---------------------------------------------------------------

    def _get_server_port(self, _call: Call, request: wire.GetServerPort) -> Port:
        ports = self._ports()
        return Port(ports[request.kind] if request.kind < len(ports) else 0)

    def _get_version(self, _call: Call, _request: wire.GetVersion) -> wire.Version:
        return VERSION


def _nothing() -> wire.ReadStarted2:
    return wire.ReadStarted2(NULL_HANDLE, wire.ReadDescriptor2(None), Status.INVALID_HANDLE)
