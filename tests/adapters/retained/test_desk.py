"""The queues for those who look after them, on a real Kafka: `QueueDesk`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.retained.service import NotKept, now
from bridge.core.retained.queues import Access
from bridge.model.errors import SinkUnavailable
from tests.adapters.retained.world import KEPT, Running, World, numbered
from tests.core.retained.world import refused
from tests.support.kafka import unique
from tests.support.waiting import until

pytestmark = pytest.mark.kafka
RETRY = f"{KEPT};retry"
LATE = "private$\\late"


@pytest.fixture
def world(kafka: EmbeddedKafka, tmp_path: Path) -> World:
    return World(kafka, tmp_path)


async def waiting(process: Running, count: int = 1) -> None:
    queue = process.service.queues.find(KEPT)
    await until(lambda: len(queue.waiting) == count)


async def cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def nothing_is_left(process: Running) -> None:
    """No answer, no handle, no lock and no commit of anybody who is done."""
    service = process.service
    assert service._answers == {}
    assert service._settling == {}
    assert len(service.queues.handles) == 0
    assert service.queues._stock.locks == {}


def test_a_forward_queue_has_nothing_to_read(world: World) -> None:
    forward = "private$\\forward"
    world.queues.append(world.queue(forward, topic=unique("forward"), mode="forward"))

    async def play() -> None:
        async with world.running() as process:
            with refused(0xC00E0025):
                await process.desk.peek(forward, limit=1)
            with pytest.raises(NotKept, match=r"forwards its messages.*hint: set mode: retain"):
                await process.desk.receive(forward)
            assert await process.desk.peek(f"{forward};journal", limit=1) == []
            assert await process.desk.purge(forward) == 0
            nothing_is_left(process)

    asyncio.run(play())


# -- looking ----------------------------------------------------------------------------------


def test_peek(world: World) -> None:
    async def peek() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2, 3)))
            first, second = await process.desk.peek(KEPT, limit=2)
            (third,) = await process.desk.peek(KEPT, limit=9, after=second.lookup_id)
            assert third.message.body == b"3"
            assert await process.desk.peek(KEPT, limit=1, lookup_id=first.lookup_id) == [first]
            with refused(0xC00E0088):
                await process.desk.peek(KEPT, limit=1, lookup_id=12345)
            with refused(0xC00E0003):
                await process.desk.peek("private$\\nobody", limit=1)
            handle = process.service.queues.handles.open(KEPT, Access.RECEIVE)
            process.service.queues.reading.receive(handle, 1, now())
            (locked, _) = await process.desk.peek(KEPT, limit=2)
            assert locked.is_locked
            process.service.close(handle)
            nothing_is_left(process)

    asyncio.run(peek())


def test_looking_at_names_makes_no_queues(world: World) -> None:
    """Whoever may look may ask for any name."""

    async def look() -> None:
        async with world.running() as process:
            for number in range(50):
                assert await process.desk.peek(f"{KEPT};{number}", limit=1) == []
            assert process.service.queues.find(KEPT).subqueues == []
            (info,) = [q for q in process.desk.queues() if q.name == KEPT]
            assert info.subqueues == {}

    asyncio.run(look())


def test_queues(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    world = World(kafka, tmp_path, journal=unique("journal"), quota_kb=50)

    async def look() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2, 3)))
            await process.desk.receive(KEPT)
            (held, _) = await process.desk.peek(KEPT, limit=2)
            await process.desk.move(KEPT, held.lookup_id, RETRY)
            await until(lambda: process.depth(f"{KEPT};journal") == 1)
            found = {info.name: info for info in process.desk.queues()}
            info = found[KEPT]
            assert (info.mode, info.messages, info.subqueues) == ("retain", 1, {"retry": 1})
            assert (info.journal_messages, info.quota_kb) == (1, 50)
            system = {"system$;deadletter", "system$;deadxact", "system$;journal"}
            assert found.keys() == {KEPT, *system}
            assert {found[name].mode for name in system} == {"system"}

    asyncio.run(look())


# -- receiving --------------------------------------------------------------------------------


def test_receive_takes_the_first(world: World) -> None:
    async def receive() -> None:
        async with world.running() as process:
            assert await process.desk.receive(KEPT) is None
            await process.send(*numbered((1, 2)), *numbered((3,), priority=7))
            for body in (b"3", b"1", b"2"):
                held = await process.desk.receive(KEPT)
                assert held is not None
                assert held.message.body == body
                assert not held.is_locked
            assert await process.desk.receive(KEPT, wait_s=0.05) is None
            with refused(0xC00E0088):
                await process.desk.receive(KEPT, lookup_id=77)
            nothing_is_left(process)
            assert [r for r, _ in process.removed] == ["ACK_RECEIVE"] * 3

    asyncio.run(receive())


def test_who_waits_gets_what_comes_first_come_first(world: World) -> None:
    """DM-23"""

    async def wait() -> None:
        async with world.running() as process:
            first = asyncio.create_task(process.desk.receive(KEPT, wait_s=60))
            await waiting(process, 1)
            second = asyncio.create_task(process.desk.receive(KEPT, wait_s=60))
            await waiting(process, 2)
            await process.submit(numbered((1, 2)))
            found = await asyncio.wait_for(asyncio.gather(first, second), 30)
            assert [held.message.body for held in found if held] == [b"1", b"2"]
            nothing_is_left(process)

    asyncio.run(wait())


def test_cancelled_while_it_waits_has_taken_nothing(world: World) -> None:
    async def cancel() -> None:
        async with world.running() as process:
            task = asyncio.create_task(process.desk.receive(KEPT, wait_s=60))
            await waiting(process)
            await cancelled(task)
            nothing_is_left(process)
            await process.send(*numbered((1,)))
            assert await process.bodies() == [b"1"]

    asyncio.run(cancel())


def test_cancelled_before_it_is_confirmed_gives_it_back(world: World) -> None:
    """DM-21, DM-22: to its old place."""

    async def cancel() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2)))
            read, reading = process.service.reader.read, asyncio.Event()

            async def hang(_: object) -> Any:
                reading.set()
                await asyncio.Event().wait()

            process.service.reader.read = hang  # type: ignore[method-assign,assignment]
            task = asyncio.create_task(process.desk.receive(KEPT))
            await reading.wait()
            assert len(process.service.queues._stock.locks) == 1
            await cancelled(task)
            process.service.reader.read = read  # type: ignore[method-assign]
            nothing_is_left(process)
            assert await process.bodies() == [b"1", b"2"]

    asyncio.run(cancel())


def test_cancelled_after_it_was_confirmed_is_too_late(world: World) -> None:
    """DM-17: one outcome, and it is the one that is under way to Kafka."""

    async def cancel() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2)))
            task = asyncio.create_task(process.desk.receive(KEPT))
            await until(lambda: process.service._settling)
            await cancelled(task)
            await until(lambda: process.depth() == 1)
            await until(lambda: not process.service._settling)
            nothing_is_left(process)
            assert await process.bodies() == [b"2"]

    asyncio.run(cancel())


def test_kafka_away_when_the_message_is_read(world: World) -> None:
    async def away() -> None:
        async with world.running() as process:
            await process.send(*numbered((1,)))
            read = process.service.reader.read

            async def fail(_: object) -> Any:
                raise SinkUnavailable("Kafka: away")

            process.service.reader.read = fail  # type: ignore[method-assign,assignment]
            with pytest.raises(SinkUnavailable, match="away"):
                await process.desk.receive(KEPT)
            process.service.reader.read = read  # type: ignore[method-assign]
            nothing_is_left(process)
            assert await process.bodies() == [b"1"]

    asyncio.run(away())


# -- moving, emptying, making -----------------------------------------------------------------


def test_move_there_and_back(world: World) -> None:
    """DM-29: a new lookup id each time."""

    async def move() -> None:
        async with world.running() as process:
            await process.send(*numbered((1, 2)))
            (first, _) = await process.desk.peek(KEPT, limit=2)
            there = await process.desk.move(KEPT, first.lookup_id, RETRY)
            (moved,) = await process.desk.peek(RETRY, limit=9)
            assert (moved.lookup_id, moved.moves) == (there, 1)
            assert there > first.lookup_id
            await process.desk.move(RETRY, there, KEPT)
            assert await process.bodies() == [b"2", b"1"]  # it came last
            with refused(0xC000000D):
                await process.desk.move(KEPT, 1, KEPT)
            with refused(0xC00E0088):
                await process.desk.move(KEPT, first.lookup_id, RETRY)
            nothing_is_left(process)

    asyncio.run(move())


def test_a_purge_of_ten_thousand_with_readers(world: World) -> None:
    """DM-27: what a reader holds goes with C001, whatever he answers."""

    async def purge() -> None:
        async with world.running() as process:
            await process.send(*numbered(range(1, 10_001)))
            queues = process.service.queues
            holder = queues.handles.open(KEPT, Access.RECEIVE)
            queues.reading.receive(holder, 1, now())
            assert await asyncio.wait_for(process.desk.purge(KEPT), 120) == 9_999
            assert process.depth() == 1
            process.service.carry_out(queues.answering.end(holder, 1, now(), delete=False))
            await until(lambda: process.depth() == 0)
            assert process.removed == [("NACK_Q_PURGED", False)] * 10_000
            process.service.close(holder)
            nothing_is_left(process)
            fronts = dict(process.pump.shard.fronts)
            assert fronts[world.topic, 0] >= 10_000
            assert not process.pump.shard.fronts._keys  # nothing behind the front

    asyncio.run(purge())


def test_create_use_delete_create_again(world: World) -> None:
    async def create() -> None:
        async with world.running() as process:
            desk = process.desk
            await desk.create(LATE, transactional=False, topic=None, journal=None)
            assert world.edits == [(LATE, {"mode": "retain", "transactional": "false"})]
            with refused(0xC00E0005):
                await desk.create(LATE, transactional=False, topic=None, journal=None)
            await process.send(*numbered((1, 2), destination=f"DIRECT=OS:bridge01\\{LATE}"))
            assert await desk.delete(LATE) == 2
            assert [r for r, _ in process.removed] == ["NACK_Q_DELETED"] * 2
            with refused(0xC00E0003):
                await desk.delete(LATE)
            await desk.create(LATE, transactional=False, topic=None, journal=None)
            assert await process.bodies(LATE) == []
            process.service._check()
            nothing_is_left(process)

    asyncio.run(create())


def test_who_waits_at_a_queue_that_is_deleted(world: World) -> None:
    """MS-MQDMPR 3.1.7.1.4: QUEUE_NOT_AVAILABLE"""

    async def delete() -> None:
        async with world.running() as process:
            task = asyncio.create_task(process.desk.receive(KEPT, wait_s=60))
            await waiting(process)
            assert await process.desk.delete(KEPT) == 0
            with refused(0xC00E004B):
                await task
            nothing_is_left(process)

    asyncio.run(delete())


def test_only_whole_queues_can_be_deleted(world: World) -> None:
    async def delete() -> None:
        async with world.running() as process:
            for name in (RETRY, f"{KEPT};journal", "system$;deadletter"):
                with refused(0xC00E0020):
                    await process.desk.delete(name)
            assert world.edits == []

    asyncio.run(delete())


def test_a_queue_that_is_still_being_deleted(world: World) -> None:
    """Its name is not free yet, and nothing breaks when the mappings have it again."""

    async def delete() -> None:
        async with world.running() as process:
            await process.send(*numbered((1,)))
            gate, publish = asyncio.Event(), process.sink.publish

            async def hold(unit: Any, *, traced: bool = False) -> None:
                await gate.wait()
                await publish(unit, traced=traced)

            process.sink.publish = hold  # type: ignore[method-assign]
            before = list(world.queues)
            deleting = asyncio.create_task(process.desk.delete(KEPT))
            await until(lambda: process.service.queues.is_ending(KEPT))
            with refused(0xC00E0005):
                await process.desk.create(KEPT, transactional=False, topic=None, journal=None)
            process.catalogue = type(process.catalogue)(process.catalogue.local, before)
            process.service.define()
            gate.set()
            assert await asyncio.wait_for(deleting, 30) == 1
            process.service.define()
            assert await process.bodies() == []

    asyncio.run(delete())
