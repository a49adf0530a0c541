"""New events meet what is known: only the buckets that they touch are put together again.

A bucket is touched by an event that belongs there, or by one of a message that is kept there. Its
rows and the new events are merged, and the bucket is written as a whole; all others stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.core.mapping_rules import Mappings
from msmq_jobs.reconcile import order, queues, verdicts
from msmq_jobs.reconcile.rules import Kind
from msmq_jobs.reconcile.state import LANDED, Known, State
from msmq_jobs.reconcile.verdicts import KEY

PER_TASK: Final = 250_000  # events that one task puts together
FEW: Final = 500_000  # keys that every task can have
NEVER: Final = (1 << 63) - 1
QUEUE, TEXT, PLACE = "queue", "text", "place"
_ABOUT: Final = ("queue", "name", "run", "origin", "topic", "partition")


def settle(spark: SparkSession, state: State, mappings: Mappings, changed: Known) -> None:
    """The staged events become rows, in one step with `changed`, which says where to read on."""
    if not state.has_new:
        state.keep(changed)
        return
    events, landed = state.staged(), state.staged([LANDED])
    summary = _summary(events).persist()
    try:
        facts = summary.agg(*_facts()).first()
        assert facts is not None
        count = facts["events"] or 0
        touched = _touched(state, events, count) | state.crumbs()
        _spread(spark, count + sum(b.rows for n, b in state.known.buckets.items() if n in touched))
        streams = state.small("streams")
        new = events.unionByName(order.swapped(landed, streams))
        old = state.rows(touched).drop("key", "bucket")
        rows = verdicts.gathered(queues.comparable(new, mappings)).select(*old.columns)
        if touched & state.known.buckets.keys():
            rows = verdicts.merged(old.union(rows))
        written = state.write_rows(_laid_out(rows))
        texts = _least(state.small("texts").union(_texts(summary)))
        small = {
            "texts": texts,
            "streams": order.reached(landed, streams),
            "copies": _copies(state, written, old, landed),
        }
        changed = replace(
            changed,
            newest=_max(state.known.newest, facts["newest"]),
            newest_sent=_max(state.known.newest_sent, facts["newest_sent"]),
            oldest=_oldest(changed.oldest, summary),
            renamed=state.known.renamed + _is_renamed(state.small("texts"), texts),
        )
        state.keep(changed, written, touched, small)
    finally:
        summary.unpersist()


def _summary(events: DataFrame) -> DataFrame:
    """All texts that events have, which are few, and the times beside them."""
    is_seen = F.col("kind").isin(*(int(k) for k in (Kind.ACCEPTED, Kind.BACKFILLED, Kind.LANDED)))
    return events.groupBy(*_ABOUT).agg(
        F.count("*").alias("events"),
        F.max(F.when(is_seen, F.col("at"))).alias("newest"),
        F.max("sent").alias("newest_sent"),
        F.min(F.when(F.col("offset").isNotNull(), F.col("at"))).alias("least"),
    )


def _facts() -> tuple[Column, ...]:
    return (
        F.sum("events").alias("events"),
        F.max("newest").alias("newest"),
        F.max("newest_sent").alias("newest_sent"),
    )


def _touched(state: State, events: DataFrame, count: int) -> set[str]:
    found = verdicts.bucketed(verdicts.times(events)).select("bucket", "key")
    here = {row["bucket"] for row in found.select("bucket").distinct().collect()}
    others = state.known.buckets.keys() - here
    if not others:
        return here
    keys = found.select("key")
    keys = F.broadcast(keys) if count <= FEW else keys
    kept = state.rows(others).select("bucket", "key").join(keys, on="key", how="left_semi")
    return here | {row["bucket"] for row in kept.select("bucket").distinct().collect()}


def _spread(spark: SparkSession, rows: int) -> None:
    """So many tasks that each has its part in memory."""
    usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 4)
    wanted = min(max(usual, -(-rows // PER_TASK)), 2000)
    spark.conf.set("spark.sql.shuffle.partitions", str(wanted))


def _laid_out(rows: DataFrame) -> DataFrame:
    """By bucket; one that has very many rows is written by several tasks."""
    spread = verdicts.bucketed(rows).hint("rebalance", "bucket")
    return spread.sortWithinPartitions("bucket", "queue", "message_id")


def _texts(summary: DataFrame) -> DataFrame:
    def told(kind: str, key: Column, name: str, number: Column) -> Column:
        columns = {"kind": F.lit(kind), "key": key, "text": F.col(name), "number": number}
        return F.struct(*(column.alias(name) for name, column in columns.items()))

    none = F.lit(None).cast("int")
    each = F.array(
        told(QUEUE, F.xxhash64("queue"), "name", none),
        told(TEXT, F.xxhash64("run"), "run", none),
        told(TEXT, F.xxhash64("origin"), "origin", none),
        told(PLACE, F.xxhash64("topic", "partition"), "topic", F.col("partition")),
    )
    return summary.select(F.explode(each).alias("t")).select("t.*").where("text is not null")


def _least(texts: DataFrame) -> DataFrame:
    """One spelling each."""
    return texts.groupBy("kind", "key").agg(
        F.min("text").alias("text"), F.min("number").alias("number")
    )


def _is_renamed(before: DataFrame, after: DataFrame) -> bool:
    known = before.where(F.col("kind") == QUEUE).select("key", F.col("text").alias("was"))
    return not known.join(after, on="key", how="inner").where("was != text").isEmpty()


def _copies(state: State, written: DataFrame, old: DataFrame, landed: DataFrame) -> DataFrame:
    """Where the records lie of messages that have several. One that had a single one so far has
    its place in its row."""
    known = state.small("copies")
    doubled = written.where(F.col("copies") > 1).select(*KEY)
    count = doubled.count()
    if not count:
        return known
    names = known.columns
    here = landed.where(F.col("kind") == int(Kind.LANDED)).select(*names)
    texts = state.small("texts").where(F.col("kind") == PLACE)
    places = texts.select(
        verdicts.landed_at(F.col("key")).alias("place"),
        F.col("text").alias("topic"),
        F.col("number").alias("partition"),
    )
    before = (
        old.where(F.col("copies") == 1)
        .select(*KEY, F.col("landed").alias("at"), "place", "offset")
        .join(F.broadcast(places), on="place", how="left")
        .select(*names)
    )
    keys = F.broadcast(doubled) if count <= FEW else doubled
    return known.union(here.union(before).join(keys, on=list(KEY), how="left_semi").select(*names))


def _oldest(
    known: Mapping[str, Mapping[int, int]], summary: DataFrame
) -> dict[str, dict[int, int]]:
    """Where records have aged before they were read: the time of the first that was."""
    made = {topic: dict(places) for topic, places in known.items()}
    if not any(at == NEVER for places in made.values() for at in places.values()):
        return made
    least = summary.where("least is not null").groupBy("topic", "partition").agg(F.min("least"))
    for topic, partition, at in least.collect():
        if made.get(topic, {}).get(partition) == NEVER:
            made[topic][partition] = at
    return made


def _max(one: int | None, two: Any) -> int | None:
    return max((x for x in (one, two) if x is not None), default=None)
