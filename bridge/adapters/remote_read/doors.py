"""Queues that qmcomm opened for qm2qm: both know them by one number. RR-38

The number is handed from one machine to another, so it is all that its bearer has: random, and used
up by the RemoteQMOpenQueue that succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from bridge.adapters.remote_read.opening import Opening
from bridge.adapters.remote_read.reads import Reads
from bridge.core.remote_read.codes import INSUFFICIENT_RESOURCES, Failed
from bridge.core.remote_read.contexts import Random
from bridge.protocol.rpc.calls import AuthLevel, Call
from bridge.wire.rpc.queue_format import QueueFormat

MOST_DOORS: Final = 65_536


class Waiting(msgspec.Struct, eq=False):
    """A read that is not answered yet. RR-39"""

    tag: int
    is_cancelled: bool = False  # by its client, which wants to be told so


class Door(msgspec.Struct, eq=False):
    """One open queue; RemoteReadState is Opened until a session is there (MP-57)."""

    number: int
    handle: int  # of the retained queues
    level: AuthLevel  # of R_QMOpenRemoteQueue: qmcomm calls keep to it
    session_level: AuthLevel = AuthLevel.NONE  # of RemoteQMOpenQueue: qm2qm calls keep to it
    group: int = 0  # of the session
    user: str = ""
    is_ready: bool = False  # ReadyForRead
    waiting: dict[int, Waiting] = msgspec.field(default_factory=dict)  # by request id
    cursors: int = 0


class Doors:
    def __init__(self, opening: Opening, reads: Reads, random: Random) -> None:
        self._opening, self._reads, self._random = opening, reads, random
        self._doors: dict[int, Door] = {}
        self._tags = count(1)
        self.on_closed: Callable[[Door], None] = lambda _door: None

    def __len__(self) -> int:
        return len(self._doors)

    def open(self, call: Call, name: QueueFormat, access: int, share: int) -> Door:
        if len(self._doors) >= MOST_DOORS:
            raise Failed(INSUFFICIENT_RESOURCES)
        # MS-MQQP 3.1.2 has no timer for what is not ended: 3.1.6.2, the rundown, releases it.
        handle = self._opening.open(call, name, access, share, is_timed=False)
        door = Door(number=self._number(), handle=handle, level=call.level, user=call.user)
        self._doors[door.number] = door
        return door

    def get(self, number: int) -> Door | None:
        return self._doors.get(number)

    def session(self, number: int) -> Door | None:
        """One that RemoteQMOpenQueue has been called for."""
        door = self._doors.get(number)
        return door if door is not None and door.is_ready else None

    def next_tag(self) -> int:
        """Request ids come again once a read is answered, so they do not name it to the queues."""
        return next(self._tags)

    def close(self, door: Door) -> None:
        if self._doors.pop(door.number, None) is not None:
            self._reads.close(door.handle)
            self.on_closed(door)

    def _number(self) -> int:
        while True:
            number = int.from_bytes(self._random(4), "little")
            if number and number not in self._doors:
                return number
