"""Which messages landed out of order, without one window over a whole stream.

A hot stream may have a partition's every record. So the partition is cut into slices, in the order
of its offsets (which slice a record is in says nothing else). Inside a slice a window finds what
stands behind a higher number; between slices only their extremes are compared, and the records of
a slice are looked at again only when an earlier slice reaches higher than its lowest.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from msmq_jobs.reconcile.events import event
from msmq_jobs.reconcile.rules import Kind

SLICE: Final = 100_000


def swapped(
    landed: DataFrame, streams: DataFrame | None = None, slice_size: int = SLICE
) -> DataFrame:
    """Events of the messages that have a higher one of their stream before them. `streams` says how
    far the records before these have come."""
    rows = _in_streams(landed).select(
        *("message_id", "queue", "domain", "offset"),
        F.floor(F.col("offset") / slice_size).alias("slice"),
        _place().alias("place"),
    )
    here = Window.partitionBy("domain", "slice").orderBy("offset")
    before = F.max("place").over(here.rowsBetween(Window.unboundedPreceding, -1))
    inside = rows.withColumn("before", before).where(F.col("place") < F.col("before"))
    overtaken = F.broadcast(_overtaken(rows, streams))
    across = rows.join(overtaken, on=["domain", "slice"]).where(F.col("place") < F.col("highest"))
    found = inside.select("message_id", "queue").union(across.select("message_id", "queue"))
    return event(
        found,
        {
            "message_id": F.col("message_id"),
            "queue": F.col("queue"),
            "kind": F.lit(int(Kind.SWAPPED)),
        },
    )


def reached(landed: DataFrame, streams: DataFrame) -> DataFrame:
    """How far each stream has come: (`domain`, `sequence`, `number`), as `swapped` takes it."""
    both = _in_streams(landed).select(*streams.columns).union(streams)
    numbers = both.groupBy("domain", "sequence").agg(F.max("number").alias("number"))
    highest = numbers.groupBy("domain").agg(F.max(_place()).alias("place"))
    return highest.select("domain", "place.sequence", "place.number")


def _in_streams(landed: DataFrame) -> DataFrame:
    return landed.where(F.col("domain").isNotNull() & F.col("number").isNotNull())


def _place() -> Column:
    return F.struct("sequence", "number")


def _overtaken(rows: DataFrame, streams: DataFrame | None) -> DataFrame:
    """Slices with something lower than what an earlier slice of the stream has: usually none."""
    # Numbers first: of structs Spark keeps no hash table.
    numbers = rows.groupBy("domain", "slice", "place.sequence").agg(
        F.max("place.number").alias("most"), F.min("place.number").alias("least")
    )
    extremes = numbers.groupBy("domain", "slice").agg(
        F.max(F.struct("sequence", F.col("most").alias("number"))).alias("most"),
        F.min(F.struct("sequence", F.col("least").alias("number"))).alias("least"),
    )
    if streams is not None:  # as a slice before all others
        before = (F.col("domain"), F.lit(-1).alias("slice"), _place().alias("most"))
        extremes = extremes.union(streams.select(*before, _place().alias("least")))
    earlier = Window.partitionBy("domain").orderBy("slice")
    highest = F.max("most").over(earlier.rowsBetween(Window.unboundedPreceding, -1))
    return (
        extremes.withColumn("highest", highest)
        .where(F.col("least") < F.col("highest"))
        .select("domain", "slice", "highest")
    )
