"""How much a queue, and the whole machine, may hold. MS-MQDMPR 3.1.7.1.9

What is on its way is counted, too: a message is reserved when it is decided on and released when
it is on the shelf, or never will be.
"""

from __future__ import annotations

from enum import Enum, auto

from bridge.core.retained.queues import Queue, QueueTable
from bridge.core.retained.shelf import Shelf


class Shortage(Enum):
    QUEUE = auto()  # its quota would be exceeded: status 1
    MACHINE = auto()  # that of the queue manager: status 2


class Quotas:
    def __init__(self, shelf: Shelf, queues: QueueTable, machine_kb: int | None = None) -> None:
        self._shelf, self._queues = shelf, queues
        self.machine_kb = machine_kb
        self._reserved: dict[str, int] = {}

    def shortage(self, name: str, size: int) -> Shortage | None:
        """Why an arrival does not fit. The machine is asked first. MS-MQDMPR 3.1.7.1.9"""
        held = self._shelf.total().bytes + sum(self._reserved.values())
        if self.machine_kb is not None and held + size > self.machine_kb * 1024:
            return Shortage.MACHINE
        queue = self._queues.get(name)
        if queue is not None and not self._fits(queue, size):
            return Shortage.QUEUE
        return None

    def held(self, name: str) -> int:
        """Bytes that lie in a queue, or are on their way to it."""
        return self._shelf.totals(name).bytes + self._reserved.get(name, 0)

    def reserve(self, name: str, size: int) -> None:
        self._reserved[name] = self._reserved.get(name, 0) + size

    def reserve_copy(self, name: str, size: int) -> bool:
        """For a journal or dead-letter copy, which takes the place of its message. DM-30"""
        queue = self._queues.get(name)
        if queue is None or not self._fits(queue, size):
            return False
        self.reserve(name, size)
        return True

    def release(self, name: str, size: int) -> None:
        left = self._reserved[name] - size
        if left:
            self._reserved[name] = left
        else:
            del self._reserved[name]

    def _fits(self, queue: Queue, size: int) -> bool:
        """What lies in its subqueues counts: a move frees nothing."""
        if queue.quota is None:
            return True
        held = sum(self._shelf.totals(name).bytes for name in (queue.name, *queue.subqueues))
        return held + self._reserved.get(queue.name, 0) + size <= queue.quota
