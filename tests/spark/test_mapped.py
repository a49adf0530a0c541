"""What mappings say of queues, as columns."""

from pyspark.sql import SparkSession

from bridge.core.mapping_rules import (
    Defaults,
    HeaderRules,
    Mappings,
    QueueMapping,
    QueuePath,
    Topic,
)
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


def test_a_pattern_of_public_queues_takes_no_private_one(spark: SparkSession) -> None:
    """As live traffic finds its mapping: the longer pattern is asked first, of its own kind."""
    wide = QueueMapping(queue=QueuePath("*-orders"), topic=Topic("a"), value="json")
    private = QueueMapping(queue=QueuePath("private$\\*"), topic=Topic("b"), value="text")
    names = [("private$\\eu-orders",), ("eu-orders",), ("private$\\x",), ("x",)]
    frame = spark.createDataFrame(names, "queue string")
    found = mapped.per_queue(Mappings(queues=(wide, private)), lambda s: s.value)
    assert [row[0] for row in frame.select(found).collect()] == ["text", "json", "text", "body"]


def test_topics_with_one_queue() -> None:
    assert mapped.lone_topics(of()) == {"orders": "private$\\Orders"}
    several = QueueMapping(queue=QueuePath("a"), topic=Topic("orders"))
    assert mapped.lone_topics(Mappings(queues=(*of().queues, several))) == {}


def test_a_topic_that_messages_can_name_is_nobodys_own() -> None:
    named = QueueMapping(queue=QueuePath("a"), topic=Topic("{label}"))
    assert mapped.lone_topics(Mappings(queues=(*of().queues, named))) == {}
    opened = Mappings(queues=of().queues, defaults=Defaults(unknown="auto-create"))
    assert mapped.lone_topics(opened) == {}


def test_whether_the_audit_is_needed() -> None:
    assert not mapped.hides_some(mappings())
    assert mapped.hides_some(of(headers=HeaderRules(exclude=("msmq.id",))))
    assert not mapped.hides_some(of(headers=HeaderRules(exclude=("msmq.queue",))))
