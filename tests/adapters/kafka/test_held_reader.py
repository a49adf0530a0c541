"""Fetching records of waiting messages from a real Kafka."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka import held_reader as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.held_reader import HeldReader, RecordLost
from bridge.core.retained.rows import RecordAt
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import create_topic, transactional_producer, unique

pytestmark = pytest.mark.kafka


class Topic:
    """Two partitions; the value of a record is its number."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.bootstrap = kafka.bootstrap_servers
        self.name = create_topic(self.bootstrap, unique("held"), 2)
        self.settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap}

    def write(self, count: int, partition: int = 0, size: int = 0) -> None:
        """In one transaction, whose marker takes an offset, too."""
        producer = transactional_producer(self.bootstrap, unique("writer"))
        producer.begin_transaction()
        for number in range(count):
            value = b"%d" % number + b"." * size
            producer.produce(self.name, value, headers=[("n", b"%d" % number)], partition=partition)
        producer.commit_transaction(30)

    def at(self, offset: int, partition: int = 0) -> RecordAt:
        return RecordAt(self.name, partition, offset)

    def delete_before(self, offset: int) -> None:
        place, admin = TopicPartition(self.name, 0, offset), AdminClient(self.settings)
        admin.delete_records([place])[place].result(30)


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> Topic:
    return Topic(kafka)


@pytest.fixture
def reader(topic: Topic) -> Iterator[HeldReader]:
    made = HeldReader(topic.settings, unique("reader"))
    yield made
    made.stop()


def read(reader: HeldReader, places: Iterable[RecordAt]) -> list[bytes]:
    wanted = list(places)
    found = asyncio.run(reader.read(wanted))
    return [found[at].value for at in wanted]


def test_any_order_and_both_partitions(topic: Topic, reader: HeldReader) -> None:
    topic.write(10)
    topic.write(5, partition=1)
    places = [topic.at(7), topic.at(0), topic.at(4, 1), topic.at(9), topic.at(0, 1), topic.at(7)]
    assert read(reader, places) == [b"7", b"0", b"4", b"9", b"0", b"7"]
    (record,) = asyncio.run(reader.read([topic.at(3)])).values()
    assert record.headers == {"n": b"3"}


def test_what_came_along_is_at_hand_without_kafka(topic: Topic, reader: HeldReader) -> None:
    topic.write(10)
    read(reader, [topic.at(0)])
    read(reader, [topic.at(9)])
    reader._settings = {"bootstrap.servers": "127.0.0.1:1"}
    reader._close()
    assert read(reader, map(topic.at, range(10))) == [b"%d" % n for n in range(10)]


@pytest.mark.parametrize("size", [0, 2000])
def test_the_cache_has_a_bound(
    topic: Topic, reader: HeldReader, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Also of records without a body: headers and the record itself count."""
    monkeypatch.setattr(module, "CACHE_BYTES", 30_000)
    topic.write(200, size=size)
    for offset in range(200):
        read(reader, [topic.at(offset)])
        assert reader._size <= 30_000
        assert len(reader._cache) <= 30_000 // module._OVERHEAD
    assert len(read(reader, [topic.at(0)])) == 1  # one that has left it


def test_what_retention_took_is_lost(topic: Topic, reader: HeldReader) -> None:
    topic.write(10)
    topic.delete_before(4)
    with pytest.raises(RecordLost, match=f"{topic.name}-0 has no record 3 any more") as caught:
        read(reader, [topic.at(3)])
    assert caught.value.at == topic.at(3)
    assert read(reader, [topic.at(4)]) == [b"4"]  # and the reader goes on


def test_a_partition_that_was_emptied(topic: Topic, reader: HeldReader) -> None:
    topic.write(3)
    topic.delete_before(4)  # the marker, too
    with pytest.raises(RecordLost):
        read(reader, [topic.at(2)])


def test_what_is_yet_to_come_is_not_lost(
    topic: Topic, reader: HeldReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica may be behind: nobody may take that for the end of a message."""
    monkeypatch.setattr(module, "READ_S", 1.0)
    topic.write(1)
    with pytest.raises(SinkUnavailable) as caught:
        read(reader, [topic.at(99)])
    assert not isinstance(caught.value, RecordLost)


def test_kafka_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_S", 0.5)
    reader = HeldReader({"bootstrap.servers": "127.0.0.1:1"}, "nobody")
    with pytest.raises(SinkUnavailable) as caught:
        read(reader, [RecordAt("held", 0, 0)])
    assert not isinstance(caught.value, RecordLost)
    reader.stop()
