import pytest

from bridge.core.retained.effects import Commit, Ended, Owed, Removal
from bridge.core.retained.errors import Status
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.queues import Access, Traits
from bridge.core.retained.reading import Seek
from bridge.core.retained.rows import Wants
from bridge.core.retained.sweeping import Sweep
from bridge.model.classes import MessageClass
from tests.core.retained.world import ORDERS, PLAIN, RETRY, UOW, World, refused


def sweep_up(world: World, sweep: Sweep, limit: int = 2) -> None:
    while world.do(world.queues.sweeping.step(sweep, world.now, limit)):
        pass


def purge(world: World, queue: str = PLAIN) -> None:
    sweep_up(world, world.queues.sweeping.purge(world.open(queue)))


def test_purge() -> None:
    """data-model.md 2.11: Available -> Deleted(NackQueuePurged); table 2.12: C001, bit NR."""
    world = World()
    one = world.put(wants=Wants.NACK)
    for priority in (7, 0, 3, 7):
        world.put(priority=priority)
    purge(world)
    assert world.seen() == []
    effects = world.settle()
    assert effects[2] == Removal(one, MessageClass.NACK_Q_PURGED, Owed(admin=True))
    assert [effect.row.ordinal for effect in effects] == [2, 5, 1, 4, 3]
    assert world.shelf.total().count == 0


def test_purge_needs_receive_access() -> None:
    """data-model.md 2.11: needs ReceiveAccess. MP-55: else C00E0025."""
    world = World()
    with refused(0xC00E0025):
        world.queues.sweeping.purge(world.open(access=Access.PEEK))


@pytest.mark.parametrize("delete", [True, False])
def test_purged_while_locked_is_gone_whatever_the_reader_answers(delete: bool) -> None:
    """DM-27: purged while locked: gone with C001 whatever the reader answers (End with ACK or
    NACK). RR-25"""
    world = World()
    world.put()
    world.put()
    handle = world.open()
    tag, _ = world.receive(handle)
    purge(world)
    assert world.reasons() == [(2, 0xC001)]
    world.end(handle, tag, delete=delete)
    assert world.reasons() == [(1, 0xC001)]


def test_purged_while_locked_and_the_reader_is_lost() -> None:
    world = World()
    world.put()
    handle = world.open()
    world.receive(handle)
    purge(world)
    world.do(world.queues.answering.close(handle, world.now))
    assert world.reasons() == [(1, 0xC001)]


def test_purge_pending_cannot_be_looked_up() -> None:
    """data-model.md 2.7: peek of Locked 0xC00E0050; … otherwise 0xC00E0088."""
    world = World()
    one = world.put()
    handle = world.open()
    world.receive(handle)
    purge(world)
    with refused(0xC00E0088):
        world.queues.reading.peek_at(handle, 9, world.now, Seek.CURRENT, one.lookup_id)


def test_what_arrives_meanwhile_stays() -> None:
    world = World()
    for priority in (3, 3, 7, 0):
        world.put(priority=priority)
    sweep = world.queues.sweeping.purge(world.open())
    world.do(world.queues.sweeping.step(sweep, world.now, 1))
    later = [world.put(priority=priority).ordinal for priority in (7, 3, 0)]
    sweep_up(world, sweep)
    world.settle()
    assert world.seen() == later


def test_a_purge_of_many_goes_in_steps() -> None:
    world = World()
    for number in range(600):
        world.put(priority=number % 8)
    sweep = world.queues.sweeping.purge(world.open())
    sizes = []
    while commands := world.queues.sweeping.step(sweep, world.now, 250):
        world.do(commands)
        sizes.append(len(commands))
    assert sizes == [250, 250, 100]
    world.settle()
    assert world.shelf.total().count == 0


def test_posted_messages_are_dead_letters_when_purged() -> None:
    """2.14: SRMP plain also on purge (SR 3.1.7.3.2)."""
    world = World()
    world.put(wants=Wants.DEAD_LETTER | Wants.DEAD_WHEN_PURGED)
    world.put(wants=Wants.DEAD_LETTER)
    purge(world)
    world.settle()
    assert world.seen(DEADLETTER) == [1]


def test_a_purge_touches_one_queue() -> None:
    world = World()
    for name in (ORDERS, RETRY, journal_of(ORDERS)):
        world.put(name)
    purge(world, ORDERS)
    world.settle()
    assert (world.seen(RETRY), world.seen(journal_of(ORDERS))) == ([2], [3])


# -- delete ---------------------------------------------------------------------------------


def test_delete_takes_every_message_whatever_its_state() -> None:
    """data-model.md 2.2: every position, whatever its State, Deleted(NackQueueDeleted). Table
    2.12: queue deleted C000, bit NR."""
    world = World()
    for _ in range(4):
        world.put(ORDERS, wants=Wants.NACK)
    world.put(RETRY)
    handle = world.open(ORDERS)
    world.receive(handle)
    world.queues.transactions.begin(UOW)
    world.receive(handle, transaction=UOW)
    commands, sweep = world.queues.sweeping.delete(ORDERS)
    assert commands == []
    sweep_up(world, sweep)
    world.do(world.queues.transactions.commit(UOW, world.now))
    effects = world.settle()
    assert [effect.row.ordinal for effect in effects] == [1, 2, 3, 4, 5]
    assert all(isinstance(e, Removal) and e.reason == 0xC000 for e in effects)
    assert [isinstance(e, Removal) and e.owed.admin for e in effects] == [True] * 4 + [False]
    assert world.shelf.total().count == 0


def test_waits_end_when_the_queue_is_deleted() -> None:
    """RR-37: queue deleted while open: waits end, later calls C00E004B (DM)."""
    world = World()
    handle = world.open(ORDERS)
    tag = world.wait(handle)
    commands, _ = world.queues.sweeping.delete(ORDERS)
    assert commands == [Ended(handle, tag, Status.QUEUE_NOT_AVAILABLE)]
    with refused(0xC00E0003):
        world.open(ORDERS)


def test_what_arrives_in_a_deleted_queue() -> None:
    world = World()
    world.put(ORDERS)
    _, sweep = world.queues.sweeping.delete(ORDERS)
    world.put(ORDERS)
    sweep_up(world, sweep)
    assert sorted(world.reasons()) == [(1, 0xC000), (2, 0xC000)]


def test_a_name_is_free_again_once_everything_has_left() -> None:
    world = World()
    world.put(ORDERS)
    _, sweep = world.queues.sweeping.delete(ORDERS)
    sweep_up(world, sweep)
    assert world.queues.is_ending(ORDERS)
    assert not world.queues.define(ORDERS, Traits())
    world.restore()  # Kafka refuses, so it is tried again
    world.settle()
    assert not world.queues.is_ending(ORDERS)
    assert world.queues.define(ORDERS, Traits(transactional=True))
    assert world.seen(ORDERS) == []


def test_an_empty_queue_is_gone_at_once() -> None:
    world = World()
    world.queues.sweeping.delete(ORDERS)
    world.queues.define(ORDERS, Traits())


def test_only_whole_queues_can_be_deleted() -> None:
    world = World()
    for name in (journal_of(ORDERS), RETRY, DEADLETTER):
        with refused(0xC00E0020):
            world.queues.sweeping.delete(name)
    with refused(0xC00E0003):
        world.queues.sweeping.delete("private$\\nobody")


# -- lost -------------------------------------------------------------------------------------


def test_a_lost_message_leaves_whoever_holds_it() -> None:
    """Its record is gone: no copy and no body, but one outcome like any other (DM-17)."""
    world = World()
    free, locked = world.put(), world.put()
    handle = world.open()
    tag, first = world.receive(handle)
    assert first == free
    for row in (free, locked):
        (commit,) = world.do(world.queues.sweeping.lose(row))
        assert isinstance(commit, Commit)
        (removal,) = commit.effects
        assert isinstance(removal, Removal)
        assert removal.is_lost
        assert not removal.needs_record
        assert world.queues.sweeping.lose(row) == []  # it is under way
    with refused(0xC00E0088):
        world.end(handle, tag)
    assert world.reasons() == [(free.ordinal, 0xC001), (locked.ordinal, 0xC001)]
    assert world.queues.sweeping.lose(free) == []  # it has left
    assert world.seen() == []


def test_a_lost_message_is_no_longer_part_of_its_transaction() -> None:
    world = World()
    row = world.put(ORDERS)
    handle = world.open(ORDERS)
    world.queues.transactions.begin(UOW)
    world.receive(handle, transaction=UOW)
    world.do(world.queues.sweeping.lose(row))
    assert world.do(world.queues.transactions.commit(UOW, world.now)) == []
    assert world.reasons() == [(row.ordinal, 0xC001)]


def test_a_copy_that_retention_deleted_is_forgotten() -> None:
    """It owes no ack, and Kafka has nothing to undo: no commit."""
    world = World()
    journal = journal_of(ORDERS)
    row = world.put(journal)
    assert world.queues.sweeping.forget(row)
    assert world.queues.sweeping.forget(row)  # it is gone already
    assert world.shelf.copies().count == world.shelf.total().count == 0
    held = world.put(journal)
    world.receive(world.open(journal))
    assert not world.queues.sweeping.forget(held)  # a reader has it
    assert world.shelf.total().count == 1
