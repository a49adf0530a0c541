"""What mappings say of queues, as columns."""

from pyspark.sql import SparkSession

from bridge.core.mapping_rules import HeaderRules
from msmq_jobs import mapped
from tests.spark.letters import mappings
from tests.spark.reconcile.test_queues import of

NAMES = [("private$\\orders",), ("private$\\a_b",), ("public",)]


def test_settings_by_queue(spark: SparkSession) -> None:
    frame = spark.createDataFrame(NAMES, "queue string")
    kinds = mapped.per_queue(of(value="json"), lambda s: s.value)
    hidden = mapped.hidden(of(headers=HeaderRules(exclude=("msmq.id",))))
    alone = mapped.hidden(of(headers=HeaderRules(exclude=("msmq.queue",))))
    found = frame.select(kinds.alias("kind"), hidden.alias("hidden"), alone.alias("alone"))
    rows = found.collect()
    assert [row["kind"] for row in rows] == ["json", "body", "body"]
    assert [row["hidden"] for row in rows] == [True, False, False]
    assert [row["alone"] for row in rows] == [False, False, False]  # its topic tells


def test_topics_with_one_queue() -> None:
    assert mapped.lone_topics(of()) == {"orders": "private$\\Orders"}


def test_whether_the_audit_is_needed() -> None:
    assert not mapped.hides_some(mappings())
    assert mapped.hides_some(of(headers=HeaderRules(exclude=("msmq.id",))))
    assert not mapped.hides_some(of(headers=HeaderRules(exclude=("msmq.queue",))))
