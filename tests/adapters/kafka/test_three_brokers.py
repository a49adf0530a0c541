"""A real cluster of three brokers, with Kafka's own defaults for what we do not say."""

import asyncio
import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]

from bridge.adapters.kafka import health as health_module
from bridge.adapters.kafka.health import KafkaHealth
from bridge.adapters.kafka.topics import OwnTopics, ensure_lease, ensure_topics, own_configs
from tests.support.cluster import Cluster
from tests.support.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """`default.replication.factor` is 1, as in a broker that was only unpacked."""
    defaults = {"default.replication.factor": "1", "min.insync.replicas": "1"}
    with Cluster(tmp_path_factory.mktemp("cluster"), defaults) as made:
        yield made


@pytest.fixture
def admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def copies(admin: AdminClient, topic: str) -> tuple[set[int], str]:
    """Replicas of its partitions, and min.insync.replicas."""
    parts = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (config,) = (future.result() for future in admin.describe_configs([resource]).values())
    return {len(part.replicas) for part in parts}, str(config["min.insync.replicas"].value)


def test_our_own_topics_have_three_copies(
    cluster: Cluster, admin: AdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    own, mapped = OwnTopics(f"own-{uuid4().hex[:8]}"), f"mapped-{uuid4().hex[:8]}"
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    with caplog.at_level(logging.WARNING):
        ensure_topics(settings, own, 2, [mapped])
    ensure_lease(settings, own)
    for name in (*own_configs(own), own.lease):
        assert copies(admin, name) == ({3}, "2"), name
    assert copies(admin, mapped) == ({1}, "1")  # the cluster's owner decides
    (warning,) = [record.getMessage() for record in caplog.records if "one copy" in record.message]
    assert mapped in warning
    assert "3 brokers" in warning


def test_a_topic_that_is_there_is_left_as_it_is(
    cluster: Cluster, admin: AdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    own = OwnTopics(f"own-{uuid4().hex[:8]}")
    config = own_configs(own)[own.state]
    admin.create_topics([NewTopic(own.state, 2, 1, config=config)])[own.state].result()
    with caplog.at_level(logging.WARNING):
        ensure_topics({"bootstrap.servers": cluster.bootstrap_servers}, own, 2, [])
    assert copies(admin, own.state) == ({1}, "1")
    assert copies(admin, own.audit) == ({3}, "2")
    assert any(own.state in record.getMessage() for record in caplog.records)


def test_a_frozen_broker_of_three_is_not_kafka_away(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them is asked first."""
    monkeypatch.setattr(health_module, "EVERY_S", 0.01)

    async def run() -> None:
        health = KafkaHealth({"bootstrap.servers": cluster.bootstrap_servers}, "any")
        asked: list[bool] = []
        ask = health._ask

        def count() -> tuple[bool, str]:
            answer = ask()
            asked.append(answer[0])
            return answer

        monkeypatch.setattr(health, "_ask", count)
        task = asyncio.create_task(health.run())
        await until(lambda: len(asked) > 3)
        cluster.nodes[1].freeze()
        try:
            seen = len(asked)
            await until(lambda: len(asked) > seen + 20, 60)
        finally:
            cluster.nodes[1].thaw()
        task.cancel()
        assert all(asked)

    asyncio.run(run())
