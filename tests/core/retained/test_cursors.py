"""The table of remote-read.md 2.5, which is MS-MQDMPR 3.2.7 without its defects."""

import pytest

from bridge.core.retained.cursors import Cursor, CursorState
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.place import START
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


def ended(*read: int) -> Cursor:
    """One that has received these, and then waited in vain."""
    cursor = Cursor()
    for number in read:
        assert cursor.receive(Line(number)) == row(number)
    cursor.wait(destructive=True)
    cursor.waited_in_vain()
    return cursor


@pytest.mark.parametrize("read", [(), (1,), (1, 2)])
def test_a_receive_that_waited_in_vain_is_at_the_end(read: tuple[int, ...]) -> None:
    """MS-MQDMPR 3.2.7.6: WaitReceive -> "MessagePositionList.End", Unread. 3.1.1.2: End is
    "referenced by cursors that have advanced past the Tail": what is enqueued then is behind it."""
    cursor = ended(*read)
    assert (cursor.is_at_end, cursor.state) == (True, CursorState.UNREAD)
    assert cursor.receive(Line()) is None
    assert refusal(cursor.peek_next, Line(3)) == 0xC00E001C
    assert cursor.receive(Line(3)) == row(3)
    assert not cursor.is_at_end


def test_a_peek_after_it_finds_what_came_later() -> None:
    cursor = ended(1)
    assert cursor.peek(Line(2)) == row(2)
    assert cursor.receive(Line(2)) == row(2)


def test_a_higher_priority_that_comes_later_is_behind_the_end() -> None:
    urgent = row(9, priority=7)
    assert urgent.lookup_id < row(1).lookup_id
    cursor = ended(1)
    cursor.became_available(urgent)
    cursor.became_available(row(10))
    assert cursor.place == urgent.lookup_id - 1
    line = Line(10)
    line._rows[urgent.lookup_id] = urgent
    assert cursor.receive(line) == urgent
    cursor.became_available(row(11, priority=7))  # it is not at the end any more
    assert cursor.receive(line) == row(10)


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
