"""Carries an `Outgoing` to its peer: connects, and connects again (MS-MQQB 3.1.6.1)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, assert_never, cast

from bridge.adapters.net.addresses import host_of
from bridge.adapters.net.connection import now
from bridge.adapters.net.host_names import resolving
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
        self._half_closed = self._over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = host_of(transport.get_extra_info("peername"))
        self._execute(self._outgoing.connected(peer, now()))
        self._arm_timer()

    def data_received(self, data: bytes) -> None:
        self.apply(BytesReceived(data))

    def connection_lost(self, exc: Exception | None) -> None:
        ended_by_us = self._over or self.closed.done()
        if self._half_closed and exc is None and not ended_by_us:
            self._outgoing.forget_express()
        self.apply(PeerClosed())
        self._stop_timer()

    def apply(self, event: Event) -> None:
        if self._over:
            return
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
        """From here on the messages belong to the next connection, whenever this one ends."""
        self._over = True
        self._stop_timer()
        if self._outgoing.waiting:
            self._transport.abort()  # a peer that reads no more would keep it open
        else:
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

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm_timer(self) -> None:
        self._stop_timer()
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
            why = _reason(error)
        if outgoing.waiting:
            await asyncio.sleep(min(RETRY_S, max(0.0, end - loop.time())))


def _reason(error: OSError) -> str:
    """asyncio says `Connect call failed` for all of them; a name that is unknown is below 0."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or "no answer"


async def _one_session(
    outgoing: Outgoing, host: str, port: int, left: float, on_progress: Callable[[], None]
) -> str:
    """Why it ended."""
    loop = asyncio.get_running_loop()
    with resolving(host):
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
