"""Queues that readers have open. MS-MQDMPR 3.1.7.1.5, 3.1.7.1.1"""

from __future__ import annotations

from itertools import count

from bridge.core.retained.cursors import Cursor
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.naming import is_system
from bridge.core.retained.queues import Access, Descriptor, QueueTable, Share


class Handles:
    """They are gone after a restart; numbers are not secrets, so each protocol has its own."""

    def __init__(self, queues: QueueTable) -> None:
        self._queues = queues
        self._open: dict[int, Descriptor] = {}
        self._numbers = count(16)  # 0 is no cursor, and 11 is a reserved one (MP-51)

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self,
        name: str,
        access: Access,
        share: Share = Share.DENY_NONE,
        *,
        is_timed: bool = True,
    ) -> int:
        """Not `is_timed`: a receive is released by `Answering.close` or `end`, never by a timer."""
        queue = self._queues.find(name.lower())
        if access is Access.MOVE and is_system(queue.name):
            raise Refused(Status.UNSUPPORTED_FORMATNAME_OPERATION, name)
        if not queue.admits(access, share):
            raise Refused(Status.SHARING_VIOLATION, name)
        descriptor = Descriptor(next(self._numbers), queue, access, share, is_timed=is_timed)
        self._open[descriptor.handle] = queue.handles[descriptor.handle] = descriptor
        return descriptor.handle

    def open_cursor(self, handle: int) -> int:
        descriptor = self.get(handle)
        _ = descriptor.live_queue
        descriptor.demand(Access.PEEK)
        number = next(self._numbers)
        descriptor.cursors[number] = Cursor()
        return number

    def get(self, handle: int) -> Descriptor:
        try:
            return self._open[handle]
        except KeyError:
            raise Refused(Status.INVALID_HANDLE) from None

    def drop(self, descriptor: Descriptor) -> None:
        del self._open[descriptor.handle]
        if descriptor.queue is not None:
            del descriptor.queue.handles[descriptor.handle]
