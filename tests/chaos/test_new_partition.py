"""The first batch to a partition that was just made fails and is tried again while the second one
is under way: an acknowledged message was lost like that. README, "One request at a time"."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from bridge.adapters.kafka import client
from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.broker_proxy import BrokerProxy
from tests.support.kafka import create_topic, read_topic, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
TIMEOUT_S = 30.0


def committed(
    broker: EmbeddedKafka, make: Callable[[dict[str, Any], str], Producer]
) -> tuple[bool, list[bytes]]:
    """Whether the second batch did not wait for the first one, which fails at first; and what the
    transaction leaves."""
    topic = create_topic(broker.bootstrap_servers, unique("fresh"))
    delivered: list[Message] = []
    with BrokerProxy(broker.port, topic) as proxy:
        producer = make({"bootstrap.servers": proxy.bootstrap_servers}, unique("tx"))
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        producer.produce(topic, b"first", on_delivery=lambda _, message: delivered.append(message))
        eventually(proxy.held.is_set)
        producer.produce(topic, b"second", on_delivery=lambda _, message: delivered.append(message))
        assert producer.flush(TIMEOUT_S) == 0
        producer.commit_transaction(TIMEOUT_S)
    assert [message.error() for message in delivered] == [None, None]  # the client believes it
    records = read_topic(broker.bootstrap_servers, topic)
    return proxy.followed, [bytes(record.value() or b"") for record in records]


def test_nothing_is_lost_with_one_request_at_a_time(broker: EmbeddedKafka) -> None:
    assert committed(broker, client.producer) == (False, [b"first", b"second"])


def test_with_several_requests_the_first_is_lost(
    broker: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above proves something. Should a newer client pass here, the setting can go."""

    def several(settings: dict[str, Any], **more: Any) -> Producer:
        return Producer({**settings, "max.in.flight.requests.per.connection": 5}, **more)

    monkeypatch.setattr(client, "Producer", several)
    assert committed(broker, client.producer) == (True, [b"second"])
