"""Reading back what was committed for readers: in order, once, through every outage."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.adapters.kafka import held_follower as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.held_follower import Batch, HeldFollower, Partition
from bridge.core.mapping import headers_of
from bridge.core.ports import Record
from bridge.core.retained.keeping import marked
from tests.core.messages import LOCAL, plain
from tests.support.kafka import create_topic, transactional_producer, unique
from tests.support.waiting import until

pytestmark = pytest.mark.kafka
KEPT = "private$\\plain"


class World:
    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.bootstrap = kafka.bootstrap_servers
        self.topic = create_topic(self.bootstrap, unique("followed"))
        self.batches: list[Batch] = []
        self.faults: list[Exception] = []

    @property
    def ordinals(self) -> list[int]:
        return [row.ordinal for batch in self.batches for row in batch.rows]

    @property
    def position(self) -> int:
        return max((b.positions.get((self.topic, 0), 0) for b in self.batches), default=0)

    def ended(self, at: Partition) -> bool:
        return any(at in batch.ended for batch in self.batches)

    def write(self, numbers: Iterable[int], *, topic: str = "", commits: bool = True) -> None:
        producer = transactional_producer(self.bootstrap, unique("writer"))
        producer.begin_transaction()
        for number in numbers:
            message = plain(number)
            bare = Record(self.topic, message.body, headers=headers_of(message))
            headers: Any = marked(bare, LOCAL, KEPT, number).headers
            producer.produce(topic or self.topic, bare.value, headers=headers, partition=0)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)

    @asynccontextmanager
    async def following(self, start: int = 0) -> AsyncIterator[HeldFollower]:
        settings = {"bootstrap.servers": self.bootstrap}
        made = HeldFollower(
            settings, unique("group"), LOCAL, 0, self.batches.append, self.faults.append
        )
        made.start()
        made.follow({(self.topic, 0): start})
        try:
            yield made
        finally:
            await asyncio.to_thread(made.stop)
        assert self.faults == []


@pytest.fixture
def world(kafka: EmbeddedKafka) -> World:
    return World(kafka)


def test_what_is_committed_and_nothing_else(world: World) -> None:
    """D1: consumers read committed records. The position passes over what was aborted."""
    world.write((1, 2))
    world.write((3,), commits=False)
    world.write((4,))

    async def play() -> None:
        async with world.following():
            await until(lambda: world.ended((world.topic, 0)))
            assert world.ordinals == [1, 2, 4]
            await until(lambda: world.position >= 7)  # with three markers
            await asyncio.to_thread(world.write, (5,))
            await until(lambda: world.ordinals == [1, 2, 4, 5])

    asyncio.run(play())


def test_from_a_position_on(world: World) -> None:
    world.write((1, 2, 3))

    async def play() -> None:
        async with world.following(2):
            await until(lambda: world.ended((world.topic, 0)))
            assert world.ordinals == [3]

    asyncio.run(play())


def test_a_topic_made_later(world: World) -> None:
    async def play() -> None:
        async with world.following() as follower:
            late = await asyncio.to_thread(create_topic, world.bootstrap, unique("late"))
            await asyncio.to_thread(world.write, (1,), topic=late)
            follower.follow({(late, 0): 0})
            await until(lambda: world.ordinals == [1])
            follower.follow({(late, 0): 0, (world.topic, 0): 0})  # once is enough
            await asyncio.to_thread(world.write, (2,))
            await until(lambda: world.ordinals == [1, 2])

    asyncio.run(play())


def test_one_that_is_missing_is_named_and_found_later(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOOK_AGAIN_S", 0.1)

    async def play() -> None:
        async with world.following() as follower:
            missing = unique("missing")
            follower.follow({(missing, 0): 0})
            await until(lambda: world.ended((missing, 0)))
            await asyncio.to_thread(create_topic, world.bootstrap, missing)
            await asyncio.to_thread(world.write, (1,), topic=missing)
            await until(lambda: world.ordinals == [1])

    asyncio.run(play())
    assert "is not in Kafka any more" in caplog.text


def test_a_broker_that_comes_back(mortal: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing twice, nothing left out."""
    monkeypatch.setattr(module, "RETRY_S", 0.2)
    world = World(mortal)
    world.write((1, 2))

    async def play() -> None:
        async with world.following():
            await until(lambda: world.ordinals == [1, 2])
            await asyncio.to_thread(mortal.kill)
            await asyncio.to_thread(mortal.start)
            await asyncio.to_thread(world.write, (3,))
            await until(lambda: len(world.ordinals) >= 3, 60)
            assert world.ordinals == [1, 2, 3]

    asyncio.run(play())


def test_a_slow_loop_is_not_buried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more batches wait than it was made for."""
    monkeypatch.setattr(module, "_PER_CALL", 1)
    world.write(range(1, 50))
    handed: list[Callable[[], None]] = []

    async def play() -> None:
        async with world.following() as follower:
            call = follower._loop.call_soon_threadsafe

            follower._call = handed.append  # type: ignore[method-assign,assignment]
            already = len(world.batches)
            await until(lambda: len(handed) + already >= module._AHEAD)
            await asyncio.sleep(0)
            assert len(handed) <= module._AHEAD
            for what in list(handed):
                call(what)
            del follower._call

    asyncio.run(play())


def test_a_bug_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread must not end in silence."""

    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(module, "row_in", broken)
    world.write((1,))

    async def play() -> None:
        async with world.following():
            await until(lambda: world.faults)
            assert [str(fault) for fault in world.faults] == ["a bug of ours"]
            world.faults.clear()

    asyncio.run(play())
