"""Topics of our own are made right or refused: design 3.4, section 6 (d)."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from bridge.adapters.kafka import topics as module
from bridge.adapters.kafka.client import MAX_MESSAGE_BYTES
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import (
    SEEN_LEAST_BYTES,
    OwnTopics,
    cluster_of,
    committed_ends,
    ensure_lease,
    ensure_topics,
    look_at,
    own_configs,
    topic_ids,
)
from bridge.core.catalogue import TopicLimits
from bridge.model.errors import ConfigError, SinkUnavailable
from tests.support.kafka import create_topic, transactional_producer, unique
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
SMALL = {"max_message_bytes": "1048588"}  # what Kafka takes by default
LARGE = {"max_message_bytes": str(MAX_MESSAGE_BYTES)}
HOUR_MS = 3_600_000


def ensure(
    kafka: EmbeddedKafka, own: OwnTopics, *mapped: str, shards: int = 2
) -> dict[str, TopicLimits]:
    return ensure_topics({"bootstrap.servers": kafka.bootstrap_servers}, own, shards, mapped)


def config_of(kafka: EmbeddedKafka, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(30)
    return {name: str(entry.value) for name, entry in found.items()}


def test_the_names() -> None:  # design 3.4
    own = OwnTopics("_msmq-bridge")
    assert own.lease == "_msmq-bridge.lease"
    assert (own.state, own.seen, own.audit, own.rejects, own.deadletter) == (
        "_msmq-bridge.state",
        "_msmq-bridge.seen",
        "_msmq-bridge.audit",
        "_msmq-bridge.rejects",
        "_msmq-bridge.deadletter",
    )


def test_what_is_missing_is_made(kafka: EmbeddedKafka) -> None:
    own, orders = OwnTopics(unique("own")), unique("orders")
    facts = ensure(kafka, own, orders, shards=3)
    ours = {own.state, own.seen, own.audit, own.rejects, own.deadletter}
    assert set(facts) == ours | {orders}
    for name in ours:
        compacted = name in (own.state, own.seen)
        assert facts[name] == TopicLimits(3, MAX_MESSAGE_BYTES, wants_key=compacted)
    assert facts[orders] == TopicLimits(4, MAX_MESSAGE_BYTES)  # the broker's own number
    assert config_of(kafka, own.state)["cleanup.policy"] == "compact"
    seen = config_of(kafka, own.seen)
    assert set(seen["cleanup.policy"].split(",")) == {"compact", "delete"}
    # GUARANTEES.md E3: the last 10,000 ids of a peer count whatever their age, so only size counts.
    assert seen["retention.ms"] == "-1"
    assert int(seen["retention.bytes"]) >= 4 * SEEN_LEAST_BYTES
    assert config_of(kafka, own.audit)["cleanup.policy"] == "delete"
    assert config_of(kafka, own.rejects)["cleanup.policy"] == "delete"
    dead = config_of(kafka, own.deadletter)
    assert (dead["cleanup.policy"], dead["retention.ms"]) == ("delete", "-1")  # until it is read


def test_a_second_call_finds_everything(kafka: EmbeddedKafka) -> None:
    own, orders = OwnTopics(unique("own")), unique("orders")
    first = ensure(kafka, own, orders)
    assert ensure(kafka, own, orders) == first
    assert ensure(kafka, own, orders, orders) == first


def test_the_state_topic_says_how_many_shards_there_are(kafka: EmbeddedKafka) -> None:
    own = OwnTopics(unique("own"))
    ensure(kafka, own, shards=3)
    assert ensure(kafka, own, shards=8)[own.state].partitions == 3  # never split a stream


def test_a_topic_of_the_user_keeps_its_settings(kafka: EmbeddedKafka) -> None:
    small = create_topic(kafka.bootstrap_servers, unique("small"), 7, max_message_bytes="1000")
    large = create_topic(kafka.bootstrap_servers, unique("large"), 2, max_message_bytes="99999999")
    facts = ensure(kafka, OwnTopics(unique("own")), small, large)
    assert facts[small] == TopicLimits(7, 1000)
    # Not what the topic takes but what our producer sends: admission relies on it.
    assert facts[large] == TopicLimits(2, MAX_MESSAGE_BYTES)


@pytest.mark.parametrize(
    ("topic", "partitions", "config", "told"),
    [
        ("state", 2, {"cleanup_policy": "delete", **LARGE}, "cleanup.policy is delete"),
        ("state", 2, {"cleanup_policy": "compact,delete", **LARGE}, "cleanup.policy is"),
        ("seen", 2, {"cleanup_policy": "compact", **LARGE}, "cleanup.policy is compact"),
        ("seen", 2, {"cleanup_policy": "delete", **LARGE}, "cleanup.policy is delete"),
        ("audit", 2, {"cleanup_policy": "compact", **LARGE}, "cleanup.policy is compact"),
        ("rejects", 2, {"cleanup_policy": "compact", **LARGE}, "cleanup.policy is compact"),
        ("state", 2, {"cleanup_policy": "compact", **SMALL}, "max.message.bytes is 1048588"),
        ("rejects", 2, SMALL, "max.message.bytes is 1048588"),
        ("seen", 3, {"cleanup_policy": "compact,delete", **LARGE}, "has 3 partitions and"),
        ("audit", 1, LARGE, "has 1 partitions and"),
        (
            "seen",
            2,
            {"cleanup_policy": "delete,compact", "retention_ms": str(HOUR_MS - 1), **LARGE},
            "retention.ms is 3599999",
        ),
        (
            "seen",
            2,
            {"cleanup_policy": "delete,compact", "retention_bytes": "1000000", **LARGE},
            "retention.bytes is 1000000",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start(
    kafka: EmbeddedKafka, topic: str, partitions: int, config: dict[str, str], told: str
) -> None:  # section 6 (d): losing the state topic loses exactly-once
    own = OwnTopics(unique("own"))
    wrong: str = getattr(own, topic)
    create_topic(kafka.bootstrap_servers, wrong, partitions, **config)
    with pytest.raises(ConfigError) as caught:
        ensure(kafka, own)
    assert told in caught.value.what
    assert caught.value.where == f"topic {wrong}"
    assert caught.value.mend
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("retention", [str(HOUR_MS), "-1"])
def test_seen_ids_may_be_kept_for_longer(kafka: EmbeddedKafka, retention: str) -> None:
    own = OwnTopics(unique("own"))
    config = {"cleanup_policy": "delete,compact", "retention_ms": retention, **LARGE}
    create_topic(kafka.bootstrap_servers, own.seen, 2, **config)
    assert own.seen in ensure(kafka, own)


EARLIER = {
    "state": {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": "0.1",
        "max_compaction_lag_ms": "3600000",
        "segment_ms": "3600000",
        "segment_bytes": "16777216",
        "delete_retention_ms": "3600000",
    },
    "seen": {
        "cleanup_policy": "compact,delete",
        "retention_ms": "7200000",
        "segment_ms": "900000",
    },
}


def test_topics_of_an_earlier_version_get_the_settings_of_this_one(kafka: EmbeddedKafka) -> None:
    own = OwnTopics(unique("own"))
    for suffix, config in EARLIER.items():
        create_topic(kafka.bootstrap_servers, f"{own.prefix}.{suffix}", 2, **config, **LARGE)
    ensure(kafka, own)
    for name in (own.state, own.seen):
        found, wanted = config_of(kafka, name), own_configs(own)[name]
        assert {key: found[key] for key in wanted} == wanted


def test_settings_of_the_operator_stay(kafka: EmbeddedKafka) -> None:
    own = OwnTopics(unique("own"))
    kept = {"retention_ms": "86400000", "retention_bytes": "200000000"}
    config = EARLIER["seen"] | kept
    create_topic(kafka.bootstrap_servers, own.seen, 2, **config, **LARGE)
    ensure(kafka, own)
    found = config_of(kafka, own.seen)
    assert (found["retention.ms"], found["retention.bytes"]) == ("86400000", "200000000")
    assert found["segment.bytes"] == own_configs(own)[own.seen]["segment.bytes"]  # nobody's choice


def test_a_topic_that_we_may_not_alter_keeps_its_settings(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own = OwnTopics(unique("own"))
    create_topic(kafka.bootstrap_servers, own.seen, 2, **EARLIER["seen"], **LARGE)

    def denied(_: AdminClient, resources: list[ConfigResource]) -> dict[ConfigResource, object]:
        failed: Future[None] = Future()
        failed.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        return dict.fromkeys(resources, failed)

    monkeypatch.setattr(AdminClient, "incremental_alter_configs", denied)
    ensure(kafka, own)
    assert config_of(kafka, own.seen)["retention.ms"] == "7200000"
    assert f"topic {own.seen} keeps the settings of an earlier version" in caplog.text
    assert "doctor" in caplog.text


def test_no_broker_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.5)
    with pytest.raises(SinkUnavailable, match="Kafka: preparing topics: "):
        ensure_topics({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("own"), 1, [])


def test_a_topic_that_kafka_refuses_is_told(kafka: EmbeddedKafka) -> None:
    with pytest.raises(SinkUnavailable, match="preparing topics"):
        ensure(kafka, OwnTopics(unique("own")), "no/such/topic")


def test_the_id_of_the_cluster(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    written = "".join(file.read_text() for file in kafka.folder.rglob("meta.properties"))
    assert f"cluster.id={cluster_of(settings)}\n" in written


def test_a_topic_that_is_made_anew_has_another_id(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    name = create_topic(kafka.bootstrap_servers, unique("anew"), 1)
    first = topic_ids(settings, [name])
    assert (list(first), topic_ids(settings, [name])) == ([name], first)
    assert topic_ids(settings, []) == {}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_topics([name])[name].result(30)
    eventually(lambda: not look_at(settings, [name]))
    create_topic(kafka.bootstrap_servers, name, 1)
    assert topic_ids(settings, [name])[name] != first[name]
    with pytest.raises(SinkUnavailable, match="ids of topics"):
        topic_ids(settings, [unique("none")])


def test_a_cluster_that_is_away_has_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.5)
    with pytest.raises(SinkUnavailable, match="cluster's id"):
        cluster_of({"bootstrap.servers": "127.0.0.1:1"})


def test_looking_makes_nothing(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    there = create_topic(kafka.bootstrap_servers, unique("there"), 3, max_message_bytes="5000")
    found = look_at(settings, [there, unique("gone")])
    assert found == {there: TopicLimits(3, 5000)}
    assert look_at(settings, []) == {}
    assert found.items() <= look_at(settings, None).items()


def test_how_far_committed_records_go(kafka: EmbeddedKafka) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    topic = create_topic(kafka.bootstrap_servers, unique("ends"), 2)
    tx = transactional_producer(kafka.bootstrap_servers, unique("tx"))
    tx.begin_transaction()
    tx.produce(topic, b"a", partition=0)
    tx.commit_transaction(30)
    eventually(lambda: committed_ends(settings, {topic: 2}) == {topic: {0: 2, 1: 0}})  # a marker
    tx.begin_transaction()
    tx.produce(topic, b"open", partition=0)
    tx.flush(30)
    assert committed_ends(settings, {topic: 2}) == {topic: {0: 2, 1: 0}}
    tx.abort_transaction(30)
    assert committed_ends(settings, {}) == {}


def test_the_lease_has_one_partition(kafka: EmbeddedKafka) -> None:
    settings, own = {"bootstrap.servers": kafka.bootstrap_servers}, OwnTopics(unique("own"))
    ensure_lease(settings, own)
    ensure_lease(settings, own)
    assert look_at(settings, [own.lease])[own.lease].partitions == 1
    broken = OwnTopics(unique("own"))
    create_topic(kafka.bootstrap_servers, broken.lease, 2)
    with pytest.raises(ConfigError, match="has 2 partitions; two would lead"):
        ensure_lease(settings, broken)


def test_a_lease_without_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.2)
    with pytest.raises(SinkUnavailable, match="preparing topics"):
        ensure_lease({"bootstrap.servers": "127.0.0.1:1"}, OwnTopics("own"))
