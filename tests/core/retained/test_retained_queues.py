from bridge.core.retained.queues import Access, Traits
from bridge.core.retained.shelf import Totals
from tests.core.retained.world import NOW, ORDERS, PLAIN, RETRY, UOW, World, row


def test_rows_may_arrive_late() -> None:
    """Two shards commit side by side: the later number may be seen first."""
    world = World()
    first, second = row(1), row(2)
    world.do(world.queues.arrive([second], world.now))
    world.do(world.queues.arrive([first], world.now))
    assert world.seen() == [1, 2]


def test_a_late_row_is_found_behind_locked_ones() -> None:
    world = World()
    world.do(world.queues.arrive([row(2), row(3)], world.now))
    handle = world.open()
    assert world.receive(handle)[1].ordinal == 2
    assert world.receive(handle)[1].ordinal == 3
    world.do(world.queues.arrive([row(1)], world.now))
    assert world.receive(handle)[1].ordinal == 1


def test_a_restart_forgets_readers_and_keeps_messages() -> None:
    """DM-26, RR-29: after a restart the messages are Available."""
    world = World()
    for _ in range(3):
        world.put()
    handle = world.open()
    tag, _ = world.receive(handle)
    other, _ = world.receive(handle)
    world.end(handle, tag)
    world.settle()
    world.end(handle, other)  # under way when the process dies
    world.restart()
    assert world.seen() == [2, 3]


def test_queues_that_nobody_defined() -> None:
    world = World()
    world.put("private$\\old;retry")
    world.put("private$\\old;journal")
    world.put("system$;deadletter")
    world.put(PLAIN)
    assert world.queues.strays() == {"private$\\old"}
    world.queues.define("private$\\old", Traits())
    assert world.queues.strays() == set()
    _, sweep = world.queues.sweeping.delete("private$\\old")
    world.do(world.queues.sweeping.step(sweep, world.now))
    assert sorted(world.reasons()) == [(1, 0xC000), (2, 0xC000)]


def test_next_wakeup_is_the_earliest_of_all() -> None:
    world = World()
    assert world.queues.next_wakeup(world.now) is None
    world.put(expires=NOW + 50)
    assert world.queues.next_wakeup(world.now) == 50.0
    world.wait(world.open(ORDERS), wait_s=20.0)
    assert world.queues.next_wakeup(world.now) == 20.0
    world.mono = 60.0
    assert world.queues.next_wakeup(world.now) == 20.0
    world.tick()
    assert world.queues.next_wakeup(world.now) is None


def test_a_family_after_a_restart() -> None:
    """A subqueue is there as long as it holds messages, and counts in its queue's quota."""
    world = World()
    one = world.put(ORDERS, size=800)
    here, there = world.open(ORDERS), world.open(RETRY, Access.MOVE)
    world.do(world.queues.moving.move(here, there, one.lookup_id, world.now))
    world.settle()
    world.restart()
    world.queues.define(ORDERS, Traits(transactional=True, quota_kb=1))
    assert world.queues.quotas.shortage(ORDERS, 300) is not None


def test_the_counters_that_a_reader_is_told() -> None:
    """DM-25: remote-read packets carry … extension headers: AbortCounter, MoveCounter and
    LastMoveTime of theirs are in the row, after a restart too."""
    world = World()
    one = world.put(ORDERS)
    here, there = world.open(ORDERS), world.open(RETRY, Access.MOVE)
    world.do(world.queues.moving.move(here, there, one.lookup_id, world.now))
    world.settle()
    world.queues.transactions.begin(UOW)
    world.receive(world.open(RETRY), transaction=UOW)
    world.do(world.queues.transactions.abort(UOW, world.now))
    world.settle()
    world.restart()
    _, told = world.receive(world.open(RETRY))
    assert (told.queue, told.aborts, told.moves, told.moved_at) == (RETRY, 1, 1, NOW)


def test_a_release_does_not_count_the_bytes_again() -> None:
    """T-5: Available adds TotalBytes again on abort/release -> once per position. DM-31"""
    world = World()
    world.put(ORDERS)
    handle = world.open(ORDERS)
    tag, _ = world.receive(handle)
    world.end(handle, tag, delete=False)
    world.queues.transactions.begin(UOW)
    world.receive(handle, transaction=UOW)
    world.do(world.queues.transactions.abort(UOW, world.now))
    world.settle()
    assert world.shelf.totals(ORDERS) == Totals(1, 100)
