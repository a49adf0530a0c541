from collections.abc import Sequence

from bridge.core.retained.queues import Access
from bridge.core.retained.retained_queues import EXPIRED_AT_ONCE
from bridge.core.retained.rows import Row
from bridge.core.retained.shelf import MemoryShelf
from tests.core.retained.world import NOW, ORDERS, PLAIN, RETRY, World, refused


def test_time_to_be_received_is_over() -> None:
    """DM-28; table 2.12: TTBR over in queue: NACK_RECEIVE_TIMEOUT C002."""
    world = World()
    world.put(expires=NOW + 10)
    world.put(expires=NOW + 20)
    world.put()
    assert world.queues.next_wakeup(world.now) == 10.0
    world.tick(9.9)
    assert world.commits == []
    world.tick(0.1)
    assert world.reasons() == [(1, 0xC002)]
    assert world.queues.next_wakeup(world.now) == 20.0
    assert world.seen() == [2, 3]


def test_never_a_locked_one() -> None:
    """DM-28: never removes a Locked message; RR-28: judged after release."""
    world = World()
    world.put(expires=NOW + 10)
    handle = world.open()
    tag, _ = world.receive(handle)
    world.tick(20)
    assert world.commits == []
    assert world.queues.next_wakeup(world.now) == 300.0
    world.end(handle, tag, delete=False)
    assert world.reasons() == [(1, 0xC002)]


def test_received_although_it_became_too_old() -> None:
    world = World()
    world.put(expires=NOW + 10)
    handle = world.open()
    tag, _ = world.receive(handle)
    world.tick(20)
    world.end(handle, tag)
    assert world.reasons() == [(1, 0x4000)]


def test_released_before_its_time_is_watched_again() -> None:
    world = World()
    world.put(expires=NOW + 10)
    world.put(expires=NOW + 99)
    handle = world.open()
    tag, _ = world.receive(handle)
    world.tick(5)
    world.end(handle, tag, delete=False)
    wakeup = world.queues.next_wakeup(world.now)
    assert wakeup == 10.0
    world.tick(5)
    assert world.reasons() == [(1, 0xC002)]


def test_nobody_gets_what_is_too_old() -> None:
    """Even before anybody looked at the clock."""
    world = World()
    one = world.put(expires=NOW + 10)
    handle = world.open()
    world.mono = 10.0
    with refused(0xC00E001B):
        world.receive(handle)
    waiter = world.wait(handle)
    world.tick()
    assert world.reasons() == [(1, 0xC002)]
    assert world.told == []
    late = world.put(expires=NOW + 10)  # too old when it comes
    assert world.told == []
    assert world.reasons() == [(2, 0xC002)]
    assert world.put().lookup_id > late.lookup_id > one.lookup_id
    assert [t.tag for t in world.told_now()] == [waiter]


def test_in_subqueues_too() -> None:
    world = World()
    one = world.put(ORDERS, expires=NOW + 10)
    here, there = world.open(ORDERS), world.open(RETRY, Access.MOVE)
    world.do(world.queues.moving.move(here, there, one.lookup_id, world.now))
    world.settle()
    world.tick(10)
    assert world.reasons() == [(1, 0xC002)]


def test_known_after_a_restart() -> None:
    world = World()
    world.put(expires=NOW + 10)
    world.restart()
    assert world.queues.next_wakeup(world.now) == 10.0
    world.tick(10)
    assert world.reasons() == [(1, 0xC002)]


def test_many_at_once_go_in_steps() -> None:
    world = World()
    many = EXPIRED_AT_ONCE + 20
    for _ in range(many):
        world.put(PLAIN, expires=NOW + 10)
    world.tick(10)
    assert len(world.commits) == EXPIRED_AT_ONCE
    assert world.queues.next_wakeup(world.now) == 10.0  # at once
    world.tick()
    assert len(world.commits) == many
    world.tick()
    assert len(world.commits) == many
    assert world.queues.next_wakeup(world.now) is None
    world.restore()
    assert len(world.commits) == many  # tried again
    world.settle()
    assert world.shelf.total().count == 0


def test_a_great_many_at_once_are_looked_at_once() -> None:
    """The first ones are still in flight when the next are taken: they are not read again."""
    looked = 0

    class Watched(MemoryShelf):
        def expiring(self, after: tuple[int, int], until: int, limit: int) -> Sequence[Row]:
            nonlocal looked
            found = super().expiring(after, until, limit)
            looked += len(found)
            return found

    world = World(Watched())
    for _ in range(3000):
        world.put(expires=NOW + 10)
    looked, world.mono = 0, 20.0
    removed = 0
    while commands := world.queues.tick(world.now, 100):
        removed += len(commands)
    assert removed == 3000
    assert looked <= 30 * 600  # a batch for each step, whatever is in flight
