"""The queues of this queue manager, found under every name a sender may use (DM-33)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from bridge.core.access import AccessList
from bridge.core.mapping_rules import QueueMapping
from bridge.model.errors import IllegalName
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.names import Direct, Private, parse_format_name

_CACHE: Final = 10_000  # names come from outside: bounded
_CLOSED: Final = ("private$\\order_queue$", "private$\\notify_queue$")  # to applications (DM-14)


class Queue(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A mapped queue and what is known of its topic."""

    mapping: QueueMapping
    name: str  # path name on this queue manager
    topic: str
    partitions: int = 1
    max_bytes: int = 5 << 20
    access: AccessList | None = None  # None: everybody may send
    journal: str = ""  # topic of the target journal
    journal_partitions: int = 1


def private_number(name: str) -> int:
    """The number by which a private queue is addressed: h = 33h + c over its name. T-25"""
    number = 0
    for char in name.lower():
        number = (33 * number + ord(char)) & 0xFFFFFFFF
    return number


class Catalogue:
    def __init__(self, local: Guid, queues: Iterable[Queue]) -> None:
        self.local = local
        self.queues = tuple(queues)
        self._by_name = {
            name: queue for queue in self.queues if (name := queue.name.lower()) not in _CLOSED
        }
        self._by_number = {
            private_number(name.removeprefix("private$\\")): queue
            for name, queue in reversed(self._by_name.items())  # the first of two keeps its number
            if name.startswith("private$\\")
        }
        self._cache: dict[str, Queue | None] = {}

    def is_local(self, queue_manager: Guid) -> bool:
        """Zero is local: direct names carry no GUID (CONFLICT-3)."""
        return queue_manager in (NULL_GUID, self.local)

    def find(self, destination: str) -> Queue | None:
        """The queue behind a destination as a sender wrote it.

        The host in a direct name is not judged: MS-MQQB 3.1.5.8.2 takes a packet as local by its
        QueueManagerAddress, and the sender's name service led it here.
        """
        try:
            return self._cache[destination]
        except KeyError:
            pass
        if len(self._cache) >= _CACHE:
            self._cache.clear()
        queue = self._cache[destination] = self._look_up(destination)
        return queue

    def _look_up(self, destination: str) -> Queue | None:
        try:
            name = parse_format_name(destination)
        except IllegalName:
            return None
        if not name.sendable:  # journals, dead-letter and subqueues take no sends (DM-14)
            return None
        if isinstance(name, Direct):
            path = f"private$\\{name.queue}" if name.private else name.queue
            return self._by_name.get(path.lower())
        if isinstance(name, Private) and self.is_local(name.guid):
            return self._by_number.get(name.number)
        return None
