"""What a real broker answers, and what is told when there is none."""

import socket
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import KafkaException, Producer

from bridge.adapters.doctor.cluster import Cluster, Place, TopicState, connect
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import ConfigError, Unavailable
from tests.support.kafka import create_topic, transactional_producer, unique
from tests.support.waiting import eventually


def test_settings_that_make_no_client(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"no\.such\.property"):
        connect({"bootstrap.servers": "127.0.0.1:1", "no.such.property": "x"})
    assert capfd.readouterr() == ("", "")


def test_nobody_answers(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.adapters.doctor.cluster.CALL_S", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(Unavailable) as caught:
            connect({"bootstrap.servers": address})
    assert address in str(caught.value)
    assert "Connection refused" in str(caught.value)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert address not in printed.err  # the client's log is not for the operator


@pytest.fixture(scope="module")
def cluster(kafka: EmbeddedKafka) -> Cluster:
    return connect({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.fixture
def transaction(kafka: EmbeddedKafka) -> Iterator[Producer]:
    producer = transactional_producer(kafka.bootstrap_servers, unique("doctor"))
    producer.begin_transaction()
    yield producer
    producer.abort_transaction(30)


@pytest.mark.kafka
def test_the_brokers(cluster: Cluster, kafka: EmbeddedKafka) -> None:
    assert list(cluster.brokers.values()) == [kafka.bootstrap_servers]
    assert cluster.api_versions()[22] >= 5  # InitProducerId of Kafka 4
    config = cluster.broker_config(min(cluster.brokers))
    assert config is not None
    assert config["transaction.max.timeout.ms"] == "900000"
    assert "IDEMPOTENT_WRITE" in (cluster.operations() or ())


@pytest.mark.kafka
def test_topics(cluster: Cluster, kafka: EmbeddedKafka) -> None:
    name = create_topic(kafka.bootstrap_servers, unique("doctor"), 3, retention_ms="12345")
    missing = unique("missing")
    states = cluster.topics([name, missing])
    assert states[missing] == TopicState(error="UNKNOWN_TOPIC_OR_PART")
    assert states[missing].is_missing
    assert [p.number for p in states[name].partitions] == [0, 1, 2]
    assert all(p.has_leader and p.in_sync == p.replicas == 1 for p in states[name].partitions)
    assert {"READ", "WRITE", "DESCRIBE"} <= (states[name].operations or frozenset())
    configs = cluster.topic_config([name, missing])
    assert list(configs) == [name]
    assert configs[name]["retention.ms"] == "12345"
    assert cluster.topics([]) == {}
    assert cluster.topic_config([]) == {}
    assert cluster.topics([missing])[missing].is_missing  # asking does not make it


def answering(cluster: Cluster, places: list[Place]) -> Mapping[Place, int]:
    """A partition that was just made may not know its leader yet."""
    try:
        return cluster.ends(places, committed=False)
    except KafkaException:
        return {}


@pytest.mark.kafka
def test_partitions_that_do_not_answer(cluster: Cluster, kafka: EmbeddedKafka) -> None:
    name = create_topic(kafka.bootstrap_servers, unique("doctor"))
    eventually(lambda: answering(cluster, [(name, 0)]))
    missing = (unique("missing"), 0)
    assert cluster.ends([(name, 0), missing], committed=True) == {(name, 0): 0}
    with pytest.raises(KafkaException):  # silence is not the same as nothing to tell
        cluster.ends([missing], committed=True)


@pytest.mark.kafka
def test_offsets(cluster: Cluster, kafka: EmbeddedKafka, transaction: Producer) -> None:
    name = create_topic(kafka.bootstrap_servers, unique("doctor"), 2)
    places = [(name, 0), (name, 1)]
    eventually(lambda: len(answering(cluster, places)) == 2)
    assert cluster.newest_ms(places) == -1
    before = int(time.time() * 1000)
    transaction.produce(name, b"open", partition=0)
    transaction.flush(30)
    assert cluster.ends(places, committed=True) == {(name, 0): 0, (name, 1): 0}
    assert cluster.ends(places, committed=False) == {(name, 0): 1, (name, 1): 0}
    assert cluster.first_since(places, before) == {(name, 0): 0, (name, 1): -1}
    assert cluster.first_since(places, before + 600_000)[name, 0] == -1
    assert 0 <= cluster.newest_ms(places) - before < 60_000
    assert cluster.ends([], committed=True) == {}
