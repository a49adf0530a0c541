"""How much a queue, and the whole machine, may hold. MS-MQDMPR 3.1.7.1.9

What is on its way is counted, too: a message is reserved when it is decided on and released when
it is on the shelf, or never will be.

Copies in journals and dead-letter queues stay until they are read, purged, or deleted by Kafka's
retention. They take at most half of the machine's quota, so that they cannot end the arrivals for
good; one that does not fit is not made (MS-MQDMPR 3.1.1.12; docs/decisions.md, Q1).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from bridge.core.retained.naming import is_system
from bridge.core.retained.queues import Queue, QueueTable
from bridge.core.retained.shelf import Shelf

COPIES_PART: Final = 2  # copies take at most one part in so many of the machine's quota


class Shortage(Enum):
    QUEUE = auto()  # its quota would be exceeded: status 1
    MACHINE = auto()  # that of the queue manager: status 2


class Quotas:
    def __init__(self, shelf: Shelf, queues: QueueTable, machine_kb: int | None = None) -> None:
        self._shelf, self._queues = shelf, queues
        self.machine_kb = machine_kb
        self._reserved: dict[str, int] = {}
        self._messages_coming = self._copies_coming = 0  # bytes of all that is reserved
        self.copies_left_out = 0  # for lack of room, since the start

    def shortage(self, name: str, size: int) -> Shortage | None:
        """Why an arrival does not fit. The machine is asked first. MS-MQDMPR 3.1.7.1.9

        Copies above their part, which an earlier build made, do not count."""
        if self.machine_kb is not None:
            most = self.machine_kb * 1024
            copies = min(self.copies(), most // COPIES_PART)
            if self._messages() + copies + size > most:
                return Shortage.MACHINE
        queue = self._queues.get(name)
        if queue is not None and not self._fits(queue, size):
            return Shortage.QUEUE
        return None

    def copies(self) -> int:
        """Bytes of journals and dead letters, those on their way included."""
        return self._shelf.copies().bytes + self._copies_coming

    def _messages(self) -> int:
        return self._shelf.total().bytes - self._shelf.copies().bytes + self._messages_coming

    def held(self, name: str) -> int:
        """Bytes that lie in a queue, or are on their way to it."""
        return self._shelf.totals(name).bytes + self._reserved.get(name, 0)

    def reserve(self, name: str, size: int) -> None:
        self._reserved[name] = self._reserved.get(name, 0) + size
        self._expect(name, size)

    def reserve_copy(self, name: str, size: int, freed: int = 0) -> bool:
        """For a journal or dead-letter copy; `freed` is the size of the message that leaves with
        it. False: it does not fit, and is not made."""
        queue = self._queues.get(name)
        fits = queue is None or self._fits(queue, size)  # one that is just made has no quota yet
        if not fits or not self._has_room(size, freed):
            self.copies_left_out += 1
            return False
        self.reserve(name, size)
        return True

    def _has_room(self, size: int, freed: int) -> bool:
        if self.machine_kb is None:
            return True
        most, copies = self.machine_kb * 1024, self.copies() + size
        return copies <= most // COPIES_PART and self._messages() + copies - freed <= most

    def release(self, name: str, size: int) -> None:
        self._expect(name, -size)
        left = self._reserved[name] - size
        if left:
            self._reserved[name] = left
        else:
            del self._reserved[name]

    def _expect(self, name: str, size: int) -> None:
        if is_system(name):
            self._copies_coming += size
        else:
            self._messages_coming += size

    def _fits(self, queue: Queue, size: int) -> bool:
        """What lies in its subqueues counts: a move frees nothing."""
        if queue.quota is None:
            return True
        held = sum(self._shelf.totals(name).bytes for name in (queue.name, *queue.subqueues))
        return held + self._reserved.get(queue.name, 0) + size <= queue.quota
