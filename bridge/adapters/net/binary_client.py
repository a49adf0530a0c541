"""Carries an `Outgoing` to its peer: connects, and connects again (MS-MQQB 3.1.6.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, assert_never, cast

from bridge.adapters.net.connection import now
from bridge.model.errors import Unavailable
from bridge.protocol.binary.outgoing import Outgoing
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
from bridge.protocol.events import BytesReceived, Event, PeerClosed, Tick

RETRY_S: Final = 5.0  # Session Retry Connect Timer
CONNECT_S: Final = 10.0


class PeerUnavailable(Unavailable):
    """The other queue manager cannot be reached, or does not take what we send."""


class _ClientConnection(asyncio.Protocol):
    def __init__(self, outgoing: Outgoing, on_progress: Callable[[], None]) -> None:
        self._outgoing = outgoing
        self._on_progress = on_progress
        self._timer: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self.finished = asyncio.Event()
        self._half_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._execute(self._outgoing.connected(transport.get_extra_info("peername")[0], now()))
        self._arm_timer()

    def data_received(self, data: bytes) -> None:
        self.apply(BytesReceived(data))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._half_closed and exc is None:
            self._outgoing.forget_express()
        self.apply(PeerClosed())
        if self._timer is not None:
            self._timer.cancel()

    def apply(self, event: Event) -> None:
        self._execute(self._outgoing.handle(event, now()))
        self._arm_timer()
        self._on_progress()
        if not self._outgoing.waiting:
            self.finished.set()
        elif self._outgoing.all_handed_over and not self._half_closed:
            # The peer reads all there is, then hangs up; its acks still find us listening.
            self._half_closed = True
            self._transport.write_eof()

    def hang_up(self) -> None:
        self._transport.close()

    def _execute(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Send():
                    self._transport.write(command.data)
                case Close():
                    self._transport.close()
                    if not self.closed.done():
                        self.closed.set_result(command)
                case Opened() | Accept() | Delivered() | OrderAcked() | FinalAcked():
                    pass  # Outgoing has dealt with them
                case _:
                    assert_never(command)

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self._outgoing.next_wakeup()
        loop = asyncio.get_running_loop()
        self._timer = None if due is None else loop.call_at(due, self.apply, Tick())


async def send_all(
    outgoing: Outgoing,
    host: str,
    port: int,
    *,
    deadline_s: float,
    on_progress: Callable[[], None] = lambda: None,
) -> None:
    """Return when the peer has taken everything; a lost session is begun again.

    Raises PeerUnavailable when that did not happen in time.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline_s
    why = "no answer"
    while outgoing.waiting:
        left = end - loop.time()
        if left <= 0:
            raise PeerUnavailable(
                f"{host}:{port}: {outgoing.waiting} messages are not acknowledged after "
                f"{deadline_s:g} s ({why}); see the status of that queue manager"
            )
        try:
            why = await _one_session(outgoing, host, port, left, on_progress)
        except OSError as error:
            why = error.strerror or str(error)
        if outgoing.waiting:
            await asyncio.sleep(min(RETRY_S, max(0.0, end - loop.time())))


async def _one_session(
    outgoing: Outgoing, host: str, port: int, left: float, on_progress: Callable[[], None]
) -> str:
    """Why it ended."""
    loop = asyncio.get_running_loop()
    _, connection = await asyncio.wait_for(
        loop.create_connection(lambda: _ClientConnection(outgoing, on_progress), host, port),
        min(CONNECT_S, left),
    )
    finished = asyncio.create_task(connection.finished.wait())
    try:
        await asyncio.wait(
            (finished, connection.closed), timeout=left, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        finished.cancel()
        connection.hang_up()
    if connection.closed.done():
        close = connection.closed.result()
        return f"{close.reason} {close.detail}".strip()
    return "no acknowledgment"
