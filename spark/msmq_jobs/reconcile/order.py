"""Which messages landed out of order, without one window over a whole stream.

A hot stream may have a partition's every record. So the partition is cut into slices, in the order
of its offsets (which slice a record is in says nothing else). Whether a slice is in order, and its
extremes, are found with numbers alone. Only slices that are not, or that have something lower than
an earlier slice reached, are looked at message by message: usually none.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from msmq_jobs.reconcile.events import event
from msmq_jobs.reconcile.rules import Kind
from msmq_jobs.reconcile.verdicts import KEY

SLICE: Final = 100_000


def swapped(
    landed: DataFrame, streams: DataFrame | None = None, slice_size: int = SLICE
) -> DataFrame:
    """Events of the messages that have a higher one of their stream before them. `streams` says how
    far the records before these have come."""
    slice_ = F.floor(F.col("offset") / slice_size).alias("slice")
    rows = _in_streams(landed).select(*KEY, "domain", "offset", slice_, _place().alias("place"))
    suspects = F.broadcast(_suspects(rows.drop(*KEY), streams))
    so_far = F.max("place").over(_in_slice().rowsBetween(Window.unboundedPreceding, -1))
    looked_at = rows.join(suspects, on=["domain", "slice"]).withColumn("so_far", so_far)
    found = looked_at.where(F.col("place") < F.greatest("so_far", "highest"))
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


def _in_slice() -> WindowSpec:
    return Window.partitionBy("domain", "slice").orderBy("offset")


def _suspects(rows: DataFrame, streams: DataFrame | None) -> DataFrame:
    """Slices to look into, and how high the stream was before them."""
    numbers = (  # first: of structs Spark keeps no hash table
        rows.withColumn("is_back", F.col("place") < F.lag("place").over(_in_slice()))
        .groupBy("domain", "slice", "place.sequence")
        .agg(
            F.max("place.number").alias("most"),
            F.min("place.number").alias("least"),
            F.max("is_back").alias("is_back"),
        )
    )
    slices = numbers.groupBy("domain", "slice").agg(
        F.max(F.struct("sequence", F.col("most").alias("number"))).alias("most"),
        F.min(F.struct("sequence", F.col("least").alias("number"))).alias("least"),
        F.max("is_back").alias("is_back"),
    )
    if streams is not None:  # as a slice before all others
        place = _place()
        first = (F.lit(-1).alias("slice"), place.alias("most"), place.alias("least"))
        slices = slices.union(streams.select("domain", *first, F.lit(False).alias("is_back")))
    earlier = Window.partitionBy("domain").orderBy("slice")
    highest = F.max("most").over(earlier.rowsBetween(Window.unboundedPreceding, -1))
    return (
        slices.withColumn("highest", highest)
        .where(F.col("is_back") | (F.col("least") < F.col("highest")))
        .select("domain", "slice", "highest")
    )
