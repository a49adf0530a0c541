"""Who is in the group, as a real broker tells it."""

import asyncio

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from bridge.adapters.kafka import members as module
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.lease import Lease
from bridge.adapters.kafka.members import Member, Members, NotTold, signed
from bridge.adapters.kafka.topics import OwnTopics, ensure_lease
from bridge.model.errors import SinkUnavailable
from tests.support.kafka import unique
from tests.support.waiting import eventually

SOON_S = 60.0


@pytest.mark.kafka
def test_the_leader_is_told_with_its_address_and_port(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "my.bridge.7"}
    own = OwnTopics(unique("members"))
    ensure_lease(settings, own)

    async def test() -> None:
        lease = Lease(settings, own, 6.0, lifeline=1234)
        await lease.won()
        [found] = await asyncio.to_thread(Members(settings, own).look)
        assert found == Member(lease.name, found.id, lease.name, "127.0.0.1", 1234, leads=True)
        await lease.leave(SOON_S)
        assert await asyncio.to_thread(Members(settings, own).look) == []  # it has left, at once

    asyncio.run(asyncio.wait_for(test(), SOON_S))


@pytest.mark.kafka
def test_strangers_in_the_group_are_left_out(kafka: EmbeddedKafka) -> None:
    settings, own = {"bootstrap.servers": kafka.bootstrap_servers}, OwnTopics(unique("members"))
    ensure_lease(settings, own)
    stranger = Consumer({**settings, "group.id": own.lease, "client.id": "x.abc.1"})
    stranger.subscribe([own.lease])
    eventually(lambda: stranger.poll(0.1) or stranger.assignment())
    assert Members(settings, own).look() == []
    stranger.close()


def test_a_signature_is_at_the_end() -> None:
    class Raw:
        group_instance_id, member_id, host, assignment = "i", "m", "host/10.0.0.7", None
        client_id = signed("a." + "b" * 32 + ".9", "c" * 32, 8)

    assert module._member(Raw, "lease") == Member("i", "m", "c" * 32, "10.0.0.7", 8, leads=False)
    Raw.client_id = signed("a", "c" * 32, 99999)  # no such port
    assert module._member(Raw, "lease") == Member("i", "m", "c" * 32, "10.0.0.7", 0, leads=False)
    for text in ("", "msmq-bridge", signed("a", "c" * 31, 8), signed("a", "c" * 32, 8) + "x"):
        Raw.client_id = text
        assert module._member(Raw, "lease") is None


def test_without_kafka_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.3)
    with pytest.raises(SinkUnavailable, match="looking at the lease's group") as told:
        Members({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("x")).look()
    assert not isinstance(told.value, NotTold)


def test_a_client_that_cannot_be_made_is_no_bug() -> None:
    with pytest.raises(NotTold, match=r"no\.such\.setting"):
        Members({"bootstrap.servers": "127.0.0.1:1", "no.such.setting": 1}, OwnTopics("x")).look()


def test_a_refusal_is_not_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def describe_consumer_groups(self, *_: object, **__: object) -> None:
            raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))

    monkeypatch.setattr(module, "admin_client", lambda _: Refusing())
    with pytest.raises(NotTold):
        Members({}, OwnTopics("x")).look()
