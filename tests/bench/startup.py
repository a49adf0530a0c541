"""Many streams in the state topic, and how long it takes to read them with nothing else to do."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bridge.core.shard import shard_of
from bridge.core.streams import Streams
from bridge.model.guid import Guid
from bridge.model.verdict import Cursor

_DESTINATION = "DIRECT=TCP:127.0.0.1\\private$\\orders"
_SHARDS = 2  # the default; the bench's settings may say otherwise


def fill(bootstrap: str, topic: str, count: int, shards: int = _SHARDS) -> None:
    """`count` cursors of as many senders, as the bridge writes them."""
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 500_000})
    now = int(time.time())
    for number in range(1, count + 1):
        streams, source = Streams(), Guid.random()
        streams.advance((source, _DESTINATION), Cursor(now << 32 | 1, number))
        ((key, value),) = streams.take_changes().items()
        producer.produce(topic, value, key.encode(), shard_of(source, shards))
    assert producer.flush(60) == 0


def plain_read(bootstrap: str, topic: str, shards: int = _SHARDS) -> tuple[int, float]:
    """How many records, and seconds from a new consumer to the end of the topic."""
    started = time.monotonic()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain-read",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(shards)])
        found, ended = 0, set[int | None]()
        while len(ended) < shards:
            for message in consumer.consume(10_000, timeout=0.1):
                error = message.error()
                if error is None:
                    found += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise RuntimeError(str(error))
        return found, time.monotonic() - started
    finally:
        consumer.close()
