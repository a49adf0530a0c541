"""What leaves with a unit, and where its partitions begin then: design D5, `fronts`."""

from collections.abc import Iterable
from itertools import count

from bridge.adapters.retained.departure import Departure, Unit
from bridge.core.ports import Record, Snapshot
from bridge.core.retained.effects import Change, Commit, Effect, Removal
from bridge.core.retained.rows import aborted
from bridge.core.shard import Shard
from bridge.model.classes import MessageClass
from tests.core.messages import receipts, shard
from tests.core.retained.world import row

DATA = "data", 0
FRONT = "retained-front/data/0"
TICKETS = count(1)


def gone(*numbers: int) -> Commit:
    return commit(Removal(row(n), MessageClass.ACK_RECEIVE) for n in numbers)


def commit(effects: Iterable[Effect]) -> Commit:
    return Commit(next(TICKETS), tuple(effects))


class World:
    """Offsets that wait in one partition, how far it was read, and how often anybody looked."""

    def __init__(self, waiting: Iterable[int], position: int) -> None:
        self.waiting, self.position, self.looks = sorted(waiting), position, 0
        self.shard: Shard = shard()
        self.unit = Unit(self._next_offset, lambda _: self.position)
        self.done: list[Commit] = []

    def _next_offset(self, at: tuple[str, int], after: int) -> int | None:
        assert at == DATA
        self.looks += 1
        return next((offset for offset in self.waiting if offset > after), None)

    def fill(self, made: Commit) -> Departure:
        task = Departure(made, {}, receipts(), lambda _: ("", None), self.unit, self.done.append)
        task.fill(self.shard)
        return task

    def state(self) -> dict[str, bytes | None]:
        return {k: v for k, v in self.shard.take_unit(0)[1].state.items() if "retained" in k}


def test_the_front_is_the_first_that_stays() -> None:
    world = World([1, 2, 3, 4], 9)
    world.fill(gone(1))
    world.fill(gone(2))
    assert world.state() == {FRONT: b"3"}  # and no fate: both are behind it


def test_who_leaves_out_of_turn_has_an_entry_until_the_front_has_passed() -> None:
    world = World([1, 2, 3, 4], 9)
    world.fill(gone(2))
    state = world.state()
    assert state.keys() == {FRONT, "retained/data/0/2"}
    assert state[FRONT] == b"1"
    world.waiting.remove(2)
    world.fill(gone(1))
    assert world.state() == {FRONT: b"3", "retained/data/0/2": None}


def test_an_empty_partition_begins_where_it_was_read_to() -> None:
    world = World([7], 9)
    world.fill(gone(7))
    assert world.state() == {FRONT: b"9"}


def test_a_change_moves_no_front() -> None:
    world = World([1], 9)
    world.fill(commit([Change(row(1), aborted(row(1)))]))
    assert world.state().keys() == {"retained/data/0/1"}


def test_a_unit_that_never_was_does_not_count() -> None:
    """Its messages still wait; what came meanwhile must not be passed over."""
    world = World([1], 2)
    world.fill(gone(1))
    assert world.state() == {FRONT: b"2"}
    world.shard.restore(Snapshot({}, []))  # it was not committed
    world.waiting, world.position = [1, 5], 6
    world.fill(gone(1))
    assert world.state() == {FRONT: b"5"}


def test_looking_for_fronts_is_linear() -> None:
    """A purge of a large queue: one or two looks for each message, however many leave at once."""
    for size in (100, 1000):
        world = World(range(size), size)
        for number in range(size):
            world.fill(gone(number))
        assert world.looks <= 2 * size
        assert world.state() == {FRONT: b"%d" % size}


def test_the_end_is_told_with_the_commit() -> None:
    world, made = World([1], 2), gone(1)
    task = world.fill(made)
    assert world.done == []
    task.settled()
    assert world.done == [made]


def test_the_size_has_the_bodies() -> None:
    world = World([1], 2)
    made = gone(1)
    record = Record("data", b"x" * 5000)
    bare = Departure(made, {}, receipts(), lambda _: ("", None), world.unit, world.done.append)
    full = Departure(
        made, {row(1).at: record}, receipts(), lambda _: ("", None), world.unit, world.done.append
    )
    assert full.size == bare.size + 5000
