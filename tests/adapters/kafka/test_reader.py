"""To the end means: everything that anybody committed, whatever lies behind it."""

import time

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka import reader
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.reader import Tail, read_to_end
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import create_topic, transactional_producer, unique

pytestmark = pytest.mark.kafka


def values(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> list[bytes | None]:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    for _ in range(100):
        try:
            return [message.value() for message in read_to_end(settings, topic, partition)]
        except KafkaException as error:  # a topic that was just made; a sink would be opened again
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
    raise AssertionError("no leader")


def transaction(tx: Producer, topic: str, *some: str, commit: bool = True) -> None:
    tx.begin_transaction()
    for value in some:
        tx.produce(topic, value, partition=0)
    tx.flush(30)
    (tx.commit_transaction if commit else tx.abort_transaction)(30)


def test_an_empty_partition(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("empty"), partitions=2)
    assert values(kafka, topic) == []
    transaction(transactional_producer(kafka.bootstrap_servers, unique("tx")), topic, "a")
    assert values(kafka, topic, 1) == []


def test_markers_and_aborted_data_at_the_end(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("markers"))
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    transaction(tx, topic, "a", "b")  # the last offset is a marker
    assert values(kafka, topic) == [b"a", b"b"]
    transaction(tx, topic, "never", commit=False)  # the last records are aborted ones
    assert values(kafka, topic) == [b"a", b"b"]
    transaction(tx, topic, "c")
    assert values(kafka, topic) == [b"a", b"b", b"c"]


def test_nothing_but_aborted_data(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("aborted"))
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    transaction(tx, topic, "never", commit=False)
    assert values(kafka, topic) == []


def test_tombstones_are_shown(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("compacted"), cleanup_policy="compact")
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    tx.begin_transaction()
    tx.produce(topic, "1", "key")
    tx.produce(topic, None, "key")
    tx.produce(topic, b"", "empty")
    tx.commit_transaction(30)
    assert values(kafka, topic) == [b"1", None, b""]


def test_records_that_retention_took_away(kafka: EmbeddedKafka) -> None:
    """The seen topic: its beginning is gone, or all of it."""
    topic = create_topic(kafka.bootstrap_servers, unique("gone"))
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    transaction(tx, topic, "a", "b", "c")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def delete_before(offset: int) -> None:
        place = TopicPartition(topic, 0, offset)
        admin.delete_records([place])[place].result(30)

    delete_before(2)
    assert values(kafka, topic) == [b"c"]
    delete_before(4)  # three records and the marker
    assert values(kafka, topic) == []


def test_many_records(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("many"))
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    some = [f"{n:05d}" for n in range(25_000)]
    transaction(tx, topic, *some)
    assert values(kafka, topic) == [value.encode() for value in some]


def test_a_hanging_transaction_is_told_in_one_line(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:  # section 6, condition 2: alarm
    monkeypatch.setattr(reader, "STUCK_AFTER_S", 0.5)
    topic = create_topic(kafka.bootstrap_servers, unique("stuck"))
    transaction(transactional_producer(kafka.bootstrap_servers, unique("tx")), topic, "a")
    hanging = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    hanging.begin_transaction()
    hanging.produce(topic, "b")
    hanging.flush(30)
    with pytest.raises(SinkUnavailable) as caught:
        values(kafka, topic)
    assert str(caught.value) == (
        f"Kafka: {topic}-0 cannot be read to its end (3): a transaction hangs in it; see "
        "'Hanging transactions' in the README before you abort it"
    )
    hanging.commit_transaction(30)
    assert values(kafka, topic) == [b"a", b"b"]


def test_no_such_topic_and_no_broker(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException):
        values(kafka, unique("nobody-made-me"))
    monkeypatch.setattr(reader, "CALL_TIMEOUT_S", 0.5)
    started = time.monotonic()
    with pytest.raises(KafkaException):  # never a bare TimeoutError: the sink would not know it
        list(read_to_end({"bootstrap.servers": "127.0.0.1:1"}, "topic", 0))
    assert time.monotonic() - started < 10


def test_a_tail_goes_on_where_it_stopped(kafka: EmbeddedKafka) -> None:
    """None twice and none left out, with aborted records and markers between."""
    topic = create_topic(kafka.bootstrap_servers, unique("tail"))
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    tail = Tail({"bootstrap.servers": kafka.bootstrap_servers}, topic, 0, group=unique("group"))
    try:
        found: list[list[bytes | None]] = []
        for values, commit in ((("a", "b"), True), (("never",), False), ((), True), (("c",), True)):
            if values:
                transaction(tx, topic, *values, commit=commit)
            found.append([message.value() for message in tail.read()])
        assert found == [[b"a", b"b"], [], [], [b"c"]]
    finally:
        tail.close()


def test_a_tail_from_a_place_on(kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka.bootstrap_servers, unique("tail"))
    transaction(transactional_producer(kafka.bootstrap_servers, unique("tx")), topic, "a", "b", "c")
    tail = Tail({"bootstrap.servers": kafka.bootstrap_servers}, topic, 0, start=2)
    try:
        assert [message.value() for message in tail.read()] == [b"c"]
    finally:
        tail.close()


class _Record:
    def __init__(self, size: int) -> None:
        self._size = size

    def value(self) -> bytes:
        return bytes(self._size)

    def error(self) -> None:
        return None


@pytest.mark.parametrize(
    ("count", "size", "next_call"),
    [(0, 0, 0), (100, 10, 10_000), (100, 0, 10_000), (100, 8 << 20, 1), (100, 1 << 20, 8)],
)
def test_a_call_has_only_so_many_bytes(count: int, size: int, next_call: int) -> None:
    """Records of a flood have megabytes: 10,000 of them would be gigabytes at once."""
    assert reader._next_call([_Record(size)] * count) == next_call  # type: ignore[list-item]
