"""Dead letters by their class, and what an export may leave out."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from msmq_jobs.reconcile.rules import Kind
from msmq_jobs.reconcile.sent import sent
from msmq_jobs.schemas import READ
from tests.spark.reconcile.world import ORDERS, PLAIN, Seen, row


def test_kinds(spark: SparkSession) -> None:
    """Data-model.md 2.14: a dead letter's class is its failure; `msmq.outcome` wins over it."""
    told = row(Seen(4, ORDERS))
    told["headers"] = {**told["headers"], "msmq.outcome": str(0xC003)}
    bare = row(Seen(5, PLAIN)) | dict.fromkeys(("label", "body", "body_type", "priority"))
    rows = [row(Seen(1, PLAIN, delivery=0)), row(Seen(2, ORDERS, dead=0x8000)), told, bare]
    rows.append(row(Seen(3, ORDERS, dead=0x8002)))
    frame = spark.createDataFrame(rows, READ).withColumn("home", F.lit("Q"))
    found = {r["message_id"].rpartition("\\")[2]: r for r in sent(frame).collect()}
    kinds = {n: Kind(r["kind"]) for n, r in found.items()}
    assert kinds == {
        "1": Kind.SENT | Kind.EXPRESS,
        "2": Kind.SENT | Kind.DEAD,
        "3": Kind.SENT | Kind.DEAD | Kind.LATE,
        "4": Kind.SENT | Kind.DEAD | Kind.LATE,
        "5": Kind.SENT,
    }
    assert (found["2"]["end"], found["4"]["end"], found["1"]["end"]) == (0x8000, 0xC003, None)
    # What a source does not tell is not compared.
    assert all(found["5"][name] is None for name in ("label", "body_sha", "rest", "correlation"))
