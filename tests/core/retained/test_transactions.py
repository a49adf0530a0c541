from bridge.core.retained.effects import Change, Commit, Delivered, Ended, Removal
from bridge.core.retained.errors import Status
from bridge.core.retained.queues import Access, Traits
from bridge.core.retained.rows import aborted
from tests.core.retained.world import NOW, ORDERS, RETRY, UOW, World, refused

OTHER_UOW = bytes(16)


def taking(world: World, count: int) -> tuple[int, list[int]]:
    """A handle that has received this many in UOW, and the tags."""
    handle = world.open(ORDERS)
    world.queues.transactions.begin(UOW)
    return handle, [world.receive(handle, transaction=UOW)[0] for _ in range(count)]


def commit(world: World) -> None:
    world.do(world.queues.transactions.commit(UOW, world.now))


def abort(world: World) -> None:
    world.do(world.queues.transactions.abort(UOW, world.now))


def purge(world: World, handle: int) -> None:
    sweep = world.queues.sweeping.purge(handle)
    world.do(world.queues.sweeping.step(sweep, world.now))


def test_commit_is_one_kafka_transaction_first_in_first_out() -> None:
    """DM-26: commit is FIFO, all or none."""
    world = World()
    rows = [world.put(ORDERS) for _ in range(4)]
    handle, _ = taking(world, 2)
    target = world.open(RETRY, Access.MOVE)
    go = world.queues.moving.move
    assert go(handle, target, rows[2].lookup_id, world.now, transaction=UOW) == []
    world.receive(handle, transaction=UOW)
    assert world.seen(ORDERS) == []
    commit(world)
    (only,) = world.commits
    assert [(type(e).__name__, e.row.ordinal) for e in only.effects] == [
        ("Removal", 1),
        ("Removal", 2),
        ("Change", 3),
        ("Removal", 4),
    ]
    world.settle()
    assert (world.seen(ORDERS), world.seen(RETRY)) == ([], [3])


def test_all_or_none() -> None:
    """DM-26: a commit that Kafka did not take leaves every message in its place."""
    world = World()
    for _ in range(3):
        world.put(ORDERS)
    taking(world, 2)
    commit(world)
    world.restore()
    assert world.seen(ORDERS) == [1, 2, 3]
    with refused(0xC00E0051):
        commit(world)


def test_abort_returns_messages_to_their_places_and_counts() -> None:
    """2.10: Abort: Dequeue/Move -> Available. DM-21. remote-read.md 2.4: AbortCounter+1."""
    world = World()
    one, two, three = (world.put(ORDERS) for _ in range(3))
    handle, _ = taking(world, 1)
    target = world.open(RETRY, Access.MOVE)
    world.queues.moving.move(handle, target, two.lookup_id, world.now, transaction=UOW)
    abort(world)
    assert world.commits == [Commit(1, (Change(one, aborted(one)), Change(two, aborted(two))))]
    world.settle()
    assert world.seen(ORDERS) == [1, 2, 3]
    assert [row.aborts for row in world.shelf.after(ORDERS, -1, 9)] == [1, 1, 0]
    assert world.receive(handle)[1].lookup_id == one.lookup_id
    assert three.aborts == 0


def test_an_abort_that_kafka_did_not_take_still_releases() -> None:
    world = World()
    world.put(ORDERS)
    handle, _ = taking(world, 1)
    waiter = world.wait(handle)
    abort(world)
    world.restore()
    (told,) = world.told_now()
    assert isinstance(told, Delivered)
    assert (told.tag, told.row.aborts) == (waiter, 0)


def test_restart_aborts() -> None:
    """DM-26: restart aborts internal. RR-29: locks of un-acked reads are volatile. The aborts of a
    restart are not counted: nobody knows what was locked (data-model.md 6, Losable)."""
    world = World()
    for _ in range(3):
        world.put(ORDERS)
    taking(world, 2)
    world.restart()
    assert world.seen(ORDERS) == [1, 2, 3]
    assert [row.aborts for row in world.shelf.after(ORDERS, -1, 9)] == [0, 0, 0]
    with refused(0xC00E0051):
        commit(world)


def test_unknown_and_known_transactions() -> None:
    """2.10: unknown -> 0xC00E0051. MP-81: UOW is free again after commit/abort."""
    world = World()
    for end in (commit, abort):
        with refused(0xC00E0051):
            end(world)
    world.queues.transactions.begin(UOW)
    with refused(0xC00E0051):
        world.queues.transactions.begin(UOW)
    commit(world)
    world.queues.transactions.begin(UOW)
    abort(world)
    assert world.commits == []  # there was nothing to do


def test_end_with_ack_leaves_it_to_the_transaction() -> None:
    """remote-read.md 2.4: op 15 ACK keeps it locked until commit; D-10"""
    world = World()
    world.put(ORDERS)
    handle, (tag,) = taking(world, 1)
    assert world.end(handle, tag) == []
    world.tick(9999)
    world.queues.answering.close(handle, world.now)
    assert world.seen(ORDERS) == []
    commit(world)
    assert world.reasons() == [(1, 0x4000)]


def test_end_with_nack_takes_it_out_of_the_transaction() -> None:
    """remote-read.md 2.4: NACK removes the operation and releases; D-10"""
    world = World()
    world.put(ORDERS)
    handle, (tag,) = taking(world, 1)
    world.end(handle, tag, delete=False)
    assert world.seen(ORDERS) == [1]
    commit(world)
    assert world.commits == []


def test_a_reader_that_is_lost_before_its_end_takes_it_out() -> None:
    """RR-27, RR-26: what is not confirmed goes back."""
    for lose in ("close", "time"):
        world = World()
        world.put(ORDERS)
        handle, _ = taking(world, 1)
        if lose == "close":
            world.do(world.queues.answering.close(handle, world.now))
        else:
            world.tick(300)
        assert world.seen(ORDERS) == [1]
        abort(world)
        assert world.commits == []


def test_end_after_the_transaction_is_over() -> None:
    """RR 2.1 opnum 9: message gone -> C00E0088; State Available -> C00E0051."""
    world = World()
    world.put(ORDERS)
    handle, (tag,) = taking(world, 1)
    commit(world)
    with refused(0xC00E0088):
        world.end(handle, tag)
    world = World()
    world.put(ORDERS)
    handle, (tag,) = taking(world, 1)
    abort(world)
    world.settle()
    with refused(0xC00E0051):
        world.end(handle, tag)
    assert world.seen(ORDERS) == [1]


def test_a_waiting_read_of_a_transaction() -> None:
    world = World()
    handle, _ = taking(world, 0)
    tag = 50
    reading = world.queues.reading
    assert reading.receive(handle, tag, world.now, wait_s=None, transaction=UOW) == []
    one = world.put(ORDERS)
    assert world.told_now() == [Delivered(handle, tag, one)]
    assert reading.receive(handle, 51, world.now, wait_s=None, transaction=UOW) == []
    commit(world)
    assert world.told_now() == [Ended(handle, 51, Status.TRANSACTION_SEQUENCE)]
    assert world.reasons() == [(1, 0x4000)]


def test_purged_while_in_a_transaction() -> None:
    """DM-27: purged while locked: gone with C001 whatever the reader answers (… abort); a
    transaction that commits a Dequeue keeps its own reason. T-7"""
    for end, reason in ((commit, 0x4000), (abort, 0xC001)):
        world = World()
        world.put(ORDERS)
        handle, _ = taking(world, 1)
        purge(world, handle)
        assert world.commits == []
        end(world)
        assert world.reasons() == [(1, reason)]
        assert world.shelf.total().count == 0


def test_a_purged_message_is_not_revived_by_a_move() -> None:
    """As T-7: commit revives a purged Enqueue -> drop."""
    world = World()
    one = world.put(ORDERS)
    handle, _ = taking(world, 0)
    target = world.open(RETRY, Access.MOVE)
    world.queues.moving.move(handle, target, one.lookup_id, world.now, transaction=UOW)
    purge(world, handle)
    commit(world)
    assert world.reasons() == [(1, 0xC001)]
    assert world.seen(RETRY) == []


def test_purged_while_its_abort_is_on_its_way() -> None:
    world = World()
    world.put(ORDERS)
    handle, _ = taking(world, 1)
    abort(world)
    purge(world, handle)
    world.settle()
    assert world.shelf.total().count == 0


def test_target_journal_at_commit() -> None:
    """2.14: a received message is copied to ;JOURNAL, at commit if transactional."""
    world = World()
    world.queues.define(ORDERS, Traits(transactional=True, journaling=True))
    world.put(ORDERS)
    taking(world, 1)
    assert world.seen(f"{ORDERS};journal") == []
    commit(world)
    world.settle()
    assert world.seen(f"{ORDERS};journal") == [1]


def test_too_old_while_locked_is_judged_after_the_abort() -> None:
    """2.14: Locked -> judge again after abort. T-8, DM-28"""
    world = World()
    world.put(ORDERS, expires=NOW + 5)
    taking(world, 1)
    world.tick(10)
    assert world.commits == []
    abort(world)
    effects = world.settle()
    assert [type(effect) for effect in effects] == [Change, Removal]
    assert isinstance(effects[1], Removal)
    assert effects[1].reason == 0xC002


def test_committed_although_it_became_too_old() -> None:
    """DM-28: … never removes a Locked message."""
    world = World()
    world.put(ORDERS, expires=NOW + 5)
    taking(world, 1)
    world.tick(10)
    commit(world)
    assert world.reasons() == [(1, 0x4000)]


def test_two_transactions_do_not_see_each_other() -> None:
    world = World()
    world.put(ORDERS)
    world.put(ORDERS)
    handle, _ = taking(world, 1)
    world.queues.transactions.begin(OTHER_UOW)
    _, row = world.receive(handle, transaction=OTHER_UOW)
    assert row.ordinal == 2
    abort(world)
    world.settle()
    assert world.seen(ORDERS) == [1]
    world.do(world.queues.transactions.commit(OTHER_UOW, world.now))
    assert world.reasons() == [(2, 0x4000)]
