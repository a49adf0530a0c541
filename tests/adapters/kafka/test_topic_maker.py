"""Topics that only a message can name, on a real broker: found, made within bounds, or refused."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka import topic_maker as module
from bridge.adapters.kafka import topics
from bridge.adapters.kafka.client import MAX_MESSAGE_BYTES
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topic_maker import TopicMaker
from bridge.core.catalogue import UNKNOWN, Catalogue, TopicLimits
from bridge.model.errors import SinkUnavailable
from tests.core.messages import LOCAL
from tests.support.kafka import create_topic, unique

pytestmark = pytest.mark.kafka
REFUSED = TopicLimits(UNKNOWN)
MADE = TopicLimits(4, MAX_MESSAGE_BYTES)  # the broker's own number of partitions


def play(scene: Callable[[TopicMaker], Awaitable[object]], bootstrap: str) -> Catalogue:
    async def run() -> Catalogue:
        maker = TopicMaker({"bootstrap.servers": bootstrap}, Catalogue(LOCAL, ()))
        try:
            await scene(maker)
        finally:
            maker.stop()
        return maker.catalogue

    return asyncio.run(run())


def existing(kafka: EmbeddedKafka) -> set[str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    return set(admin.list_topics(timeout=30).topics)


def test_what_is_there_is_found_and_what_is_missing_is_made(kafka: EmbeddedKafka) -> None:
    old = create_topic(kafka.bootstrap_servers, unique("old"), 7, max_message_bytes="1000")
    new = unique("new")
    known = play(lambda maker: maker.prepare({old, new}), kafka.bootstrap_servers)
    assert known.limits_of(old) == TopicLimits(7, 1000)  # it keeps its settings
    assert known.limits_of(new) == MADE
    assert new in existing(kafka)


def test_again_is_the_same(kafka: EmbeddedKafka) -> None:
    new = unique("new")

    async def scene(maker: TopicMaker) -> None:
        await asyncio.gather(*(maker.prepare({new}) for _ in range(3)))  # several shards
        await maker.prepare({new})

    assert play(scene, kafka.bootstrap_servers).limits_of(new) == MADE


def test_a_name_that_kafka_refuses(kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture) -> None:
    """Its messages are refused, the others' are not."""
    new, illegal = unique("new"), f"{unique('no')}/such/topic"
    with caplog.at_level(logging.ERROR, module.__name__):
        known = play(
            lambda maker: maker.prepare({new, illegal, "x" * 250}), kafka.bootstrap_servers
        )
    assert known.limits_of(new) == MADE
    assert known.limits_of(illegal) == known.limits_of("x" * 250) == REFUSED
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert all("its messages are refused" in line and "\n" not in line for line in told)


@pytest.mark.parametrize(
    "code",
    [KafkaError.REQUEST_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.INVALID_REPLICATION_FACTOR],
)
def test_what_may_pass_is_tried_again(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A broker that is slow, or not enough of them for the moment: nobody's message is refused."""
    new = unique("new")
    make = topics._create

    def fail(*_: object) -> None:
        raise KafkaException(KafkaError(code))

    async def scene(maker: TopicMaker) -> None:
        monkeypatch.setattr(topics, "_create", fail)
        with pytest.raises(SinkUnavailable):
            await maker.prepare({new})
        assert maker.catalogue.limits_of(new) is None
        monkeypatch.setattr(topics, "_create", make)
        await maker.prepare({new})

    assert play(scene, kafka.bootstrap_servers).limits_of(new) == MADE


def test_a_name_that_kafka_takes_for_another(kafka: EmbeddedKafka) -> None:
    """`a.b` and `a_b` collide in Kafka's metrics: it refuses the second one."""
    name = unique("a")

    async def scene(maker: TopicMaker) -> None:
        await maker.prepare({f"{name}.b"})
        await maker.prepare({f"{name}_b"})

    known = play(scene, kafka.bootstrap_servers)
    assert known.limits_of(f"{name}.b") == MADE
    assert known.limits_of(f"{name}_b") == REFUSED


def test_senders_cannot_fill_a_cluster(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_MADE", 3)
    old = create_topic(kafka.bootstrap_servers, unique("old"))
    names = [unique("many") for _ in range(5)]
    denied: list[set[str]] = []

    async def scene(maker: TopicMaker) -> None:
        denied.append(await maker.prepare(set(names[:2]), "10.0.0.1"))
        denied.append(await maker.prepare(set(names[2:]), "10.0.0.2"))
        denied.append(await maker.prepare({names[0]}, "10.0.0.3"))  # it is there now
        denied.append(await maker.prepare({old}, "10.0.0.2"))  # and what is there costs nothing
        assert maker.made == 3

    with caplog.at_level(logging.ERROR, module.__name__):
        known = play(scene, kafka.bootstrap_servers)
    made = existing(kafka) & set(names)
    assert len(made) == 3
    assert denied == [set(), set(names) - made, set(), set()]
    for name in names:
        assert known.limits_of(name) == (MADE if name in made else None)
    assert known.limits_of(old) not in (None, REFUSED)
    assert caplog.text.count("messages to further ones are refused") == 1  # a flood is one line


def test_one_peer_cannot_use_up_the_topics_of_all(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MADE_BY_PEER", 2)
    invented = [unique("invented") for _ in range(4)]
    stranger, victim = "192.0.2.66", "10.1.2.3"

    async def scene(maker: TopicMaker) -> None:
        assert len(await maker.prepare(set(invented), stranger)) == 2
        refused = next(name for name in invented if maker.catalogue.limits_of(name) is None)
        # The very name that the stranger may not have, and one of the victim's own.
        assert await maker.prepare({refused}, victim) == set()
        own = unique("own")
        assert await maker.prepare({own}, victim) == set()
        assert maker.catalogue.limits_of(refused) == maker.catalogue.limits_of(own) == MADE
        assert await maker.prepare({own, refused}, stranger) == set()  # they are there

    play(scene, kafka.bootstrap_servers)


def test_a_peer_at_its_bound_does_not_keep_kafka_busy(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that came to the same shard would wait behind each of its messages."""
    monkeypatch.setattr(module, "MAX_MADE_BY_PEER", 1)
    asked: list[set[str]] = []
    look = topics.ensure_mapped

    def counted(*args: Any) -> Any:
        asked.append(args[1])
        return look(*args)

    async def scene(maker: TopicMaker) -> None:
        await maker.prepare({unique("first")}, "192.0.2.66")
        monkeypatch.setattr(module, "ensure_mapped", counted)
        for _ in range(100):
            name = unique("more")
            assert await maker.prepare({name}, "192.0.2.66") == {name}
        assert asked == []
        monkeypatch.setattr(module, "FRESH_S", 0.0)  # the list is old
        assert await maker.prepare({name}, "192.0.2.66") == {name}
        assert asked == [{name}]

    play(scene, kafka.bootstrap_servers)


def test_the_bound_is_one_for_all_shards(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MADE", 1)
    names = {unique("race") for _ in range(4)}

    async def scene(maker: TopicMaker) -> None:
        await asyncio.gather(*(maker.prepare({name}) for name in names))

    play(scene, kafka.bootstrap_servers)
    assert len(existing(kafka) & names) == 1


def test_new_mappings_learn_what_was_asked_for_by_the_old(
    kafka: EmbeddedKafka,
) -> None:  # a reload while topics are looked at
    new, catalogue = unique("new"), Catalogue(LOCAL, ())

    async def scene(maker: TopicMaker) -> None:
        task = asyncio.create_task(maker.prepare({new}))
        await asyncio.sleep(0)
        maker.catalogue = catalogue
        await task

    assert play(scene, kafka.bootstrap_servers) is catalogue
    assert catalogue.limits_of(new) == MADE


def test_no_kafka_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a refusal: nothing is learned, it is asked again."""
    monkeypatch.setattr(topics, "CALL_TIMEOUT_S", 0.3)

    async def scene(maker: TopicMaker) -> None:
        with pytest.raises(SinkUnavailable, match="Kafka: preparing topics: "):
            await maker.prepare({"a"})

    assert play(scene, "127.0.0.1:1").limits_of("a") is None
