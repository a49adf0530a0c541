import pytest

from bridge.core.retained.effects import Commit, Delivered, Ended, Owed, Removal
from bridge.core.retained.errors import Status
from bridge.core.retained.rows import Wants
from bridge.model.classes import MessageClass
from tests.core.retained.world import ORDERS, UOW, World, refused


def test_lock_transfer_then_delete() -> None:
    """DM-22: remote read locks, transfers, then deletes or releases."""
    world = World()
    one = world.put(wants=Wants.ACK)
    handle = world.open()
    tag, _ = world.receive(handle)
    assert world.end(handle, tag) == [
        Commit(1, (Removal(one, MessageClass.ACK_RECEIVE, Owed(admin=True)),))
    ]
    assert world.seen() == []
    world.settle()
    assert world.shelf.total().count == 0


def test_nothing_is_removed_before_kafka_has_it() -> None:
    """DM-37: Kafka commit precedes every outward effect; unknown outcome = no effect."""
    world = World()
    one = world.put()
    handle = world.open()
    tag, _ = world.receive(handle)
    world.end(handle, tag)
    waiter = world.wait(handle)
    assert world.shelf.total().count == 1
    world.restore()  # it did not happen: back in its place, and offered
    assert world.told_now() == [Delivered(handle, waiter, one)]


def test_client_loss_releases() -> None:
    """DM-22: client loss or 5 min releases. RR-27: close with delivered entries releases them;
    close with waiting Starts answers those C00E0008."""
    world = World()
    one = world.put()
    lost, other = world.open(), world.open()
    world.receive(lost)
    gone = world.wait(lost)
    waiter = world.wait(other)
    world.do(world.queues.answering.close(lost, world.now))
    assert world.told_now() == [
        Ended(lost, gone, Status.OPERATION_CANCELLED),
        Delivered(other, waiter, one),
    ]


def test_five_minutes() -> None:
    """DM-22; RR-26: cleanup timer per delivered entry, default 5 min: release as NACK, drop the
    entry; End afterwards fails."""
    world = World()
    world.put()
    handle = world.open()
    tag, _ = world.receive(handle)
    assert world.queues.next_wakeup(world.now) == 300.0
    world.tick(299)
    assert world.seen() == []
    world.tick(1)
    assert world.seen() == [1]
    with refused(0xC00E0007):
        world.end(handle, tag)


def test_the_time_is_a_setting() -> None:
    world = World(release_after_s=2.0)
    world.put()
    world.receive(world.open())
    world.tick(2)
    assert world.seen() == [1]


def test_a_late_release_does_not_take_back_what_it_gives() -> None:
    """A wait and a lock that run out at the same time: the wait is over first."""
    world = World()
    world.put()
    one, other = world.open(), world.open()
    world.receive(one)
    ended, waiting = world.wait(other, wait_s=300.0), world.wait(other, wait_s=400.0)
    world.tick(300)
    assert [t.tag for t in world.told_now()] == [ended, waiting]
    assert world.seen() == []


def test_end_of_what_is_not_pending() -> None:
    """RR 2.1 opnum 9: handle has no pending entry at all -> C00E0007; has some but not this id ->
    C00E0006; entry still waiting -> C00E0006, leave it. RR-23"""
    world = World()
    handle = world.open()
    with refused(0xC00E0007):
        world.end(handle, 1)
    waiting = world.wait(handle)
    with refused(0xC00E0006):
        world.end(handle, waiting)
    world.put()
    with refused(0xC00E0006):
        world.end(handle, 99)
    world.end(handle, waiting)
    with refused(0xC00E0007):
        world.end(handle, waiting)


def test_blocked_and_cancel() -> None:
    """remote-read.md 6.4; 2.7: Cancel by tag: OK or 0xC0000225."""
    world = World()
    handle, other = world.open(), world.open()
    tag = world.wait(handle)
    with refused(0xC0000225):
        world.queues.answering.cancel(other, tag)  # D-6: key (handle, id)
    assert world.queues.answering.cancel(handle, tag) == [
        Ended(handle, tag, Status.OPERATION_CANCELLED)
    ]
    with refused(0xC0000225):
        world.queues.answering.cancel(handle, tag)
    world.put()
    assert world.told == []


def test_waiting_peeks_can_be_cancelled() -> None:
    """D-7"""
    world = World()
    handle = world.open()
    tag = world.wait(handle, peek=True)
    assert world.queues.answering.cancel(handle, tag) == [
        Ended(handle, tag, Status.OPERATION_CANCELLED)
    ]


def test_cancel_never_releases_a_delivered_message() -> None:
    """RR-22"""
    world = World()
    world.put()
    handle = world.open()
    tag, _ = world.receive(handle)
    with refused(0xC0000225):
        world.queues.answering.cancel(handle, tag)
    assert world.seen() == []


def test_closing_a_cursor_ends_its_waits() -> None:
    """RR 2.1 opnum 5: closing a cursor ends its waits (complete them with C00E0008)."""
    world = World()
    handle = world.open()
    cursor = world.queues.handles.open_cursor(handle)
    world.queues.reading.peek(handle, 50, world.now, cursor=cursor, wait_s=None)
    plain = world.wait(handle, peek=True)
    assert world.queues.answering.close_cursor(handle, cursor) == [
        Ended(handle, 50, Status.OPERATION_CANCELLED)
    ]
    with refused(0xC0000008):
        world.queues.answering.close_cursor(handle, cursor)
    one = world.put()
    assert world.told_now() == [Delivered(handle, plain, one)]


def test_rejected_by_the_reader() -> None:
    """Table 2.12: rejected by reader: _REJECTED C004, bit NR, final; negative. 2.10: optional
    class 0xC004 before commit = NackReceiveRejected."""
    world = World()
    one = world.put(ORDERS, wants=Wants.NACK | Wants.FINAL)
    handle = world.open(ORDERS)
    world.queues.transactions.begin(UOW)
    tag, _ = world.receive(handle, transaction=UOW)
    world.end(handle, tag)
    world.queues.answering.reject(handle, one.lookup_id, 0xC004)
    world.do(world.queues.transactions.commit(UOW, world.now))
    (effect,) = world.settle()
    rejected = MessageClass.NACK_RECEIVE_REJECTED
    assert effect == Removal(one, rejected, Owed(admin=True, final=True))


def test_what_cannot_be_rejected() -> None:
    """remote-read.md 2.4, op 14: class not in {0, C004} -> C00E0006; message unknown C00E0088; else
    C00E0050 (no transaction)."""
    world = World()
    one, two = world.put(ORDERS), world.put(ORDERS)
    handle = world.open(ORDERS)
    reject = world.queues.answering.reject
    with refused(0xC00E0006):
        reject(handle, one.lookup_id, 0xC001)
    with refused(0xC00E0088):
        reject(handle, 99, 0xC004)
    with refused(0xC00E0050):
        reject(handle, one.lookup_id, 0xC004)
    world.receive(handle)
    with refused(0xC00E0050):
        reject(handle, one.lookup_id, 0xC004)
    world.queues.transactions.begin(UOW)
    world.receive(handle, transaction=UOW)
    reject(handle, two.lookup_id, 0)  # no-op
    world.do(world.queues.transactions.commit(UOW, world.now))
    assert world.reasons() == [(2, 0x4000)]


@pytest.mark.parametrize("delete", [True, False])
def test_a_deleted_queue_answers_not_available(delete: bool) -> None:
    """data-model.md 2.2: descriptors get QueueReference NULL and later calls answer
    QUEUE_NOT_AVAILABLE 0xC00E004B. RR-37: close still succeeds."""
    world = World()
    world.put(ORDERS)
    handle = world.open(ORDERS)
    tag, _ = world.receive(handle)
    commands, _ = world.queues.sweeping.delete(ORDERS)
    assert commands == []
    with refused(0xC00E004B):
        world.end(handle, tag, delete=delete)
    with refused(0xC00E004B):
        world.queues.reading.peek(handle, 9, world.now)
    with refused(0xC00E004B):
        world.queues.handles.open_cursor(handle)
    assert world.queues.answering.close(handle, world.now) == []
