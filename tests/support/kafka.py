"""Topics of the real broker: make one, read one to its end."""

import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.waiting import eventually

TIMEOUT_S = 30.0


def unique(name: str) -> str:
    """A name that no other test uses."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **config: str) -> str:
    """Makes a topic and waits for its leaders; `max_message_bytes=…` is `max.message.bytes`."""
    admin = _admin(bootstrap)
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(TIMEOUT_S)
    eventually(lambda: len(_led_partitions(admin, topic)) == partitions)
    return topic


def read_topic(
    bootstrap: str,
    topic: str,
    isolation: str = "read_committed",
    *,
    open_transactions: bool = False,
) -> list[Message]:
    """Everything in the topic now, by partition and offset.

    A commit returns before its markers are written, so a reader of committed records may meet an
    end that is not yet the last one. Hence all records that are there now are waited for, unless
    a transaction is left open on purpose (`open_transactions`).
    """
    ends = _high_watermarks(bootstrap, topic)
    goal = dict.fromkeys(ends, 0) if open_transactions else ends
    consumer = _consumer(bootstrap, isolation)
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in ends])
        messages = list(_until(consumer, goal))
    finally:
        consumer.close()
    return sorted(messages, key=lambda message: (message.partition(), message.offset()))


def transactional_producer(bootstrap: str, transactional_id: str, **config: Any) -> Producer:
    """An initialised one; `linger_ms=5` is `linger.ms`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **settings}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def _until(consumer: Consumer, goal: dict[int, int]) -> Iterable[Message]:
    """The messages up to an end of each partition that is not before its goal."""
    waiting = dict(goal)
    while waiting:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"not read to the end: {waiting}"
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            number, offset = message.partition(), message.offset()
            if number in waiting and offset is not None and offset >= waiting[number]:
                del waiting[number]
        else:
            raise AssertionError(str(error))


def _consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique("reader"),
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "fetch.message.max.bytes": 10 * 1024 * 1024,
        }
    )


def _high_watermarks(bootstrap: str, topic: str) -> dict[int, int]:
    partitions = _led_partitions(_admin(bootstrap), topic)
    assert partitions, f"no topic {topic}"
    consumer = _consumer(bootstrap, "read_uncommitted")
    try:
        return {number: _high_watermark(consumer, topic, number) for number in partitions}
    finally:
        consumer.close()


def _high_watermark(consumer: Consumer, topic: str, number: int) -> int:
    found = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)
    assert found is not None
    return found[1]


def _led_partitions(admin: AdminClient, topic: str) -> list[int]:
    found = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    return sorted(number for number, part in found.partitions.items() if part.leader >= 0)


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})
