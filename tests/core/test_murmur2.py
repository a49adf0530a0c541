"""A key lies where Kafka's own clients put it: the vectors of its UtilsTest, and a producer."""

import pytest
from confluent_kafka import Message, Producer
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.core.murmur2 import murmur2, partition_of
from tests.support.kafka import TIMEOUT_S, create_topic, unique


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_vectors_of_kafka(data: bytes, signed: int) -> None:
    """org.apache.kafka.common.utils.UtilsTest.testMurmur2"""
    assert murmur2(data) == signed & 0xFFFFFFFF


@pytest.mark.parametrize("length", range(9))
def test_every_tail_counts(length: int) -> None:
    data = bytes(range(200, 200 + length))
    others = {murmur2(data[:at] + b"\0" + data[at + 1 :]) for at in range(length)}
    assert len(others) == length
    assert murmur2(data) not in others
    assert murmur2(data + b"\0") != murmur2(data)


@given(st.binary(max_size=50), st.integers(1, 10_000))
def test_any_key_has_a_partition(key: bytes, partitions: int) -> None:
    assert 0 <= murmur2(key) <= 0xFFFFFFFF
    assert 0 <= partition_of(key, partitions) < partitions


def test_the_sign_is_dropped_not_turned() -> None:  # Utils.toPositive: & 0x7fffffff
    assert partition_of(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
    assert partition_of(b"21", 1000) != 973932308 % 1000


def test_keys_spread() -> None:
    counts = [0] * 10
    for number in range(5000):
        counts[partition_of(b"customer-%d" % number, 10)] += 1
    assert min(counts) > 400
    assert max(counts) < 600


@pytest.mark.kafka
def test_a_producer_of_kafka_puts_it_there_too(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("murmur2"), 17)
    keys = [b"k" * n for n in range(9)] + [b"customer-%d" % n for n in range(300)]
    keys += ["Größe".encode(), b"\0", b"\xff" * 7, bytes(range(256))]
    found: dict[bytes, int] = {}

    def on_delivery(error: object, message: Message) -> None:
        assert error is None
        found[bytes(message.key() or b"")] = message.partition() or 0

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "partitioner": "murmur2"})
    for key in keys:
        producer.produce(topic, b"v", key, on_delivery=on_delivery)
    assert producer.flush(TIMEOUT_S) == 0
    assert found == {key: partition_of(key, 17) for key in keys}
