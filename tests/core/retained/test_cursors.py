"""The table of remote-read.md 2.5, which is MS-MQDMPR 3.2.7 without its defects."""

import pytest

from bridge.core.retained.cursors import Cursor, CursorState
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.place import END, START
from bridge.core.retained.rows import Row
from tests.core.retained.world import row


class Line:
    """A queue with these messages available."""

    def __init__(self, *numbers: int) -> None:
        self._rows = {r.lookup_id: r for r in map(row, numbers)}

    def at(self, place: int) -> Row | None:
        return self._rows.get(place)

    def after(self, place: int) -> Row | None:
        return next((self._rows[p] for p in sorted(self._rows) if p > place), None)


def refusal(read: object, *args: object) -> Status:
    with pytest.raises(Refused) as error:
        read(*args)  # type: ignore[operator]
    return error.value.status


def test_opens_at_start_unread() -> None:
    """2.8: opens at Start, Unread."""
    cursor = Cursor()
    assert (cursor.place, cursor.state) == (START, CursorState.UNREAD)


def test_peek_then_next_and_next() -> None:
    cursor, line = Cursor(), Line(1, 2, 3)
    assert cursor.peek(line) == row(1)
    assert cursor.peek(line) == row(1)  # Read -> same message
    assert cursor.peek_next(line) == row(2)
    assert cursor.peek_next(line) == row(3)
    assert cursor.peek_next(line) is None


def test_no_next_one_before_the_first() -> None:
    """PeekNext: Unread -> ILLEGAL_CURSOR_ACTION 0xC00E001C."""
    assert refusal(Cursor().peek_next, Line(1)) == 0xC00E001C


def test_a_removed_message_reads_as_already_received() -> None:
    """DM-24: a cursor outlives arrivals and deletions; a removed message reads as
    ALREADY_RECEIVED."""
    cursor = Cursor()
    cursor.peek(Line(1, 2))
    assert refusal(cursor.peek, Line(2)) == 0xC00E001D
    assert refusal(cursor.receive, Line(2)) == 0xC00E001D
    assert cursor.peek_next(Line(2)) == row(2)


def test_what_comes_before_it_is_not_visited() -> None:
    cursor = Cursor()
    cursor.peek(Line(2))
    assert cursor.peek_next(Line(1, 2, 3)) == row(3)


def test_receive_takes_what_was_peeked() -> None:
    """Receive: Read -> take if Available, becomes Unread."""
    cursor = Cursor()
    cursor.peek(Line(1, 2, 3))
    assert cursor.receive(Line(1, 2, 3)) == row(1)
    assert cursor.state is CursorState.UNREAD
    assert cursor.peek(Line(2, 3)) == row(2)  # after the consumed slot


def test_receive_without_a_peek_goes_on() -> None:
    cursor = Cursor()
    assert cursor.receive(Line(1, 2)) == row(1)
    assert cursor.receive(Line(1, 2)) == row(2)  # even if the first one went back
    assert cursor.receive(Line(1, 2)) is None


def test_arrival_ends_a_wait_where_the_message_is() -> None:
    """2.8: Arrival: WaitPeek -> Read, WaitReceive -> Unread, at it."""
    peeking, receiving = Cursor(), Cursor()
    for cursor in (peeking, receiving):
        cursor.peek(Line(5))
        cursor.wait(destructive=cursor is receiving)
        cursor.arrived(row(2))
    assert (peeking.place, peeking.state) == (row(2).lookup_id, CursorState.READ)
    assert (receiving.place, receiving.state) == (row(2).lookup_id, CursorState.UNREAD)


def test_a_receive_that_waited_in_vain_is_at_the_end() -> None:
    """2.8: Time-out: WaitReceive -> End, Unread."""
    cursor = Cursor()
    cursor.wait(destructive=True)
    cursor.waited_in_vain()
    assert (cursor.place, cursor.state) == (END, CursorState.UNREAD)
    assert cursor.peek(Line(1)) is None


@pytest.mark.parametrize("reads", [0, 1])
def test_a_peek_that_waited_in_vain_changes_nothing(reads: int) -> None:
    """T-24: WaitPeek survives time-out -> restore state."""
    cursor = Cursor()
    for _ in range(reads):
        cursor.peek(Line(1))
    before = cursor.place, cursor.state
    cursor.wait(destructive=False)
    cursor.waited_in_vain()
    assert (cursor.place, cursor.state) == before


def test_one_wait_at_a_time() -> None:
    cursor = Cursor()
    cursor.wait(destructive=False)
    for read in (cursor.peek, cursor.peek_next, cursor.receive):
        assert refusal(read, Line(1)) == Status.ILLEGAL_CURSOR_ACTION
