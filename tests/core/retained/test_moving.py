import pytest

from bridge.core.retained.effects import Change, Delivered
from bridge.core.retained.queues import Access
from bridge.core.retained.rows import Row, Wants
from bridge.core.retained.shelf import EMPTY, Totals
from tests.core.retained.world import NOW, ORDERS, PLAIN, RETRY, UOW, World, refused

POISON = "private$\\orders;poison"


def handles(world: World, source: str = ORDERS, target: str = RETRY) -> tuple[int, int]:
    return world.open(source), world.open(target, Access.MOVE)


def move(world: World, row: Row, source: str = ORDERS, target: str = RETRY) -> None:
    here, there = handles(world, source, target)
    world.do(world.queues.moving.move(here, there, row.lookup_id, world.now))


def test_a_move() -> None:
    """DM-29: same queue family, new LookupIdentifier, no ack, AbortCounter 0, MoveCounter+1."""
    world = World()
    one = world.put(ORDERS, aborts=3, wants=Wants.ACK | Wants.NACK | Wants.FINAL, letterhead=b"x")
    world.put(ORDERS)
    move(world, one)
    assert (world.seen(ORDERS), world.seen(RETRY)) == ([2], [])
    (effect,) = world.settle()
    assert isinstance(effect, Change)
    assert effect.row == one
    new = effect.to
    assert (new.queue, new.aborts, new.moves, new.moved_at) == (RETRY, 0, 1, NOW)
    assert new.lookup_id == 7 << 56 | 1_000_000
    assert (new.at, new.wants, new.letterhead) == (one.at, one.wants, one.letterhead)
    assert (world.seen(ORDERS), world.seen(RETRY)) == ([2], [1])


def test_totals_move_with_it() -> None:
    """DM-31: TotalBytes changes once on entry, once on exit."""
    world = World()
    move(world, world.put(ORDERS))
    assert world.shelf.totals(ORDERS) == Totals(1, 100)
    world.settle()
    assert (world.shelf.totals(ORDERS), world.shelf.totals(RETRY)) == (EMPTY, Totals(1, 100))


def test_readers_of_the_target_are_woken() -> None:
    """T-10: new lookup id; wake readers."""
    world = World()
    handle = world.open(RETRY)
    tag = world.wait(handle)
    one = world.put(ORDERS)
    move(world, one)
    assert world.told == []
    (effect,) = world.settle()
    assert isinstance(effect, Change)
    assert world.told_now() == [Delivered(handle, tag, effect.to)]


def test_a_move_that_kafka_did_not_take() -> None:
    world = World()
    one = world.put(ORDERS)
    world.put(ORDERS)
    move(world, one)
    world.restore()
    assert (world.seen(ORDERS), world.seen(RETRY)) == ([1, 2], [])


@pytest.mark.parametrize(
    ("source", "target"), [(ORDERS, RETRY), (RETRY, ORDERS), (RETRY, POISON), (POISON, RETRY)]
)
def test_within_the_family(source: str, target: str) -> None:
    """data-model.md 2.11: queue <-> own subqueue or siblings only."""
    world = World()
    move(world, world.put(source), source, target)
    world.settle()
    assert (world.seen(source), world.seen(target)) == ([], [1])


@pytest.mark.parametrize(
    ("source", "target"),
    [(ORDERS, PLAIN), (ORDERS, "private$\\plain;retry"), (ORDERS, ORDERS), (RETRY, RETRY)],
)
def test_not_outside_of_it(source: str, target: str) -> None:
    """data-model.md 2.11: … (else 0xC000000D)."""
    world = World()
    one = world.put(source)
    with refused(0xC000000D):
        move(world, one, source, target)


def test_nothing_is_moved_out_of_a_journal() -> None:
    world = World()
    one = world.put("private$\\orders;journal")
    with refused(0xC000000D):
        move(world, one, "private$\\orders;journal", RETRY)


def test_what_is_checked() -> None:
    """RR 2.1 opnum 10: order of checks."""
    world = World()
    one = world.put(ORDERS)
    here, there = handles(world)
    go = world.queues.moving.move
    with refused(0xC00E0007):
        go(99, there, one.lookup_id, world.now)
    with refused(0xC00E0007):
        go(here, world.open(RETRY), one.lookup_id, world.now)
    with refused(0xC00E0025):
        go(world.open(ORDERS, Access.PEEK), there, one.lookup_id, world.now)
    with refused(0xC00E0088):
        go(here, there, 99, world.now)
    with refused(0xC00E0051):
        go(here, there, one.lookup_id, world.now, transaction=UOW)
    world.receive(here)
    with refused(0xC00E009C):
        go(here, there, one.lookup_id, world.now)


def test_a_transaction_only_into_a_transactional_queue() -> None:
    """data-model.md 2.11: transaction only into a transactional one: C00E0050."""
    world = World()
    one = world.put(PLAIN)
    here, there = handles(world, PLAIN, "private$\\plain;retry")
    world.queues.transactions.begin(UOW)
    with refused(0xC00E0050):
        world.queues.moving.move(here, there, one.lookup_id, world.now, transaction=UOW)


def test_what_is_too_old_is_not_moved() -> None:
    world = World()
    one = world.put(ORDERS, expires=NOW + 5)
    world.mono = 5
    with refused(0xC00E0088):
        move(world, one)
