"""Reads that wait, are answered, withdrawn and ended; Kafka comes and goes."""

import asyncio

import pytest

from bridge.core.remote_read.actions import Wanted
from bridge.core.remote_read.codes import Failed
from bridge.core.retained.errors import Refused
from bridge.core.retained.queues import Access
from bridge.core.retained.reading import Seek
from bridge.model.errors import SinkUnavailable
from tests.adapters.remote_read.world import PLAIN, World, running, turns
from tests.core.retained.world import refused

RECEIVE = Wanted(is_receive=True)
WAIT = Wanted(is_receive=True, wait_s=None)
PEEK = Wanted(is_receive=False)


def opened(world: World, access: Access = Access.RECEIVE) -> int:
    return world.owner.queues.handles.open(PLAIN, access)


@running
async def test_a_message_at_once() -> None:
    world = World()
    row = world.put(b"M1")
    handle = opened(world)
    given = await world.reads.start(handle, 1, RECEIVE)
    assert (given.row, given.message.body) == (row, b"M1")
    assert given.message.lookup_id == row.lookup_id
    with refused(0xC00E001B):
        await world.reads.start(handle, 2, PEEK)
    await world.reads.end(handle, 1, delete=True)
    assert world.waiting() == []


@running
async def test_a_removal_is_told_when_kafka_has_it() -> None:
    """D1: End(ACK) answers after the commit; an unknown outcome is waited for."""
    world = World()
    world.put(b"M1")
    handle = opened(world)
    await world.reads.start(handle, 1, RECEIVE)
    world.owner.is_slow = True
    end = asyncio.create_task(world.reads.end(handle, 1, delete=True))
    await turns()
    assert not end.done()
    with refused(0xC00E001B):  # nobody gets it meanwhile
        await world.reads.start(handle, 2, RECEIVE)
    world.owner.settle()
    await end
    assert world.waiting() == []


@running
async def test_whoever_ends_it_may_go_the_removal_happens() -> None:
    world = World()
    world.put(b"M1")
    handle = opened(world)
    await world.reads.start(handle, 1, RECEIVE)
    world.owner.is_slow = True
    end = asyncio.create_task(world.reads.end(handle, 1, delete=True))
    await turns()
    end.cancel()
    with pytest.raises(asyncio.CancelledError):
        await end
    world.reads.close(handle)
    world.owner.settle()
    assert world.waiting() == []


@running
async def test_a_waiting_read_that_is_cancelled_consumes_nothing() -> None:
    """RR-13"""
    world = World()
    handle = opened(world)
    read = asyncio.create_task(world.reads.start(handle, 1, WAIT))
    await turns()
    assert world.owner.waiting == 1
    read.cancel()
    with pytest.raises(asyncio.CancelledError):
        await read
    assert world.owner.waiting == 0
    world.put(b"M1")
    assert (await world.reads.start(handle, 1, RECEIVE)).message.body == b"M1"


@running
async def test_cancelled_in_the_moment_of_delivery() -> None:
    """The message is locked, but nobody has seen it: it goes to the next reader."""
    world = World()
    handle = opened(world)
    read = asyncio.create_task(world.reads.start(handle, 1, WAIT))
    other = asyncio.create_task(world.reads.start(handle, 2, WAIT))
    await turns()
    read.cancel()
    world.put(b"M1")  # before the task hears of it
    with pytest.raises(asyncio.CancelledError):
        await read
    assert (await other).message.body == b"M1"


@running
async def test_cancelled_while_its_record_is_read() -> None:
    world = World()
    world.put(b"M1")
    handle, world.owner.read_gate = opened(world), asyncio.Event()
    read = asyncio.create_task(world.reads.start(handle, 1, RECEIVE))
    await turns()
    read.cancel()
    with pytest.raises(asyncio.CancelledError):
        await read
    world.owner.read_gate = None
    assert (await world.reads.start(handle, 2, RECEIVE)).message.body == b"M1"


@running
async def test_kafka_is_away() -> None:
    """The reader is told so, and the message is where it was."""
    world = World()
    world.put(b"M1")
    handle, world.owner.is_away = opened(world), True
    for wanted in (RECEIVE, PEEK):
        with pytest.raises(Failed) as caught:
            await world.reads.start(handle, 1, wanted)
        assert caught.value.status == 0xC00E000B
    world.owner.is_away = False
    assert (await world.reads.start(handle, 1, RECEIVE)).message.body == b"M1"


@running
async def test_closed_while_its_record_is_read() -> None:
    """RR-27: the message is back, so this reader must not have it."""
    world = World()
    world.put(b"M1")
    handle, gate = opened(world), asyncio.Event()
    world.owner.read_gate = gate
    read = asyncio.create_task(world.reads.start(handle, 1, RECEIVE))
    await turns()
    world.reads.close(handle)
    gate.set()
    with refused(0xC00E0008):
        await read
    assert (await world.reads.start(opened(world), 1, RECEIVE)).message.body == b"M1"


@running
async def test_an_id_that_is_in_use_does_not_harm_the_one_that_waits() -> None:
    """MS-MQRR 3.1.4.7: dwRequestId already pending on this handle"""
    world = World()
    handle = opened(world)
    read = asyncio.create_task(world.reads.start(handle, 1, WAIT))
    await turns()
    with refused(0xC00E0006):
        await world.reads.start(handle, 1, WAIT)
    world.put(b"M1")
    assert (await read).message.body == b"M1"


@running
async def test_cancel_release_and_close_of_what_is_not_there() -> None:
    world = World()
    handle = opened(world)
    with refused(0xC0000225):
        world.reads.cancel(handle, 1)
    world.reads.release(handle, 1)
    world.reads.release(12345, 1)
    world.reads.close(handle)
    with pytest.raises(Refused):
        world.reads.close(handle)


@running
async def test_purge_returns_when_all_is_in_kafka() -> None:
    world = World()
    for number in range(3):
        world.put(b"%d" % number)
    handle, world.owner.is_slow = opened(world), True
    purge = asyncio.create_task(world.reads.purge(handle))
    await turns()
    assert not purge.done()
    world.owner.settle()
    await purge
    assert world.waiting() == []


@running
async def test_kafka_is_known_to_be_away() -> None:
    """Nothing is begun that Kafka would have to take; what the reader has he keeps."""
    world = World()
    world.put(b"M1")
    handle = opened(world)
    await world.reads.start(handle, 1, RECEIVE)
    world.owner.is_closed = True
    for attempt in (
        world.reads.end(handle, 1, delete=True),
        world.reads.start(handle, 2, RECEIVE),
        world.reads.purge(handle),
        world.reads.move(handle, handle, 1, None),
    ):
        with pytest.raises(Failed) as caught:
            await attempt
        assert caught.value.status == 0xC00E000B
    world.owner.is_closed = False
    await world.reads.end(handle, 1, delete=True)
    assert world.waiting() == []


@running
async def test_the_queue_manager_stops_before_kafka_has_answered() -> None:
    """Nobody can tell what became of it: never a success."""
    world = World()
    world.put(b"M1")
    handle = opened(world)
    await world.reads.start(handle, 1, RECEIVE)
    world.owner.is_slow = True
    end = asyncio.create_task(world.reads.end(handle, 1, delete=True))
    await turns()
    ((_, future),) = world.owner.commits
    future.set_exception(SinkUnavailable("the queue manager stops"))
    with pytest.raises(Failed):
        await end


@running
async def test_a_message_that_kafka_has_lost_is_not_in_the_way() -> None:
    world = World()
    lost = [world.put(b"lost %d" % number) for number in range(2)]
    world.put(b"M1")
    for row in lost:
        del world.owner.records[row.at]
    handle = opened(world)
    with refused(0xC00E0088):
        await world.reads.start(
            handle, 1, Wanted(is_receive=True, seek=Seek.CURRENT, lookup_id=lost[1].lookup_id)
        )
    assert (await world.reads.start(handle, 1, PEEK)).message.body == b"M1"
    assert (await world.reads.start(handle, 1, RECEIVE)).message.body == b"M1"
    assert world.waiting() == [b"M1"]
    waiting = Wanted(is_receive=True, wait_s=60.0)
    read = asyncio.create_task(world.reads.start(handle, 2, waiting))
    await turns()
    gone = world.put(b"lost, too")
    del world.owner.records[gone.at]
    await turns()
    assert not read.done()  # it waits on
    world.put(b"M2")
    assert (await read).message.body == b"M2"
