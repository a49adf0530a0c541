"""What lies between two places of a partition, committed or not."""

import pytest
from confluent_kafka import Producer

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import SinkUnavailable
from msmq_jobs.backfill import between
from msmq_jobs.backfill.between import Between
from tests.support.kafka import create_topic, transactional_producer, unique

pytestmark = pytest.mark.kafka


def test_every_record_up_to_ours(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = kafka.bootstrap_servers
    topic = create_topic(bootstrap, unique("between"))
    plain = Producer({"bootstrap.servers": bootstrap})
    pending = transactional_producer(bootstrap, unique("pending"))
    pending.begin_transaction()
    for producer, value in ((plain, b"0"), (pending, b"1"), (plain, b"2"), (plain, b"3")):
        producer.produce(topic, value)
        assert producer.flush(30) == 0
    found = Between({"bootstrap.servers": bootstrap}, topic, 0, unique("group"))
    try:
        assert [m.value() for m in found.read(0, 3)] == [b"0", b"1", b"2"]
        assert [m.value() for m in found.read(1, 2)] == [b"1"]  # again, from another place
        assert list(found.read(3, 3)) == []
        monkeypatch.setattr(between, "CALL_TIMEOUT_S", 0.0)
        with pytest.raises(SinkUnavailable, match="cannot be read"):
            list(found.read(4, 9))
    finally:
        found.close()
        pending.abort_transaction(30)


def test_it_is_never_opened_without_need() -> None:
    Between({}, "t", 0, "g").close()
