from typing import Any

import pytest

from bridge.core.retained.effects import Copy, Delivered, Removal
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.queues import Traits
from bridge.core.retained.rows import RecordAt, Wants
from bridge.core.retained.shelf import Totals
from bridge.model.classes import MessageClass
from tests.core.retained.world import NOW, PLAIN, World, copy_row

JOURNAL = journal_of(PLAIN)


def journaled(**traits: Any) -> World:
    world = World()
    world.queues.define(PLAIN, Traits(journaling=True, **traits))
    return world


def receive(world: World) -> None:
    handle = world.open()
    tag, _ = world.receive(handle)
    world.end(handle, tag)


def test_a_received_message_is_copied_to_the_journal() -> None:
    """DM-30: target journal on receive only. 2.6: journal … copies get a new lookup id."""
    world = journaled()
    one = world.put(priority=5, wants=Wants.ACK)
    world.mono = 7.5
    receive(world)
    (commit,) = world.commits
    (effect,) = commit.effects
    assert isinstance(effect, Removal)
    assert effect.copy == Copy(JOURNAL, 2 << 56 | 1_000_000, NOW * 1000 + 7500)
    reader = world.open(JOURNAL)
    tag = world.wait(reader)
    world.mono = 99.0
    at = RecordAt("plain.journal", 0, 9)
    world.do(world.queues.settle(commit.ticket, world.now))
    assert world.told_now() == []  # its record is yet to be read
    world.do(world.queues.arrive([copy_row(effect, at)], world.now))
    (told,) = world.told_now()
    assert isinstance(told, Delivered)
    assert (told.tag, told.row.at, told.row.id) == (tag, at, one.id)
    assert told.row.arrived_ms == NOW * 1000 + 7500
    assert told.row.wants == Wants.NOTHING


@pytest.mark.parametrize("arrives_first", [True, False])
def test_a_copy_comes_by_its_own_record(arrives_first: bool) -> None:
    """Before its commit is settled or after it: its room is reserved until it is on the shelf."""
    world = journaled(journal_quota_kb=1)
    for size in (600, 300, 600):
        world.put(size=size)
    receive(world)
    (commit,) = world.commits
    (effect,) = commit.effects
    assert isinstance(effect, Removal)
    copy = copy_row(effect, RecordAt("copies", 0, 1))
    if arrives_first:
        world.queues.arrive([copy], world.now)
    world.queues.settle(commit.ticket, world.now)
    if not arrives_first:
        assert not world.queues.quotas.reserve_copy(JOURNAL, 500)  # 600 of 1024 are on their way
        world.queues.arrive([copy], world.now)
    assert world.shelf.totals(JOURNAL) == Totals(1, 600)
    world.commits.clear()
    for has_room in (True, False):
        receive(world)
        assert [e.copy is not None for c in world.commits for e in c.effects] == [has_room]  # type: ignore[union-attr]
        world.settle()


def test_a_copy_that_comes_after_its_queue_has_gone() -> None:
    """The last message of a deleted queue leaves; its copy is a stray, for the owner to delete."""
    world = journaled()
    world.put()
    receive(world)
    (commit,) = world.commits
    world.queues.sweeping.delete(PLAIN)
    world.queues.settle(commit.ticket, world.now)
    (effect,) = commit.effects
    assert isinstance(effect, Removal)
    assert world.queues.arrive([copy_row(effect, RecordAt("copies", 0, 1))], world.now) == []
    assert world.queues.strays() == {PLAIN}


def test_the_journal_is_a_queue_like_any_other() -> None:
    world = journaled()
    world.put()
    receive(world)
    world.settle()
    handle = world.open(JOURNAL)
    tag, row = world.receive(handle)
    world.end(handle, tag)
    (effect,) = world.settle()
    assert effect == Removal(row, MessageClass.ACK_RECEIVE)  # no ack, no copy of a copy
    assert world.shelf.total().count == 0


def test_over_quota_the_copy_is_lost_the_operation_succeeds() -> None:
    """DM-30: over quota the copy is lost, the operation succeeds."""
    world = journaled(journal_quota_kb=1)
    for _ in range(3):
        world.put(size=500)
    for _ in range(3):
        receive(world)  # the two that are in flight count
    effects = world.settle()
    assert [isinstance(e, Removal) and e.copy is not None for e in effects] == [True, True, False]
    assert world.shelf.totals(JOURNAL) == Totals(2, 1000)
    assert world.shelf.totals(PLAIN).count == 0


def test_room_in_the_journal_comes_back_when_kafka_refuses() -> None:
    world = journaled(journal_quota_kb=1)
    world.put(size=1000)
    receive(world)
    world.restore()
    receive(world)
    (effect,) = world.settle()
    assert isinstance(effect, Removal)
    assert effect.copy is not None


def test_the_dead_letter_says_what_it_died_of() -> None:
    """2.14: their Class is rewritten to the failure."""
    world = World()
    world.put(expires=NOW + 1, wants=Wants.DEAD_LETTER)
    world.tick(1)
    (effect,) = world.settle()
    assert isinstance(effect, Removal)
    assert effect.copy is not None
    assert (effect.copy.queue, effect.copy.message_class) == (DEADLETTER, 0xC002)
    assert world.seen(DEADLETTER) == [1]
    world.tick(9999)
    assert world.seen(DEADLETTER) == [1]


def test_the_quota_of_dead_letters() -> None:
    """2.14: journal or dead-letter quota exceeded: the copy is dropped."""
    world = World()
    world.queues.define(DEADLETTER, Traits(quota_kb=1))
    for _ in range(2):
        world.put(size=1000, expires=NOW + 1, wants=Wants.DEAD_LETTER)
    world.tick(1)
    world.settle()
    assert world.seen(DEADLETTER) == [1]
    assert world.shelf.total().count == 1


def test_one_outcome_for_each_message() -> None:
    """DM-17: every removal raises exactly one outcome."""
    world = World()
    world.put(expires=NOW + 5)
    receive(world)
    sweep = world.queues.sweeping.purge(world.open())
    world.do(world.queues.sweeping.step(sweep, world.now))
    world.tick(10)
    _, deletion = world.queues.sweeping.delete(PLAIN)
    world.do(world.queues.sweeping.step(deletion, world.now))
    assert world.reasons() == [(1, 0x4000)]


def test_what_was_missed_in_flight_comes_after_a_restore() -> None:
    """Purged while in flight (C001), or too old by then (C002): a refusal does not undo that."""
    for missed, reason in (("purge", 0xC001), ("time", 0xC002)):
        world = World()
        world.put(expires=NOW + 5)
        receive(world)
        if missed == "purge":
            sweep = world.queues.sweeping.purge(world.open())
            world.do(world.queues.sweeping.step(sweep, world.now))
        else:
            world.tick(10)
        world.restore()
        assert world.reasons() == [(1, reason)]
