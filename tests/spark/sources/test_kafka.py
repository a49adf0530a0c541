"""Topics through Spark: committed records only, with headers, by range and by time."""

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.adapters.kafka.topics import committed_ends
from msmq_jobs.sources.kafka import read_between, read_range
from tests.support.kafka import create_topic, transactional_producer, unique

pytestmark = pytest.mark.kafka


def test_what_is_committed(kafka: EmbeddedKafka, spark: SparkSession) -> None:
    bootstrap = kafka.bootstrap_servers
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 3}
    topic = create_topic(bootstrap, unique("spark"), 2)
    tx = transactional_producer(bootstrap, unique("tx"), transaction_timeout_ms=600_000)
    for value, commit in ((b"a", True), (b"never", False), (b"b", True)):
        tx.begin_transaction()
        at = 1_000_000 if value == b"a" else 2_000_000
        tx.produce(topic, value, partition=0, headers=[("h", b"\xff")], timestamp=at)
        tx.flush(30)
        (tx.commit_transaction if commit else tx.abort_transaction)(30)
    tx.begin_transaction()  # and one that stays open
    tx.produce(topic, b"open", partition=0)
    tx.flush(30)

    ends = committed_ends(settings, {topic: 2})
    rows = read_range(spark, settings, ends).collect()
    assert [bytes(row["value"]) for row in rows] == [b"a", b"b"]
    assert [(h["key"], bytes(h["value"])) for h in rows[0]["headers"]] == [("h", b"\xff")]

    later = read_range(spark, settings, ends, {topic: {0: 1, 1: 0}}).collect()
    assert [bytes(row["value"]) for row in later] == [b"b"]
    since = read_between(spark, settings, {topic: 2}, 1_500_000, ends).collect()
    assert [bytes(row["value"]) for row in since] == [b"b"]
    tx.abort_transaction(30)
