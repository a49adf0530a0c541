"""Retained queues on a shelf in memory, with a clock and a Kafka that the test plays."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest

from bridge.core.retained.effects import Change, Command, Commit, Delivered, Ended, Removal
from bridge.core.retained.errors import Refused
from bridge.core.retained.place import lookup_id
from bridge.core.retained.queues import Access, Share, Traits
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.core.retained.rows import RecordAt, Row
from bridge.core.retained.shelf import MemoryShelf, Shelf
from bridge.model.guid import Guid
from bridge.protocol.events import Instant

SENDER = Guid.parse("11111111-2222-3333-4444-555555555555")
NOW = 1_700_000_000  # Unix seconds
PLAIN = "private$\\plain"
ORDERS = "private$\\orders"  # transactional
RETRY = "private$\\orders;retry"
UOW = bytes(range(16))


def row(number: int = 1, queue: str = PLAIN, priority: int = 3, **fields: Any) -> Row:
    """Its SequentialID, record and ordinal are all `number`."""
    known: dict[str, Any] = {
        "queue": queue,
        "lookup_id": lookup_id(priority, number, transactional=queue.startswith(ORDERS)),
        "at": RecordAt("data", 0, number),
        "source": SENDER,
        "ordinal": number,
        "size": 100,
        "arrived_ms": NOW * 1000,
    }
    return Row(**known | fields)


def copy_row(removal: Removal, at: RecordAt) -> Row:
    """Of the copy that a removal leaves, once its record is committed: it owes nobody anything."""
    copy, original = removal.copy, removal.row
    assert copy is not None
    return Row(
        queue=copy.queue,
        lookup_id=copy.lookup_id,
        at=at,
        source=original.source,
        ordinal=original.ordinal,
        size=original.size,
        arrived_ms=copy.arrived_ms,
    )


@contextmanager
def refused(status: int) -> Iterator[None]:
    with pytest.raises(Refused) as error:
        yield
    assert error.value.status == status, error.value


class World:
    def __init__(self, shelf: Shelf | None = None, **settings: Any) -> None:
        self.shelf: Shelf = MemoryShelf() if shelf is None else shelf
        self.mono = 0.0
        self.numbers = count(1)
        self.ids = count(1_000_000)
        self.settings = settings
        self.restart()

    def restart(self) -> None:
        """All that is only in memory is lost."""
        self.queues = RetainedQueues(self.shelf, self.ids.__next__, **self.settings)
        self.queues.define(PLAIN, Traits())
        self.queues.define(ORDERS, Traits(transactional=True))
        self.tags = count(1)
        self.told: list[Delivered | Ended] = []
        self.commits: list[Commit] = []

    @property
    def now(self) -> Instant:
        return Instant(self.mono, NOW + self.mono)

    def do(self, commands: list[Command]) -> list[Command]:
        for command in commands:
            if isinstance(command, Commit):
                self.commits.append(command)
            else:
                self.told.append(command)
        return commands

    # -- messages ---------------------------------------------------------------------------

    def put(self, queue: str = PLAIN, priority: int = 3, **fields: Any) -> Row:
        """One that arrives now."""
        made = row(next(self.numbers), queue, priority, **fields)
        self.do(self.queues.arrive([made], self.now))
        return made

    def seen(self, queue: str = PLAIN) -> list[int]:
        """The ordinals that a reader would see one after the other."""
        handle = self.queues.handles.open(queue, Access.PEEK)
        cursor = self.queues.handles.open_cursor(handle)
        found = [row.ordinal for row in self.browse(handle, cursor)]
        self.queues.answering.close(handle, self.now)
        return found

    def browse(self, handle: int, cursor: int) -> list[Row]:
        reading, found = self.queues.reading, list[Row]()
        read: Any = reading.peek
        with suppress(Refused):  # there is no next one
            while True:
                (answer,) = read(handle, 0, self.now, cursor=cursor)
                found.append(answer.row)
                read = reading.peek_next
        return found

    # -- readers ----------------------------------------------------------------------------

    def open(self, queue: str = PLAIN, access: Access = Access.RECEIVE) -> int:
        return self.queues.handles.open(queue, access, Share.DENY_NONE)

    def receive(self, handle: int, **how: Any) -> tuple[int, Row]:
        """The tag and what came at once."""
        tag = next(self.tags)
        (answer,) = self.queues.reading.receive(handle, tag, self.now, **how)
        assert isinstance(answer, Delivered)
        assert (answer.handle, answer.tag) == (handle, tag)
        return tag, answer.row

    def wait(self, handle: int, *, peek: bool = False, wait_s: float | None = None) -> int:
        """The tag of a read that waits."""
        tag, reading = next(self.tags), self.queues.reading
        read = reading.peek if peek else reading.receive
        assert read(handle, tag, self.now, wait_s=wait_s) == []
        return tag

    def end(self, handle: int, tag: int, *, delete: bool = True) -> list[Command]:
        return self.do(self.queues.answering.end(handle, tag, self.now, delete=delete))

    def told_now(self) -> list[Delivered | Ended]:
        told, self.told = self.told, []
        return told

    # -- Kafka ------------------------------------------------------------------------------

    def settle(self) -> list[Removal | Change]:
        """Kafka takes all that is under way, and its copies arrive; its effects."""
        effects: list[Removal | Change] = []
        while self.commits:
            commit = self.commits.pop(0)
            self.do(self.queues.settle(commit.ticket, self.now))
            copies = [
                copy_row(effect, RecordAt("copies", 0, next(self.numbers)))
                for effect in commit.effects
                if isinstance(effect, Removal) and effect.copy is not None
            ]
            self.do(self.queues.arrive(copies, self.now))
            effects += commit.effects
        return effects

    def restore(self) -> None:
        """Kafka takes nothing of it."""
        commits, self.commits = self.commits, []
        for commit in commits:
            self.do(self.queues.restore(commit.ticket, self.now))

    def reasons(self) -> list[tuple[int, int]]:
        """Ordinal and class of what is under way, now settled."""
        return [(e.row.ordinal, e.reason) for e in self.settle() if isinstance(e, Removal)]

    # -- time -------------------------------------------------------------------------------

    def tick(self, seconds: float = 0.0) -> None:
        self.mono += seconds
        self.do(self.queues.tick(self.now))
