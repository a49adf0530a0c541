import pytest

from bridge.core.retained.effects import Delivered, Ended
from bridge.core.retained.errors import Status
from bridge.core.retained.queues import Access, Descriptor, QueueTable, Read, Share, Traits
from bridge.core.retained.serving import Service
from bridge.core.retained.shelf import MemoryShelf
from bridge.core.retained.stock import Stock
from bridge.protocol.events import Instant
from tests.core.retained.world import PLAIN, World, row

NOW = Instant(0.0, 0.0)


def service(*numbers: int) -> tuple[Service, Stock, Descriptor]:
    table, stock = QueueTable(), Stock(MemoryShelf(map(row, numbers)))
    table.define(PLAIN, Traits())
    queue = table.find(PLAIN)
    return Service(stock, table, 300.0), stock, Descriptor(20, queue, Access.RECEIVE, Share(0))


def test_a_peek_locks_nothing() -> None:
    made, stock, descriptor = service(1)
    read = Read(descriptor, 1, is_receive=False)
    assert made.hand_out(read, row(1), NOW) == Delivered(20, 1, row(1))
    assert stock.locks == {}
    assert made.deadlines.next_wakeup() is None


def test_a_receive_locks_and_starts_its_time() -> None:
    """D-3: the cleanup timer starts at delivery, not before the wait."""
    made, stock, descriptor = service()
    made.wait(Read(descriptor, 1, is_receive=True), NOW, 1000.0)
    assert made.deadlines.next_wakeup() == 1000.0
    later = Instant(500.0, 0.0)
    assert made.available(row(1), later) == [Delivered(20, 1, row(1))]
    assert list(stock.locks) == [row(1).lookup_id]
    assert made.deadlines.next_wakeup() == 800.0


def test_nobody_waits() -> None:
    made, stock, _ = service(1)
    assert made.available(row(1), NOW) == []
    assert made.available(row(2, "private$\\unknown"), NOW) == []
    assert stock.locks == {}


def test_a_wait_that_ends_leaves_nothing() -> None:
    """RR-21: Start result != 0 leaves no entry, no lock."""
    made, _, descriptor = service()
    read = Read(descriptor, 1, is_receive=True)
    made.wait(read, NOW, 5.0)
    assert made.end_wait(read, Status.IO_TIMEOUT) == Ended(20, 1, Status.IO_TIMEOUT)
    assert descriptor.waits == {}
    assert not descriptor.live_queue.waiting
    assert made.deadlines.next_wakeup() is None


def test_many_waiters_are_served_one_by_one() -> None:
    made, _, descriptor = service()
    for tag in range(1000):
        made.wait(Read(descriptor, tag, is_receive=True), NOW, None)
    for number in range(1000):
        assert made.available(row(number + 1), NOW) == [Delivered(20, number, row(number + 1))]


@pytest.mark.parametrize("priority", [0, 3, 7])
def test_a_cursor_whose_receive_timed_out_finds_what_arrives_later(priority: int) -> None:
    """MS-MQDMPR 3.2.7.6 leaves it at End, "past the Tail" (3.1.1.2); 3.1.7.3.2 seeks on from
    there. Whatever its priority, what arrives later is its message, by peek and by receive."""
    world = World()
    world.put()
    handle = world.open()
    cursor = world.queues.handles.open_cursor(handle)
    reading = world.queues.reading
    world.receive(handle, cursor=cursor)
    for _ in range(2):
        assert reading.receive(handle, 90, world.now, cursor=cursor, wait_s=5.0) == []
        world.mono += 6
        assert world.queues.tick(world.now) == [Ended(handle, 90, Status.IO_TIMEOUT)]
    later = world.put(priority=priority)
    assert reading.peek(handle, 91, world.now, cursor=cursor) == [Delivered(handle, 91, later)]
    assert world.receive(handle, cursor=cursor)[1] == later


def test_cursors_at_the_end_are_not_kept() -> None:
    """Closed, or read on: the queue remembers none of them."""
    world = World()
    queue = world.queues.find(PLAIN)
    handle = world.open()
    for _ in range(3):
        cursor = world.queues.handles.open_cursor(handle)
        world.queues.reading.receive(handle, 90, world.now, cursor=cursor, wait_s=None)
        world.queues.answering.close_cursor(handle, cursor)
        assert queue.ended == set()
    cursor = world.queues.handles.open_cursor(handle)
    world.queues.reading.receive(handle, 90, world.now, cursor=cursor, wait_s=None)
    world.queues.answering.cancel(handle, 90)
    assert len(queue.ended) == 1
    world.queues.answering.close(handle, world.now)
    assert queue.ended == set()
