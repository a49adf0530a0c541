from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.queues import Access, Share, Traits
from tests.core.retained.world import ORDERS, PLAIN, RETRY, World, refused


def test_unknown_queues() -> None:
    """data-model.md 2.3: absent -> QUEUE_NOT_FOUND 0xC00E0003."""
    with refused(0xC00E0003):
        World().open("private$\\nobody")


def test_every_spelling_of_a_name() -> None:
    world = World()
    world.put(ORDERS)
    assert world.seen("Private$\\ORDERS") == [1]


def test_journals_and_system_queues_can_be_read() -> None:
    world = World()
    for name in (journal_of(PLAIN), DEADLETTER, "system$;deadxact", "system$;journal"):
        assert world.seen(name) == []


def test_sharing_violation() -> None:
    """data-model.md 2.3: SHARING_VIOLATION 0xC00E0009: holder DenyReceive+Receive blocks any
    DenyReceive or Receive. A subqueue or journal is its own object."""
    world = World()
    handle = world.queues.handles.open(ORDERS, Access.RECEIVE, Share.DENY_RECEIVE)
    with refused(0xC00E0009):
        world.open(ORDERS)
    world.open(ORDERS, Access.PEEK)
    world.open(RETRY)
    world.open(journal_of(ORDERS))
    world.queues.answering.close(handle, world.now)
    world.open(ORDERS)


def test_numbers_are_unique_and_never_reserved_ones() -> None:
    """MP-51: never allocate 0 or 0x0B."""
    world = World()
    handles = [world.open() for _ in range(20)]
    cursors = [world.queues.handles.open_cursor(handle) for handle in handles]
    numbers = handles + cursors
    assert len(set(numbers)) == 40
    assert not {0, 0x0B} & set(numbers)
    assert len(world.queues.handles) == 20


def test_unknown_handles() -> None:
    world = World()
    handle = world.open()
    world.queues.answering.close(handle, world.now)
    with refused(0xC00E0007):
        world.queues.handles.open_cursor(handle)
    with refused(0xC00E0007):
        world.queues.answering.close(handle, world.now)


def test_nothing_is_moved_into_a_system_queue() -> None:
    """DM-14: journals and dead-letter queues … accept no application send."""
    for name in (journal_of(ORDERS), DEADLETTER):
        with refused(0xC00E0020):
            World().open(name, Access.MOVE)


def test_a_handle_to_move_reads_nothing() -> None:
    world = World()
    handle = world.open(RETRY, Access.MOVE)
    with refused(0xC00E0025):
        world.queues.handles.open_cursor(handle)


def test_a_subqueue_that_nobody_uses_is_forgotten() -> None:
    world = World()
    for n in range(3):
        handle = world.open(f"{ORDERS};{n}")
        world.queues.answering.close(handle, world.now)
    table = world.queues._queues
    assert {queue.name for queue in table.family(ORDERS)} == {ORDERS, journal_of(ORDERS)}


def test_a_subqueue_with_messages_stays() -> None:
    world = World()
    world.put(RETRY)
    world.restart()
    world.queues.define(ORDERS, Traits(transactional=True))
    assert RETRY in {queue.name for queue in world.queues._queues.family(ORDERS)}
    assert world.seen(RETRY) == [1]
    assert world.seen(RETRY) == [1]
