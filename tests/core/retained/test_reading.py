from typing import Any

import pytest

from bridge.core.retained.effects import Delivered, Ended
from bridge.core.retained.queues import Access
from bridge.core.retained.reading import Seek
from tests.core.retained.world import ORDERS, PLAIN, UOW, World, refused


def lookup(world: World, handle: int, seek: Seek, number: int = 0, *, take: bool = False) -> int:
    """The ordinal that was found."""
    reading = world.queues.reading
    read = reading.receive_at if take else reading.peek_at
    (answer,) = read(handle, next(world.tags), world.now, seek, number)
    assert isinstance(answer, Delivered)
    return answer.row.ordinal


def test_highest_priority_first_then_arrival() -> None:
    """DM-20: order as in 2.6: priority 7 first, then arrival."""
    world, reader = World(), 0
    for priority in (3, 7, 0, 3, 7):
        world.put(priority=priority)
    reader = world.open()
    assert [world.receive(reader)[1].ordinal for _ in range(5)] == [2, 5, 1, 4, 3]


def test_nothing_there_and_no_time() -> None:
    """2.7: nothing and no time left -> IO_TIMEOUT 0xC00E001B (cursor, time-out 0:
    MESSAGE_NOT_FOUND 0xC00E0088)."""
    world = World()
    handle = world.open()
    cursor = world.queues.handles.open_cursor(handle)
    reading = world.queues.reading
    with refused(0xC00E001B):
        reading.receive(handle, 1, world.now)
    with refused(0xC00E001B):
        reading.peek(handle, 1, world.now)
    with refused(0xC00E001B):
        reading.peek(handle, 1, world.now, cursor=cursor)
    with refused(0xC00E0088):
        reading.receive(handle, 1, world.now, cursor=cursor)


def test_locked_messages_are_invisible_and_keep_their_place() -> None:
    """DM-21: Locked messages are invisible, keep their place, return to it. RR-20, RR-24"""
    world = World()
    rows = [world.put() for _ in range(3)]
    one, other = world.open(), world.open()
    tag, first = world.receive(one)
    assert first == rows[0]
    assert world.seen() == [2, 3]
    _, second = world.receive(other)
    assert second == rows[1]
    world.end(one, tag, delete=False)
    assert world.seen() == [1, 3]
    assert world.receive(other)[1] == rows[0]  # same lookup id, same arrival time


def test_first_available_from_the_front() -> None:
    """T-2: start at Head. T-3: use the result of the seek."""
    world = World()
    for _ in range(300):
        world.put()
    handle = world.open()
    tags = [world.receive(handle)[0] for _ in range(280)]
    assert world.receive(handle)[1].ordinal == 281
    world.end(handle, tags[100], delete=False)
    assert world.receive(handle)[1].ordinal == 101


def test_a_reader_who_may_only_peek() -> None:
    """RR 2.1 opnum 7, step 4: RECEIVE-type on a PEEK handle -> C00E0025."""
    world = World()
    one = world.put()
    handle = world.open(access=Access.PEEK)
    reading = world.queues.reading
    with refused(0xC00E0025):
        reading.receive(handle, 1, world.now)
    with refused(0xC00E0025):
        reading.receive_at(handle, 1, world.now, Seek.CURRENT, one.lookup_id)
    assert reading.peek(handle, 1, world.now) == [Delivered(handle, 1, one)]


def test_a_tag_names_one_read_of_a_handle() -> None:
    """RR 2.1 opnum 7, step 1: dwRequestId already pending on this handle -> C00E0006. RR-19"""
    world = World()
    one, other = world.open(), world.open()
    reading = world.queues.reading
    reading.receive(one, 7, world.now, wait_s=None)
    with refused(0xC00E0006):
        reading.peek(one, 7, world.now)
    reading.receive(other, 7, world.now, wait_s=None)
    world.put()
    assert [t.handle for t in world.told] == [one]
    with refused(0xC00E0006):  # delivered, not ended
        reading.receive(one, 7, world.now)


def test_a_transaction_needs_a_transactional_queue_and_must_exist() -> None:
    """remote-read.md 2.4, op 13: queue not transactional -> C00E0050; unknown UOW -> C00E0051."""
    world = World()
    with refused(0xC00E0050):
        world.receive(world.open(PLAIN), transaction=UOW)
    with refused(0xC00E0051):
        world.receive(world.open(ORDERS), transaction=UOW)


def test_reads_without_a_transaction_on_a_transactional_queue() -> None:
    """RR-35: reads on transactional queues without UOW are legal and final at ACK."""
    world = World()
    world.put(ORDERS)
    handle = world.open(ORDERS)
    tag, _ = world.receive(handle)
    world.end(handle, tag)
    assert world.reasons() == [(1, 0x4000)]
    assert world.seen(ORDERS) == []


# -- waiting --------------------------------------------------------------------------------


def test_peekers_before_the_first_receiver() -> None:
    """DM-23: one destructive waiter per arrival, FIFO; peekers before it."""
    world = World()
    handles = [world.open() for _ in range(5)]
    tags = [world.wait(h, peek=n in (0, 2, 4)) for n, h in enumerate(handles)]
    one = world.put()
    assert world.told_now() == [
        Delivered(handles[0], tags[0], one),
        Delivered(handles[1], tags[1], one),
    ]
    two = world.put()
    assert world.told_now() == [
        Delivered(handles[2], tags[2], two),
        Delivered(handles[3], tags[3], two),
    ]
    three = world.put()
    assert world.told_now() == [Delivered(handles[4], tags[4], three)]
    assert world.seen() == [3]


def test_blocked_and_arrival() -> None:
    """remote-read.md 6.5: two waiting receives on one handle; one arrival completes the first
    only; release by NACK completes the second with the same message."""
    world = World()
    handle = world.open()
    first, second = world.wait(handle), world.wait(handle)
    one = world.put()
    assert world.told_now() == [Delivered(handle, first, one)]
    world.end(handle, first, delete=False)
    assert world.told_now() == [Delivered(handle, second, one)]


def test_waiting_for_a_time() -> None:
    """remote-read.md 2.5: result at expiry C00E001B."""
    world = World()
    handle = world.open()
    short, long = world.wait(handle, wait_s=5.0), world.wait(handle, wait_s=9.0)
    assert world.queues.next_wakeup(world.now) == 5.0
    world.tick(4.9)
    assert world.told == []
    world.tick(0.1)
    assert world.told_now() == [Ended(handle, short, 0xC00E001B)]  # type: ignore[arg-type]
    one = world.put()
    assert world.told_now() == [Delivered(handle, long, one)]
    world.tick(99)
    assert world.told == []


def test_each_queue_has_its_own_waiters() -> None:
    world = World()
    world.wait(world.open(ORDERS))
    world.put(PLAIN)
    assert world.told == []


# -- by lookup id ---------------------------------------------------------------------------


def test_by_lookup_id() -> None:
    """remote-read.md 6.7"""
    world = World()
    first, second = world.put(), world.put()
    handle = world.open()
    assert lookup(world, handle, Seek.CURRENT, second.lookup_id) == 2
    assert lookup(world, handle, Seek.PREVIOUS, second.lookup_id) == 1
    with refused(0xC00E0088):
        lookup(world, handle, Seek.PREVIOUS, first.lookup_id)
    assert lookup(world, handle, Seek.NEXT, first.lookup_id, take=True) == 2
    assert world.seen() == [1]


@pytest.mark.parametrize("guess", [0x00, 0x04, 0x07, 0xFF])
def test_only_the_low_56_bits_count(guess: int) -> None:
    """data-model.md 2.6: match ids on the low 56 bits."""
    world = World()
    world.put(priority=5)
    number = guess << 56 | 1
    assert lookup(world, world.open(), Seek.CURRENT, number) == 1


def test_unknown_ids_are_no_anchor() -> None:
    """remote-read.md 2.5: NEXT/PREV: anchor unknown -> C00E0088."""
    world = World()
    world.put()
    handle = world.open()
    for seek in (Seek.CURRENT, Seek.NEXT, Seek.PREVIOUS):
        with refused(0xC00E0088):
            lookup(world, handle, seek, 99)


def test_a_locked_one_is_an_anchor() -> None:
    """remote-read.md 2.5: a locked anchor is a valid anchor; peek of Locked -> C00E0050."""
    world = World()
    rows = [world.put() for _ in range(4)]
    handle = world.open()
    number = rows[1].lookup_id
    lookup(world, handle, Seek.CURRENT, number, take=True)
    assert lookup(world, handle, Seek.NEXT, number) == 3
    assert lookup(world, handle, Seek.PREVIOUS, number) == 1
    with refused(0xC00E0050):
        lookup(world, handle, Seek.CURRENT, number)
    with refused(0xC00E0088):
        lookup(world, handle, Seek.CURRENT, number, take=True)


def test_first_and_last_ask_for_no_id() -> None:
    """T-4: First/Last: no lookup; 0xC00E0088 instead of End with OK."""
    world = World()
    handle = world.open()
    for seek in (Seek.FIRST, Seek.LAST):
        with refused(0xC00E0088):
            lookup(world, handle, seek)
    for _ in range(4):
        world.put()
    assert lookup(world, handle, Seek.FIRST) == 1
    assert lookup(world, handle, Seek.LAST) == 4
    world.receive(handle)
    lookup(world, handle, Seek.LAST, take=True)
    assert lookup(world, handle, Seek.FIRST) == 2
    assert lookup(world, handle, Seek.LAST) == 3
    with refused(0xC00E0088):
        lookup(world, handle, Seek.PREVIOUS, 2)


# -- with a cursor --------------------------------------------------------------------------


def test_the_call_sequence_of_a_cursor() -> None:
    """remote-read.md 6.6"""
    world = World()
    rows = [world.put() for _ in range(3)]
    handle, other = world.open(), world.open()
    cursor = world.queues.handles.open_cursor(handle)
    reading, now = world.queues.reading, world.now

    def read(how: Any, **more: Any) -> int:
        (answer,) = how(handle, next(world.tags), now, cursor=cursor, **more)
        return int(answer.row.ordinal)

    with refused(0xC00E001C):
        read(reading.peek_next)
    assert read(reading.peek) == 1
    assert read(reading.peek_next) == 2
    reading.receive_at(other, 1, now, Seek.CURRENT, rows[1].lookup_id)
    world.end(other, 1)
    world.settle()
    with refused(0xC00E001D):
        read(reading.peek)
    assert read(reading.peek_next) == 3
    with refused(0xC00E001B):
        read(reading.peek_next)
    assert read(reading.receive) == 3
    world.queues.answering.close_cursor(handle, cursor)
    with refused(0xC0000008):
        read(reading.peek)


def test_a_cursor_belongs_to_its_handle() -> None:
    """RR 2.1: a cursor is found only under the handle that made it."""
    world = World()
    cursor = world.queues.handles.open_cursor(world.open())
    with refused(0xC0000008):
        world.queues.reading.peek(world.open(), 1, world.now, cursor=cursor)


def test_no_next_one_without_a_cursor() -> None:
    """MP-77"""
    world = World()
    world.put()
    with refused(0xC00E001C):
        world.queues.reading.peek_next(world.open(), 1, world.now, cursor=0)


def test_a_waiting_cursor_takes_what_becomes_available() -> None:
    """DM-24; 2.8: arrival: WaitPeek -> Read, WaitReceive -> Unread, at it."""
    world = World()
    world.put(priority=3)
    handle = world.open()
    cursor = world.queues.handles.open_cursor(handle)
    reading = world.queues.reading
    reading.peek(handle, 1, world.now, cursor=cursor)
    assert reading.peek_next(handle, 2, world.now, cursor=cursor, wait_s=None) == []
    urgent = world.put(priority=7)
    assert world.told_now() == [Delivered(handle, 2, urgent)]
    assert reading.peek(handle, 3, world.now, cursor=cursor) == [Delivered(handle, 3, urgent)]


def test_a_receive_with_a_cursor_that_waited_in_vain() -> None:
    """MS-MQDMPR 3.2.7.6: Unread at End; what arrives later is behind it."""
    world = World()
    handle = world.open()
    cursor = world.queues.handles.open_cursor(handle)
    reading = world.queues.reading
    reading.receive(handle, 1, world.now, cursor=cursor, wait_s=1.0)
    world.tick(1.0)
    world.told_now()
    with refused(0xC00E0088):
        reading.receive(handle, 2, world.now, cursor=cursor)
    one = world.put()
    assert reading.receive(handle, 2, world.now, cursor=cursor) == [Delivered(handle, 2, one)]
    reading.receive(handle, 3, world.now, cursor=cursor, wait_s=None)
    two = world.put()
    assert world.told_now() == [Delivered(handle, 3, two)]
