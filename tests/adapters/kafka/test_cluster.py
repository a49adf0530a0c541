"""Facts of a real broker, and changes made to it."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from bridge.adapters.config_files import load_config
from bridge.adapters.kafka import cluster as module
from bridge.adapters.kafka.client import MAX_MESSAGE_BYTES
from bridge.adapters.kafka.cluster import Cluster, cluster_settings, own_topics
from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import OwnTopics, ensure_topics
from bridge.core.plan import Change, NewTopic, Options, Plan, make_plan
from bridge.model.errors import ConfigError, SinkUnavailable
from tests.support.kafka import create_topic, unique

DAY_MS = 86_400_000


@pytest.fixture
def cluster(kafka: EmbeddedKafka) -> Cluster:
    return Cluster({"bootstrap.servers": kafka.bootstrap_servers})


def alter(topic: str, setting: str, value: str | int) -> Change:
    return Change(action="alter", topic=topic, setting=setting, after=value)


@pytest.mark.kafka
def test_the_facts(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    there = create_topic(
        kafka.bootstrap_servers, unique("facts"), 3, retention_ms="1000", cleanup_policy="compact"
    )
    facts = cluster.read([there, unique("missing"), there])
    assert (facts.brokers, facts.partitions, facts.replication, facts.min_insync) == (1, 4, 1, 1)
    assert facts.retention_ms == 7 * DAY_MS
    assert list(facts.topics) == [there]
    topic = facts.topics[there]
    assert (topic.partitions, topic.replication, topic.empty) == (3, 1, True)
    assert topic.number("retention.ms") == 1000
    assert topic.number("retention.bytes") == -1
    assert topic.number("max.message.bytes") == 10 << 20
    assert topic.number("min.insync.replicas") == 1
    assert topic.policies == {"compact"}


@pytest.mark.kafka
def test_no_topics_at_all(cluster: Cluster) -> None:
    assert cluster.read([]).topics == {}
    assert cluster.read([unique("missing")]).topics == {}


@pytest.mark.kafka
def test_a_topic_that_was_written_to(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    name = create_topic(kafka.bootstrap_servers, unique("written"), 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(name, b"x", partition=1)
    assert producer.flush(30) == 0
    assert not cluster.read([name]).topics[name].empty


@pytest.mark.kafka
def test_changes_are_made(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    old, new = create_topic(kafka.bootstrap_servers, unique("old"), 2), unique("new")
    made = NewTopic(partitions=None, replication=None, config={"retention.ms": "5000"})
    changes = [
        alter(old, "max.message.bytes", 5_242_880),
        alter(old, "partitions", 3),
        Change(action="create", topic=new, after=made),
        alter(old, "cleanup.policy", "compact,delete"),
        Change(action="warn", topic=old, setting="retention.ms", after=1),
    ]
    outcomes = cluster.execute(changes)
    assert [outcome.error for outcome in outcomes] == [""] * 4
    assert {outcome.change.setting for outcome in outcomes} == {
        "max.message.bytes",
        "partitions",
        "",
        "cleanup.policy",
    }
    topics = cluster.read([old, new]).topics
    assert topics[old].partitions == 3
    assert topics[old].number("max.message.bytes") == 5_242_880
    assert topics[old].policies == {"compact", "delete"}
    assert topics[old].number("retention.ms") == 7 * DAY_MS  # a warning changes nothing
    assert (topics[new].partitions, topics[new].number("retention.ms")) == (4, 5000)


@pytest.mark.kafka
def test_what_fails_is_told_and_the_rest_is_done(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    good = create_topic(kafka.bootstrap_servers, unique("good"), 2)
    other, wide = create_topic(kafka.bootstrap_servers, unique("other"), 2), unique("wide")
    too_wide = NewTopic(partitions=1, replication=3, config={})
    outcomes = cluster.execute(
        [
            Change(action="create", topic=wide, after=too_wide),
            Change(action="create", topic=good, after=too_wide),
            alter(good, "retention.ms", 1000),
            alter(other, "retention.ms", "soon"),
            alter(other, "max.message.bytes", 2_000_000),
            alter(good, "partitions", 1),
        ]
    )
    errors = {(o.change.topic, o.change.setting): o.error for o in outcomes}
    assert "only 1 broker(s)" in errors[wide, ""]
    assert errors[good, ""] == f"Topic '{good}' already exists"
    assert errors[good, "retention.ms"] == ""
    assert "Invalid value soon" in errors[other, "retention.ms"]
    assert "Invalid value soon" in errors[other, "max.message.bytes"]  # together or not at all
    assert "would not be an increase" in errors[good, "partitions"]
    topics = cluster.read([good, other, wide]).topics
    assert set(topics) == {good, other}
    assert topics[good].number("retention.ms") == 1000
    assert topics[other].number("max.message.bytes") == 10 << 20


@pytest.mark.kafka
def test_what_a_start_makes_is_as_it_is_wanted(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    own = OwnTopics(unique("own"))
    ensure_topics({"bootstrap.servers": kafka.bootstrap_servers}, own, 2, [])
    wanted = own_topics(own, 2)
    assert {topic.max_bytes for topic in wanted} == {MAX_MESSAGE_BYTES}
    assert make_plan(wanted, cluster.read(t.name for t in wanted), Options()) == Plan()


@pytest.mark.kafka
def test_what_is_made_here_a_start_is_content_with(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    own = OwnTopics(unique("own"))
    wanted = own_topics(own, 2)
    plan = make_plan(wanted, cluster.read(t.name for t in wanted), Options())
    assert [o.error for o in cluster.execute(plan.to_do)] == [""] * 5
    facts = ensure_topics({"bootstrap.servers": kafka.bootstrap_servers}, own, 2, [])
    assert facts[own.state].partitions == 2


@pytest.mark.kafka
def test_an_illegal_name_is_one_line(cluster: Cluster) -> None:
    with pytest.raises(SinkUnavailable, match="reading topic no/such/topic: ") as caught:
        cluster.read(["no/such/topic"])
    assert "\n" not in str(caught.value)


def test_no_broker_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GIVE_UP_S", 0.2)
    with pytest.raises(SinkUnavailable) as caught:
        Cluster({"bootstrap.servers": "127.0.0.1:1"}).read(["a"])
    told = str(caught.value)
    assert told.startswith("Kafka at 127.0.0.1:1 cannot be reached: ")
    assert "Connection refused" in told


def test_a_property_that_nobody_knows() -> None:
    with pytest.raises(ConfigError, match=r'kafka: No such configuration property: "no\.such"'):
        Cluster({"bootstrap.servers": "127.0.0.1:1", "no.such": "x"})


def test_without_a_cluster_the_embedded_one_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "bridge.yaml"
    path.write_text("data: state\n")
    with pytest.raises(ConfigError, match="no Kafka: none is configured and none runs in"):
        cluster_settings(load_config(path))
    path.write_text("kafka: {bootstrap.servers: 'broker1:9092', client.id: me}\n")
    assert cluster_settings(load_config(path)) == {
        "bootstrap.servers": "broker1:9092",
        "client.id": "me",
    }


@pytest.mark.kafka
def test_the_one_that_runs_on_the_data_folder(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "kafka").symlink_to(kafka.folder)
    path = tmp_path / "bridge.yaml"
    path.write_text("data: state\n")
    assert cluster_settings(load_config(path)) == {"bootstrap.servers": kafka.bootstrap_servers}
