"""A cursor: an iterator over a queue that outlives what comes and goes in it. MS-MQDMPR 3.2

It remembers a place, not a message, so arrivals and removals do not disturb it (DM-24). What is
inserted before its place is not visited, unless the cursor waits: then whatever becomes available
next is its message, wherever it is (MS-MQDMPR 3.2.7.5).

A receive that waited in vain leaves it at End (MS-MQDMPR 3.2.7.6), "referenced by cursors that have
advanced past the Tail" (3.1.1.2). The text has no Next of End (3.1.7.3.2); here it is whatever
becomes available later, wherever it is (docs/decisions.md, Q2).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.place import START
from bridge.core.retained.rows import Row


class Readable(Protocol):
    """The available messages of a queue, at one moment."""

    def at(self, place: int) -> Row | None: ...

    def after(self, place: int) -> Row | None: ...


class CursorState(Enum):
    UNREAD = auto()
    READ = auto()
    WAIT_PEEK = auto()
    WAIT_RECEIVE = auto()


class Cursor:
    def __init__(self) -> None:
        self.place = START
        self.state = CursorState.UNREAD
        self._before = CursorState.UNREAD
        self.is_at_end = False

    def peek(self, queue: Readable) -> Row | None:
        """None: wait. MS-MQDMPR 3.2.7.2"""
        if self._has_read():
            return self._same(queue)
        return self._read(queue.after(self.place))

    def peek_next(self, queue: Readable) -> Row | None:
        """None: wait. MS-MQDMPR 3.2.7.3"""
        if not self._has_read():
            raise Refused(Status.ILLEGAL_CURSOR_ACTION, "it has not read a message yet")
        return self._read(queue.after(self.place))

    def receive(self, queue: Readable) -> Row | None:
        """None: wait. MS-MQDMPR 3.2.7.4"""
        row = self._same(queue) if self._has_read() else queue.after(self.place)
        if row is not None:
            self._move(row, CursorState.UNREAD)
        return row

    def wait(self, *, destructive: bool) -> None:
        self._before = self.state
        self.state = CursorState.WAIT_RECEIVE if destructive else CursorState.WAIT_PEEK

    def arrived(self, row: Row) -> None:
        """The message that it waited for. MS-MQDMPR 3.2.7.5"""
        is_peek = self.state is CursorState.WAIT_PEEK
        self._move(row, CursorState.READ if is_peek else CursorState.UNREAD)

    def waited_in_vain(self) -> None:
        """MS-MQDMPR 3.2.7.6; after a peek the state is as it was before.

        Nothing is available behind its place now, so the place stands for End."""
        if self.state is CursorState.WAIT_RECEIVE:
            self.is_at_end, self.state = True, CursorState.UNREAD
        elif self.state is CursorState.WAIT_PEEK:
            self.state = self._before

    def became_available(self, row: Row) -> None:
        """While it is at End: what comes is behind it, even with a higher priority."""
        if self.is_at_end:
            self.place = min(self.place, row.lookup_id - 1)

    def _move(self, row: Row, state: CursorState) -> None:
        self.place, self.state, self.is_at_end = row.lookup_id, state, False

    def _has_read(self) -> bool:
        if self.state in (CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE):
            raise Refused(Status.ILLEGAL_CURSOR_ACTION, "another read waits on it")
        return self.state is CursorState.READ

    def _same(self, queue: Readable) -> Row:
        row = queue.at(self.place)
        if row is None:
            raise Refused(Status.MESSAGE_ALREADY_RECEIVED)
        return row

    def _read(self, row: Row | None) -> Row | None:
        if row is not None:
            self._move(row, CursorState.READ)
        return row
