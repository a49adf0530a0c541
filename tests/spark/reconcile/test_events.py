"""Hashes that two ledgers share, and which property differs."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from msmq_jobs.reconcile import events
from msmq_jobs.reconcile.rules import PROPERTIES


def test_hashes(spark: SparkSession) -> None:
    texts = [str(n) for n in range(8)]
    other = [*texts[:2], "x", *texts[3:7], "y"]
    one, two = (events.rest_of([F.lit(t) for t in some]) for some in (texts, other))
    lone = F.unhex(F.lit("61eda080")).cast("string")  # half a surrogate pair in UTF-8
    row = spark.range(1).select(
        (one[0] != two[0]).alias("differ"),
        F.array_compact(F.array(*events.differing(one[1], two[1]))).alias("names"),
        events.hash_of(lone).alias("lone"),
        events.sequence_of(F.lit(str(2**64 - 1))).alias("highest"),
        events.sequence_of(F.lit("0")).alias("lowest"),
        events.tx_of(F.lit(None), F.lit(1)).alias("none"),
    )
    (found,) = row.collect()
    assert found["differ"]
    assert found["names"] == [PROPERTIES[2], PROPERTIES[7]]
    assert found["lone"] is None
    assert (found["lowest"], found["highest"]) == (-(2**63), 2**63 - 1)
    assert found["none"] is None
