"""The cluster that a job works on, as an appliance's files describe it."""

from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics
from bridge.model.errors import ConfigError, Unavailable
from bridge.model.guid import NULL_GUID, Guid
from msmq_jobs.place import identity_of, look_around
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, transactional_producer, unique

OURS = "3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77"


def test_an_embedded_broker_that_is_not_running(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="start the appliance first"):
        look_around(write_config(tmp_path, None))


@pytest.mark.kafka
def test_an_appliance_that_never_ran(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="start the appliance once"):
        look_around(write_config(tmp_path, kafka.bootstrap_servers))


@pytest.mark.kafka
def test_what_is_there_and_who_we_are(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    bootstrap, own = kafka.bootstrap_servers, OwnTopics(unique("place"))
    for name, partitions in ((own.audit, 2), (own.state, 2), (topic(own.prefix, "orders"), 3)):
        create_topic(bootstrap, name, partitions)
    place = look_around(write_config(tmp_path, bootstrap, topic_prefix=own.prefix))
    assert {name: limits.partitions for name, limits in place.limits.items()} == {
        own.audit: 2,
        own.state: 2,
        topic(own.prefix, "orders"): 3,
    }
    assert identity_of(place) == NULL_GUID  # nobody has kept one yet

    producer = transactional_producer(bootstrap, unique("tx"))
    producer.begin_transaction()
    producer.produce(own.state, f'{{"id":"{OURS}"}}'.encode(), b"identity", partition=1)
    producer.commit_transaction(30)
    assert identity_of(place) == Guid.parse(OURS)

    named = write_config(tmp_path, bootstrap, topic_prefix=own.prefix, queue_manager={"id": OURS})
    assert identity_of(look_around(named)) == Guid.parse(OURS)
