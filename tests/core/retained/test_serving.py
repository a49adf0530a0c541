from bridge.core.retained.effects import Delivered, Ended
from bridge.core.retained.errors import Status
from bridge.core.retained.queues import Access, Descriptor, QueueTable, Read, Share, Traits
from bridge.core.retained.serving import Service
from bridge.core.retained.shelf import MemoryShelf
from bridge.core.retained.stock import Stock
from bridge.protocol.events import Instant
from tests.core.retained.world import PLAIN, row

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
