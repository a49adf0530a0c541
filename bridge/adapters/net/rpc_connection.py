"""Runs one pure association on one TCP connection, and its calls as tasks."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Protocol, assert_never, cast

from bridge.adapters.net.addresses import host_of, port_of
from bridge.adapters.net.connection import LINGER_S, now
from bridge.adapters.telemetry import SessionFacts, Telemetry
from bridge.config import Address
from bridge.protocol.commands import Close
from bridge.protocol.events import BytesReceived, PeerClosed, Tick
from bridge.protocol.rpc.association import Association, State
from bridge.protocol.rpc.calls import Fault, Interface
from bridge.protocol.rpc.dialogue import (
    Answered,
    Command,
    Event,
    Faulted,
    Invoke,
    Refused,
    RunDown,
    Transmit,
    Withdraw,
)
from bridge.protocol.rpc.fragments import Stub
from bridge.protocol.rpc.requests import CANCELLED

_log = logging.getLogger(__name__)
UNSPECIFIED: Final = 0x1C000012  # nca_s_fault_unspec: a bug of ours
UNSENT: Final = 64 << 20  # bytes of answers that a client has not read
STALL_S: Final = 60.0  # in which it must read something
LARGE: Final = 64 * 1024  # what the end of every read may leave
CROWDED: Final = "rpc-crowded"
_KEEP_ALIVE: Final = (  # a dead reader runs down in about two minutes, RR-13
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)
_PEACEFUL: Final = frozenset(("peer-closed", "shutdown"))


class Owner(Protocol):
    """Who keeps the connections, and what outlives them."""

    @property
    def telemetry(self) -> Telemetry: ...
    def made(self, connection: RpcConnection) -> None: ...
    def heard(self, connection: RpcConnection) -> None: ...
    def holds(self, connection: RpcConnection, more: int) -> None: ...
    def started(self, task: asyncio.Task[Stub], group: int) -> None: ...
    def run_down(self, group: int) -> None: ...
    def lost(self, connection: RpcConnection) -> None: ...


class RpcConnection(asyncio.BufferedProtocol):
    """All events enter through `_apply`, which does not await, so they cannot interleave."""

    def __init__(
        self,
        interfaces: Sequence[Interface],
        associate: Callable[[str, tuple[str, int]], Association],
        owner: Owner,
    ) -> None:
        self._interfaces, self._associate, self._owner = interfaces, associate, owner
        self._telemetry = owner.telemetry
        self._tasks: dict[int, asyncio.Task[Stub]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup = inf  # when it runs out
        self._stall: asyncio.TimerHandle | None = None
        self._held = self._bytes = self._calls = 0
        self._user = ""
        self._is_open = False
        self._is_deaf = False
        self.association: Association

    # -- asyncio.BufferedProtocol -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        peer, local = (transport.get_extra_info(end) for end in ("peername", "sockname"))
        self.host = host_of(peer)
        self.name = str(Address(self.host, port_of(peer)))
        for option in _KEEP_ALIVE:
            transport.get_extra_info("socket").setsockopt(*option)
        self._began = now()
        self.association = self._associate(self.host, (host_of(local), port_of(local)))
        self._owner.made(self)
        self._arm_timer()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as large as it is
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self._bytes += nbytes
        self._apply(BytesReceived(bytes(_BUFFER[:nbytes])))
        self._owner.heard(self)
        if not self._is_open and self.association.state is not State.UNBOUND:
            self._is_open = True
            self._telemetry.session_began("rpc", self.name)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a reset hangs up too
        self._apply(PeerClosed())
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()
        self._hold(0)
        self._owner.lost(self)

    def pause_writing(self) -> None:
        """It asks more than it reads: hear no more of it, and not for ever."""
        self._transport.pause_reading()
        self._watch_stall()

    def resume_writing(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
        if not self._is_deaf:
            self._transport.resume_reading()
        self._account()

    def _watch_stall(self) -> None:
        before = self._transport.get_write_buffer_size()
        self._stall = self._loop.call_later(STALL_S, self._on_stall, before)

    def _on_stall(self, before: int) -> None:
        if self._transport.get_write_buffer_size() < before:
            self._watch_stall()
        else:
            self.hang_up("rpc-slow-reader")
            self._transport.abort()

    # -- events and commands ----------------------------------------------------------------

    def stop_reading(self) -> None:
        """What was asked is answered, nothing more is heard."""
        self._is_deaf = True
        self._transport.pause_reading()

    def hang_up(self, reason: str) -> None:
        self._execute(self.association.close(reason))

    @property
    def is_idle(self) -> bool:
        """No call is under way or half there, and every answer has been read."""
        unsent = self._transport.get_write_buffer_size()
        return not self._tasks and not self.association.held and not unsent

    def give_way(self) -> None:
        """Its place is needed now: a peer that does not read cannot hold it."""
        self.hang_up(CROWDED)
        self._transport.abort()

    def _apply(self, event: Event) -> None:
        self._execute(self.association.handle(event, now()))
        self._arm_timer()
        self._account()

    def _execute(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Transmit():
                    if not self._transport.is_closing():
                        self._transport.writelines(command.buffers)
                case Invoke():
                    self._invoke(command)
                case Withdraw():
                    self._withdraw(command)
                case Refused():
                    self._count(command.reason, command.detail)
                case Close():
                    self._on_close(command)
                case RunDown():
                    self._owner.run_down(command.group)
                case _:
                    assert_never(command)

    def _invoke(self, command: Invoke) -> None:
        call_id = command.call_id
        self._calls += 1
        self._user = command.call.user
        work = _run(self._interfaces[command.interface], command)
        task = self._tasks[call_id] = self._loop.create_task(work)
        self._owner.started(task, command.call.group)
        task.add_done_callback(lambda task: self._on_done(call_id, task))

    def _withdraw(self, command: Withdraw) -> None:
        task = self._tasks[command.call_id]
        if command.orphaned:  # its number may be used again before it has ended
            del self._tasks[command.call_id]
        task.cancel()

    def _on_done(self, call_id: int, task: asyncio.Task[Stub]) -> None:
        outcome = self._outcome(call_id, task)
        if self._tasks.get(call_id) is task:
            del self._tasks[call_id]
            self._apply(outcome)

    def _outcome(self, call_id: int, task: asyncio.Task[Stub]) -> Answered | Faulted:
        if task.cancelled():
            self._telemetry.rpc_call("cancelled")
            return Faulted(call_id, CANCELLED)
        error = task.exception()
        if error is None:
            self._telemetry.rpc_call("answered")
            return Answered(call_id, task.result())
        if isinstance(error, Fault):
            self._telemetry.rpc_call("fault")
            return Faulted(call_id, error.status, error.did_not_execute)
        self._telemetry.rpc_call("failed")
        _log.error("%s: call %d failed", self.name, call_id, exc_info=error)
        return Faulted(call_id, UNSPECIFIED)

    def _on_close(self, command: Close) -> None:
        if command.reason not in _PEACEFUL:
            self._count(command.reason, command.detail)
        self._telemetry.session_over(
            SessionFacts(
                transport="rpc",
                peer=self.name,
                user=self._user,
                messages=self._calls,
                bytes=self._bytes,
                began=self._began.unix,
                seconds=now().mono - self._began.mono,
                reason=command.reason,
                was_open=self._is_open,
            )
        )
        self._transport.close()
        if self._transport.get_write_buffer_size():  # who does not read does not stay either
            self._loop.call_later(LINGER_S, self._transport.abort)

    def _count(self, reason: str, detail: str) -> None:
        reason = reason if reason.startswith("rpc-") else f"rpc-{reason}"
        self._telemetry.refused(reason, self.name, detail, "rpc")

    def _account(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        if unsent > UNSENT:
            self.hang_up("rpc-slow-reader")
            self._transport.abort()
        held = self.association.held + unsent
        self._hold(held if held > LARGE else 0)

    def _hold(self, held: int) -> None:
        more, self._held = held - self._held, held
        if more:
            self._owner.holds(self, more)

    def _arm_timer(self) -> None:
        """One that runs out too early stays."""
        due = self.association.next_wakeup()
        if due is None or due >= self._wakeup:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakeup = due
        self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._wakeup = None, inf
        due = self.association.next_wakeup()
        if due is not None and due <= self._loop.time():
            self._apply(Tick())
        else:
            self._arm_timer()


async def _run(interface: Interface, command: Invoke) -> Stub:
    return await interface.call(command.call)


# One for all connections: a read and what follows from it are not interrupted.
_BUFFER: Final = memoryview(bytearray(256 * 1024))
