"""What a real cluster says of topics that take no records."""

import pytest
from confluent_kafka.admin import AdminClient

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topic_states import TopicStates
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import create_topic, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka


def test_a_topic_that_is_well_tells_its_limits(kafka: EmbeddedKafka) -> None:
    bootstrap = kafka.bootstrap_servers
    topic = create_topic(
        bootstrap,
        unique("well"),
        3,
        max_message_bytes="5000",
        cleanup_policy="compact",
        message_timestamp_before_max_ms="9000",
    )
    state = TopicStates({"bootstrap.servers": bootstrap}).look([topic])[topic]
    assert (state.why, state.is_short) == ("", False)
    limits = state.limits
    assert limits is not None
    assert (limits.partitions, limits.max_bytes) == (3, 5000)
    assert (limits.wants_key, limits.before_ms) == (True, 9000)


def test_one_that_is_gone(kafka: EmbeddedKafka) -> None:
    bootstrap = kafka.bootstrap_servers
    topic, states = (
        create_topic(bootstrap, unique("gone")),
        TopicStates({"bootstrap.servers": bootstrap}),
    )
    never = unique("never")
    assert "is gone" in states.look([topic, never])[never].why
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: "is gone" in states.look([topic])[topic].why)


def test_one_without_enough_replicas(kafka: EmbeddedKafka) -> None:
    bootstrap = kafka.bootstrap_servers
    topic = create_topic(bootstrap, unique("short"), min_insync_replicas="2")
    state = TopicStates({"bootstrap.servers": bootstrap}).look([topic])[topic]
    assert state.is_short
    assert "min.insync.replicas is 2" in state.why


def test_nobody_answers() -> None:
    states = TopicStates({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
    with pytest.raises(SinkUnavailable):
        states.look(["orders"])
