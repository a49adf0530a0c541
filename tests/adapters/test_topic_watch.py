"""Topics that take nothing are closed alone, and opened again."""

import asyncio
from collections.abc import Collection

import msgspec
import pytest

from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka.topic_states import TopicState
from bridge.adapters.memory import MemoryLog, MemoryShardSink
from bridge.adapters.telemetry import Telemetry
from bridge.adapters.topic_watch import SHORT_LOOKS, TRY_AGAIN_S, TopicWatch
from bridge.core.catalogue import Catalogue, TopicLimits
from bridge.model.errors import SinkUnavailable
from bridge.model.verdict import Outcome
from tests.core.messages import ORDERS, PLAIN, plain, shard, step

OWN = {"own.state": 8 << 20}


class World:
    def __init__(self) -> None:
        self.pump = ShardPump(shard(), MemoryShardSink(MemoryLog()), Telemetry())
        self.catalogue: Catalogue = self.pump.shard._catalogue
        self.topics = sorted({queue.topic for queue in self.catalogue.queues})
        self.bad: dict[str, TopicState] = {}
        self.away = False
        self.now = 0.0
        self.watch = TopicWatch(self, lambda: self.catalogue, OWN, [self.pump], lambda: self.now)

    def look(self, names: Collection[str]) -> dict[str, TopicState]:
        if self.away:
            raise SinkUnavailable("Kafka: away")
        return {name: self.bad.get(name, TopicState()) for name in names}


@pytest.fixture
def world() -> World:
    return World()


def topic_of(world: World, destination: str) -> str:
    queue = world.catalogue.find(destination)
    assert queue is not None
    return queue.topic


def test_messages_to_a_topic_that_is_gone_wait_and_others_do_not(world: World) -> None:
    gone = topic_of(world, ORDERS)
    world.bad = {gone: TopicState("is gone")}
    asyncio.run(world.watch.look())
    first, other = world.pump.shard.admit([step(1)]), world.pump.shard.admit([plain(1)])
    assert [(v.outcome, v.reason) for v in first] == [(Outcome.BUSY, "topic-unavailable")]
    assert [v.outcome for v in other] == [Outcome.ACCEPTED]
    assert any(gone in told and "is gone" in told for told in world.watch.complaints())
    world.bad = {}
    asyncio.run(world.watch.look())
    assert [v.outcome for v in world.pump.shard.admit([step(1)])] == [Outcome.ACCEPTED]
    assert world.watch.complaints() == []


def test_a_kafka_that_does_not_answer_changes_nothing(world: World) -> None:
    gone = topic_of(world, PLAIN)
    world.bad = {gone: TopicState("is gone")}
    asyncio.run(world.watch.look())
    world.away = True
    asyncio.run(world.watch.look())
    assert gone in world.catalogue.closed


def test_missing_brokers_count_when_they_stay_away(world: World) -> None:
    short = topic_of(world, PLAIN)
    world.bad = {short: TopicState("has no leader", is_short=True)}
    for _ in range(SHORT_LOOKS - 1):
        asyncio.run(world.watch.look())
        assert short not in world.catalogue.closed
    asyncio.run(world.watch.look())
    assert short in world.catalogue.closed


def test_if_our_topics_miss_brokers_too_all_is_held(world: World) -> None:
    state = TopicState("has no leader", is_short=True)
    world.bad = {topic_of(world, PLAIN): state, "own.state": state}
    for _ in range(SHORT_LOOKS + 1):
        asyncio.run(world.watch.look())
    assert world.catalogue.closed == {}


def test_what_a_transaction_says_is_tried_again_later_and_later(world: World) -> None:
    topic = topic_of(world, PLAIN)
    for pause in TRY_AGAIN_S:
        world.watch.refused(topic, "INVALID_TIMESTAMP: no")
        world.now += pause - 0.1
        asyncio.run(world.watch.look())
        assert topic in world.catalogue.closed
        world.now += 0.2
        asyncio.run(world.watch.look())
        assert topic not in world.catalogue.closed


def test_a_topic_of_ours_is_named_apart(world: World) -> None:
    world.bad = {"own.state": TopicState("is gone")}
    asyncio.run(world.watch.look())
    assert world.watch.own_complaints() == ["our topic own.state is gone"]
    assert world.watch.complaints() == []
    world.bad = {"own.state": TopicState(limits=TopicLimits(1, 1000))}
    asyncio.run(world.watch.look())
    assert "max.message.bytes" in world.watch.own_complaints()[0]


def test_new_limits_are_learnt(world: World) -> None:
    topic = topic_of(world, PLAIN)
    known = TopicLimits(4)
    world.catalogue.learn(topic, known)
    lower = msgspec.structs.replace(known, max_bytes=100)
    world.bad = {topic: TopicState(limits=lower)}
    asyncio.run(world.watch.look())
    assert world.catalogue.limits_of(topic) == lower
    queue = world.catalogue.find(PLAIN)
    assert queue is not None
    assert queue.max_bytes == 100
    more = msgspec.structs.replace(lower, partitions=9)  # streams stay where they are
    world.bad = {topic: TopicState(limits=more)}
    asyncio.run(world.watch.look())
    assert world.catalogue.limits_of(topic) == lower


def test_all_closed(world: World) -> None:
    assert not world.watch.is_all_closed()
    world.bad = {topic: TopicState("is gone") for topic in world.topics}
    asyncio.run(world.watch.look())
    assert world.watch.is_all_closed()
