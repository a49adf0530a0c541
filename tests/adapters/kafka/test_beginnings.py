"""Where partitions begin, asked of a real Kafka."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka import beginnings as module
from bridge.adapters.kafka.beginnings import Beginnings
from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.support.kafka import create_topic, transactional_producer, unique


@pytest.mark.kafka
def test_what_was_deleted_is_before_the_beginning(kafka: EmbeddedKafka) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers}
    topic = create_topic(kafka.bootstrap_servers, unique("begins"), 2)
    producer = transactional_producer(kafka.bootstrap_servers, unique("writer"))
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic, b"%d" % number, partition=1)
    producer.commit_transaction(30)
    place, admin = TopicPartition(topic, 1, 3), AdminClient(settings)
    admin.delete_records([place])[place].result(30)

    async def play() -> None:
        asked = Beginnings(settings, "test")
        wanted = [(topic, 0), (topic, 1), (topic, 9), (unique("absent"), 0)]
        assert await asked.ask(wanted) == {(topic, 0): 0, (topic, 1): 3}
        assert await asked.ask([]) == {}
        asked.stop()

    asyncio.run(play())


def test_a_kafka_that_is_away_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.2)

    async def play() -> None:
        asked = Beginnings({"bootstrap.servers": "127.0.0.1:1"}, "test")
        assert await asked.ask([("topic", 0)]) == {}
        asked.stop()

    asyncio.run(play())
