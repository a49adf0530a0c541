"""Runs one pure session on one TCP connection; no protocol knowledge."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, Protocol, assert_never, cast

from bridge.adapters.intake import Intake
from bridge.adapters.net.addresses import host_of, port_of
from bridge.adapters.telemetry import SessionFacts, Telemetry
from bridge.config import Address
from bridge.core.waiting_streams import Turn
from bridge.model.verdict import Outcome, Verdict
from bridge.protocol.binary.session import Session
from bridge.protocol.commands import (
    Accept,
    Close,
    Command,
    Delivered,
    FinalAcked,
    Opened,
    OrderAcked,
    Send,
)
from bridge.protocol.events import (
    BytesReceived,
    Congested,
    Decided,
    Event,
    Instant,
    PeerClosed,
    Tick,
)
from bridge.wire.binary.packet import UserMessage

LARGE: Final = 64 * 1024  # what the end of every read may leave
FEW: Final = 16  # messages of a read
REST_S: Final = 0.03  # about the time of a commit
LINGER_S: Final = 5.0  # for a peer to read our last words
CROWDED: Final = "crowded"


class Owner(Protocol):
    """Who keeps the connections and has something to send on them."""

    def made(self, connection: Connection) -> None: ...
    def opened(self, connection: Connection) -> None: ...
    def heard(self, connection: Connection) -> None: ...
    def bars(self, connection: Connection) -> str: ...
    def claims(self, connection: Connection, batches: int) -> None: ...
    def used(self, connection: Connection) -> None: ...
    def delivered(self, connection: Connection, tokens: Sequence[int]) -> None: ...
    def holds(self, connection: Connection, more: int) -> None: ...
    def rests(self, connection: Connection) -> None: ...
    def lost(self, connection: Connection) -> None: ...


def now() -> Instant:
    return Instant(time.monotonic(), time.time())


class Connection(asyncio.BufferedProtocol):
    """All events enter through `_apply`, which does not await, so they cannot interleave."""

    def __init__(
        self,
        make_session: Callable[[str, Instant], Session],
        intake: Intake,
        telemetry: Telemetry,
        owner: Owner,
        dialed: Address | None = None,
    ) -> None:
        self._make_session = make_session
        self._intake = intake
        self._telemetry = telemetry
        self._owner = owner
        self.dialed = dialed  # where we connected to; None if the peer did
        self._timer: asyncio.TimerHandle | None = None
        self._wakeup = inf  # when it runs out
        self._peer_is_slow = False
        self._was_open = False
        self._was_heard = False  # a message of it was accepted
        self.is_router = False  # it may hand on messages of others
        self._turn = Turn()
        self._brought = 0  # messages that the last read had
        self._read_at = 0.0
        self.heard_at = 0.0  # by the clock of the loop
        self._is_resting = False
        self._is_leaving = False
        self._shards: set[int] = set()  # that its messages go to; none before its handshake
        self._is_jammed = intake.is_closing
        self._held = 0  # bytes of a large packet whose end has not come
        self._bytes = 0
        self._unacked: deque[tuple[int, float]] = deque()  # messages by then, when they came
        self._ack_seconds = telemetry.ack_seconds["binary"]
        self.session: Session

    # -- asyncio.BufferedProtocol -----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        peer = transport.get_extra_info("peername")
        self.host = host_of(peer)
        self.name = str(Address(self.host, port_of(peer)))
        began = self._began = now()
        self.heard_at = self._loop.time()
        self.session = self._make_session(self.host, began)
        self._owner.made(self)
        self._telemetry.session_opened()
        self._throttle()
        if self.dialed is not None:
            self._execute(self.session.open(now()))
        self._arm_timer()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as large as it is
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        self._telemetry.bytes_received(nbytes)
        self._bytes += nbytes
        self._brought = 0
        self.heard_at = self._loop.time()
        self._apply(BytesReceived(bytes(_BUFFER[:nbytes])))
        if 0 < self._brought < FEW:
            self._maybe_rest()
        held = self.session.unfinished
        if held > LARGE or self._held:
            self._hold(held)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a reset hangs up too
        self._apply(PeerClosed())
        self._hold(0)
        self._owner.lost(self)
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        self._peer_is_slow = True
        self._throttle()

    def resume_writing(self) -> None:
        self._peer_is_slow = False
        self._throttle()

    # -- the owner --------------------------------------------------------------------------

    def look_at_jam(self) -> None:
        """A shard is jammed, or no longer; it may be one of ours."""
        jammed = self._intake.is_jammed(self._shards)
        if jammed != self._is_jammed:
            self._is_jammed = jammed
            self._throttle()
            self._apply(Congested(jammed))

    def _use(self, shards: set[int]) -> None:
        """Called within `_execute`, so what a jam says is said after it."""
        if not shards <= self._shards:
            self._shards |= shards
            if self._intake.is_jammed(shards) and not self._is_jammed:
                self._loop.call_soon(self.look_at_jam)

    def hang_up(self, reason: str) -> None:
        self._execute(self.session.close(reason))

    @property
    def is_idle(self) -> bool:
        return self.session.is_idle

    def give_way(self) -> None:
        """Its place is needed now: a peer that does not read cannot hold it."""
        self.hang_up(CROWDED)
        self._transport.abort()

    def finish(self, reason: str) -> None:
        """Hang up, but not before all that is decided is told. What the peer sends meanwhile is
        read and not heard: unread bytes would make a reset of our end, which may overtake acks."""
        self._is_leaving = True
        self._execute(self.session.finish(reason, now()))

    def deliver(self, packets: list[tuple[UserMessage, int]]) -> None:
        """Messages of our own; the owner hears which were taken."""
        self._execute(self.session.deliver(packets, now()))
        self._arm_timer()

    @property
    def initiated(self) -> bool:
        return self.dialed is not None

    # -- events and commands ----------------------------------------------------------------

    def _hold(self, held: int) -> None:
        held = held if held > LARGE else 0
        more, self._held = held - self._held, held
        if more:
            self._owner.holds(self, more)

    def _maybe_rest(self) -> None:
        """Who sends few at a time, but again and again, is read a little later: each read costs as
        much as many messages do, and until the commit under way is done nobody misses them."""
        before, self._read_at = self._read_at, self.heard_at
        if self._read_at - before < REST_S:
            self._is_resting = True
            self._throttle()
            self._owner.rests(self)

    def go_on(self) -> None:
        self._is_resting = False
        self._throttle()

    def _throttle(self) -> None:
        if not self._is_leaving and (self._peer_is_slow or self._is_resting or self._is_jammed):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _apply(self, event: Event) -> None:
        self._execute(self.session.handle(event, now()))
        if self._unacked:
            self._look_at_acks()
        self._arm_timer()

    def _look_at_acks(self) -> None:
        """A session ack covers all that came before it: one look for each read, none for each
        message."""
        acked, at = self.session.received.acked, self._loop.time()
        while self._unacked and self._unacked[0][0] <= acked:
            self._ack_seconds.observe(at - self._unacked.popleft()[1])

    def _execute(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send():
                    if not self._transport.is_closing():  # else asyncio complains of each write
                        self._transport.write(command.data)
                case Accept():
                    self._submit(command)
                case Close():
                    self._on_close(command)
                case Opened():
                    self._telemetry.session_began(
                        "binary", self.name, queue_manager=str(command.remote)
                    )
                    self._was_open = True
                    self._use({self._intake.shard_of(command.remote)})
                    self._owner.opened(self)
                case Delivered():
                    self._owner.delivered(self, command.tokens)
                case OrderAcked() | FinalAcked():
                    pass  # we send nothing transactional
                case _:
                    assert_never(command)

    def _submit(self, command: Accept) -> None:
        if why := self._owner.bars(self):
            self.hang_up(why)
            return
        self._owner.claims(self, 1)
        batch = command.batch
        self._brought = len(command.messages)
        self._unacked.append((self.session.received.received, self._loop.time()))
        self._owner.used(self)

        def on_decided(verdicts: Sequence[Verdict]) -> None:
            if not self._was_heard and any(v.outcome is Outcome.ACCEPTED for v in verdicts):
                self._was_heard = True
                self._owner.heard(self)
            self._owner.claims(self, -1)
            self._apply(Decided(batch, verdicts))

        remote = self.session.remote
        self._use(
            self._intake.submit(
                command.messages, on_decided, remote, self.is_router, turn=self._turn
            )
        )

    def _on_close(self, command: Close) -> None:
        self._telemetry.session_closed(command.reason)
        guid = str(self.session.remote) if self._was_open else ""
        if command.reason not in _PEACEFUL:
            self._telemetry.refused(
                command.reason, self.name, command.detail, "binary", queue_manager=guid
            )
        self._telemetry.session_over(
            SessionFacts(
                transport="binary",
                peer=self.name,
                queue_manager=guid,
                messages=self.session.received.received,
                bytes=self._bytes,
                began=self._began.unix,
                seconds=time.monotonic() - self._began.mono,
                reason=command.reason,
                was_open=self._was_open,
            )
        )
        self._unacked.clear()
        if self._is_leaving and self._transport.can_write_eof():
            self._transport.write_eof()
            self._throttle()
            self._loop.call_later(LINGER_S, self._transport.abort)
            return
        self._transport.close()
        if self._transport.get_write_buffer_size():  # who does not read does not stay either
            self._loop.call_later(LINGER_S, self._transport.abort)

    def _arm_timer(self) -> None:
        """One that runs out too early stays: most are put off with every message."""
        due = self.session.next_wakeup()
        if due is None or due >= self._wakeup:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakeup = due
        self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._wakeup = None, inf
        due = self.session.next_wakeup()
        if due is not None and due <= self._loop.time():
            self._apply(Tick())
        else:
            self._arm_timer()


_PEACEFUL: Final = frozenset(("peer-closed", "idle", "shutdown"))
# One for all connections: a read and what follows from it are not interrupted. (Without it the
# loop would allocate as much for every read, and give it back.)
_BUFFER: Final = memoryview(bytearray(256 * 1024))
