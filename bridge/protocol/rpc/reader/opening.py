"""Opening a queue on the server, closing it, and the Starts in between. MS-MQRR 3.1.4.2, 3.1.4.7"""

from __future__ import annotations

from itertools import count
from typing import Final

import msgspec

from bridge.model.guid import Guid
from bridge.protocol.rpc.reader.names import Target
from bridge.protocol.rpc.reader.results import SHARING_VIOLATIONS, Refused
from bridge.protocol.rpc.reader.steps import ConnectionLost, Flow, ask, call
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.remote_read import (
    CloseQueue,
    Opened,
    OpenedForMove,
    OpenQueue,
    OpenQueueForMove,
    StartReceive,
)

RECEIVE_ACCESS: Final = 0x01  # dwAccess
MOVE_ACCESS: Final = 0x04
PEEK_ACCESS: Final = 0x20
ALL: Final = 0xFFFFFFFF  # dwMaxBodySize: never cut
LONGEST_WAIT_MS: Final = 60_000  # RR-51: of one Start

RECEIVE: Final = 0x00000000  # ulAction
PEEK_CURRENT: Final = 0x80000000
PEEK_NEXT: Final = 0x80000001
LOOKUP_PEEK_CURRENT: Final = 0x40000010
LOOKUP_PEEK_NEXT: Final = 0x40000011
LOOKUP_PEEK_PREVIOUS: Final = 0x40000012
LOOKUP_RECEIVE_CURRENT: Final = 0x40000020

# RR-45: always the same, so that a server that counts clients counts one.
_CLIENT: Final = Guid.parse("8f0d5c1e-4d5b-4b7c-9a55-6d1d0f2b7c61")
_MAJOR, _MINOR, _BUILD = 6, 1, 7601
_NON_ROUTING: Final = 1
_DENY_NONE: Final = 0  # dwShareMode
_DENY_RECEIVE: Final = 1


class Client(msgspec.Struct, frozen=True):
    """Who we say we are. `workgroup`: no domain vouches for us. `exclusive`: nobody else may open
    the queues to receive while we have them open."""

    workgroup: bool = True
    exclusive: bool = False

    @property
    def share(self) -> int:
        return _DENY_RECEIVE if self.exclusive else _DENY_NONE


class OpenedQueue:
    """A handle, and the numbers of its Starts: none is used twice. RR-47"""

    def __init__(self, handle: bytes) -> None:
        self.handle = handle
        self._ids = count(1)

    def start(
        self,
        action: int,
        *,
        lookup_id: int = 0,
        cursor: int = 0,
        timeout_ms: int = 0,
        most_body: int = ALL,
    ) -> StartReceive:
        return StartReceive(
            handle=self.handle,
            lookup_id=lookup_id,
            cursor=cursor,
            action=action,
            timeout_ms=timeout_ms,
            request_id=next(self._ids),
            most_body=most_body,
            most_compound=most_body,
        )


def open_queue(
    target: Target, access: int, client: Client, *, is_again: bool = False
) -> Flow[OpenedQueue]:
    """`is_again`: after a lost connection. Until the server has noticed that it is lost, our own
    exclusive handle is in the way: that counts as a connection that does not last."""
    request = _open(OpenQueue, target.format, access, client, client.share)
    try:
        opened = yield from call(request, Opened)
    except Refused as refused:
        if is_again and client.exclusive and refused.status in SHARING_VIOLATIONS:
            raise ConnectionLost(str(refused)) from refused
        raise
    return OpenedQueue(opened.handle)


def open_for_move(target: Target, client: Client) -> Flow[tuple[int, OpenedQueue]]:
    """The number that MoveMessage knows the target by, and its handle."""
    request = _open(OpenQueueForMove, target.format, MOVE_ACCESS, client, _DENY_NONE)
    opened = yield from call(request, OpenedForMove)
    return opened.move_context, OpenedQueue(opened.handle)


def close_queue(queue: OpenedQueue) -> Flow[None]:
    """Cursors go with it. What it answers changes nothing. RR-56"""
    yield from ask(CloseQueue(queue.handle))


def _open(
    kind: type[OpenQueue], queue: QueueFormat, access: int, client: Client, share: int
) -> OpenQueue:
    return kind(
        queue=queue,
        access=access,
        share=share,
        client=_CLIENT,
        non_routing=_NON_ROUTING,
        major=_MAJOR,
        minor=_MINOR,
        build=_BUILD,
        workgroup=int(client.workgroup),
    )
