"""Settings that cannot be talked out of, and what errors mean."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bridge.adapters.kafka import client
from bridge.adapters.kafka.client import (
    MAX_MESSAGE_BYTES,
    admin_client,
    consumer,
    is_fenced,
    member,
    producer,
    unavailable,
)
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import create_topic, read_topic, unique

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("code", "fenced"),
    [
        (KafkaError._FENCED, True),
        (KafkaError.PRODUCER_FENCED, True),
        (KafkaError.INVALID_PRODUCER_EPOCH, True),
        (KafkaError._TIMED_OUT, False),
        (KafkaError._TRANSPORT, False),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, False),
    ],
)
def test_which_errors_say_that_somebody_else_is_there(code: int, fenced: bool) -> None:
    assert is_fenced(KafkaException(KafkaError(code))) is fenced


def test_errors_become_one_line_that_says_what_was_done() -> None:
    error = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
    told = unavailable("committing", error)
    assert isinstance(told, SinkUnavailable)
    assert str(told) == "Kafka: committing: no answer"
    assert str(unavailable("queueing", BufferError("full"))) == "Kafka: queueing: full"


def test_a_packet_with_its_headers_twice_fits() -> None:  # 4 MiB: BH.PacketSize 0x00400000
    assert MAX_MESSAGE_BYTES >= 2 * (4 << 20)


def test_clients_are_made_without_a_broker() -> None:
    """Kafka may come up after us."""
    assert admin_client(NOWHERE) is not None
    assert producer(NOWHERE, "id") is not None
    made = consumer(NOWHERE, "group")
    made.close()
    member(NOWHERE, "group", 6.0, instance="i", client_id="c").close()


def test_a_member_is_what_the_lease_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the settings say that are meant for other clients."""
    made: list[dict[str, object]] = []
    monkeypatch.setattr(client, "Consumer", lambda settings, **_: made.append(settings))
    theirs = {**NOWHERE, "group.instance.id": "x", "client.id": "y", "session.timeout.ms": 45_000}
    member(theirs, "group", 6.0, instance="i", client_id="c")
    assert (made[0]["group.instance.id"], made[0]["client.id"]) == ("i", "c")
    assert made[0]["session.timeout.ms"] == 6000
    assert made[0]["partition.assignment.strategy"] == "cooperative-sticky"


def test_a_wrong_property_is_refused_and_named() -> None:
    with pytest.raises(KafkaException, match=r"no\.such\.property"):
        producer({**NOWHERE, "no.such.property": "1"}, "id")


def test_what_would_break_exactly_once_is_refused() -> None:  # section 6, condition 1
    with pytest.raises(KafkaException, match="idempotence"):
        producer({**NOWHERE, "enable.idempotence": False}, "id")
    with pytest.raises(KafkaException, match="acks"):
        producer({**NOWHERE, "acks": 1}, "id")


@pytest.mark.kafka
def test_settings_cannot_lower_what_admission_counts_on(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "message.max.bytes": 1000}
    topic = create_topic(kafka.bootstrap_servers, unique("large"), max_message_bytes="9000000")
    made = producer({**settings, "transactional.id": "another"}, unique("tx"))
    made.init_transactions(30)
    made.begin_transaction()
    made.produce(topic, bytes(MAX_MESSAGE_BYTES - 1000))
    made.commit_transaction(30)
    (message,) = read_topic(kafka.bootstrap_servers, topic)
    assert len(message.value() or b"") == MAX_MESSAGE_BYTES - 1000


@pytest.mark.kafka
def test_a_consumer_reads_committed_records_whatever_the_settings_say(
    kafka: EmbeddedKafka,
) -> None:  # section 6, condition 1
    topic = create_topic(kafka.bootstrap_servers, unique("committed"))
    made = producer({"bootstrap.servers": kafka.bootstrap_servers}, unique("tx"))
    made.init_transactions(30)
    for value, end in (("no", made.abort_transaction), ("yes", made.commit_transaction)):
        made.begin_transaction()
        made.produce(topic, value)
        made.flush(30)
        end(30)
    reader = consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": True,
        },
        unique("group"),
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    message = reader.poll(30)
    reader.close()
    assert message is not None
    assert message.value() == b"yes"


def test_one_request_at_a_time_whatever_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a partition that was just made may take the second batch, and call the first one's
    retry a duplicate: an acknowledged message was lost like that."""
    seen: dict[str, object] = {}
    monkeypatch.setattr(client, "Producer", lambda settings, **_: seen.update(settings))
    client.producer({"max.in.flight.requests.per.connection": 5}, "id")
    assert seen["max.in.flight.requests.per.connection"] == 1
    assert seen["transactional.id"] == "id"
