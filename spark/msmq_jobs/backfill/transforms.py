"""Which messages are written: DataFrames in, DataFrames out; every row that stays says why.

A row's `reason` is null while it goes. The first rule that finds one decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from bridge.model.classes import MessageClass
from msmq_jobs.backfill.prepare import MARK, UNREADABLE
from msmq_jobs.mapped import like
from msmq_jobs.schemas import FAULT, ORIGIN

FILTERED: Final = "filtered"
EXPIRED: Final = "expired"
NOT_PLANNED: Final = "not-in-plan"
REPEATED: Final = "repeated-in-sources"
PRESENT: Final = "already-there"
# Those that leave nothing undone: everything else is a message that somebody must look after.
LAWFUL: Final = (FILTERED, EXPIRED, NOT_PLANNED, REPEATED, PRESENT)
_EARLY: Final = (UNREADABLE, FILTERED, EXPIRED)

_EXPIRED: Final = [
    int(number)
    for number in (
        MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER,
    )
]
_AUDIT: Final = "array<struct<id:string,verdict:string,queue:string>>"
_MARK: Final = "id string, queue string"
_THERE: Final = ("accepted", "backfilled")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages a user wants; nothing: all that did not expire."""

    queues: tuple[str, ...] = ()  # path names; * and ? stand for what they do in mappings
    since: str = ""  # ISO 8601, by the time of sending
    until: str = ""
    classes: tuple[int, ...] = ()
    label: str = ""  # with * and ?
    include_expired: bool = False


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a plan that `reconcile` made."""

    message_id: str
    queue: str
    source: str = ""


def chosen(read: DataFrame, asked: Asked, now: int) -> DataFrame:
    """What can be said before a message is looked into; `now` is in seconds."""
    sent = F.coalesce(F.col("sent_time"), F.col("arrived_time")).try_cast("timestamp")
    outcome = F.col("headers")["msmq.outcome"].try_cast("int")
    failure = F.coalesce(outcome, F.col("class"), F.lit(0))
    wanted = [
        sent >= F.lit(asked.since).cast("timestamp") if asked.since else None,
        sent < F.lit(asked.until).cast("timestamp") if asked.until else None,
        failure.isin(list(asked.classes)) if asked.classes else None,
        like(F.coalesce(F.col("label"), F.lit("")), asked.label) if asked.label else None,
    ]
    has_expired = failure.isin(_EXPIRED) | _is_over(sent, now)
    reason = (
        F.when(F.col(FAULT).isNotNull(), UNREADABLE)
        .when(~_all(wanted), FILTERED)
        .when(F.lit(not asked.include_expired) & has_expired, EXPIRED)
    )
    return read.withColumn("reason", reason)


def _is_over(sent: Column, now: int) -> Column:
    """Its time to be received; DM-28: from the time of sending on. What lies in a journal was
    received in time."""
    seconds = F.col("headers")["msmq.ttbr"].try_cast("bigint")  # none: no end
    is_journaled = F.lower("queue").endswith(";journal")
    is_past = sent.cast("bigint") + seconds < F.lit(now)
    return ~is_journaled & F.coalesce(is_past, F.lit(False))


def of_queues(routed: DataFrame, queues: Collection[str]) -> DataFrame:
    """By the name that this appliance has for the queue."""
    if not queues:
        return routed
    name = F.lower(F.col("queue"))
    fits = reduce(Column.__or__, [like(name, queue.lower()) for queue in queues])
    return _stays(routed, ~fits, FILTERED, over_others=True)


def of_plan(routed: DataFrame, plan: DataFrame) -> DataFrame:
    """Only what the plan names, each from whatever source has it."""
    asked = plan.select(
        F.lower("message_id").alias("_id"), F.lower("queue").alias("_queue")
    ).distinct()
    found = routed.join(asked.withColumn("_planned", F.lit(True)), _same(), how="left")
    marked = _stays(found, F.col("_planned").isNull(), NOT_PLANNED, over_others=True)
    return marked.drop("_id", "_queue", "_planned")


def once(routed: DataFrame) -> DataFrame:
    """A message that two sources hold is written from one, that of a journal before a dead letter;
    always the same one, so that a repeated run says the same."""
    goes = F.col("reason").isNull()
    is_dead = F.col("class").bitwiseAND(F.lit(0x8000)) != 0
    same = Window.partitionBy(goes, F.lower("message_id"), F.lower("queue"))
    first = same.orderBy(is_dead, ORIGIN, F.col("lookup_id"), "sent_time", F.xxhash64("unit"))
    numbered = routed.withColumn("_number", F.row_number().over(first))
    return _stays(numbered, F.col("_number") > 1, REPEATED).drop("_number")


def repeated(routed: DataFrame) -> DataFrame:
    """The messages that more than one row would write."""
    keys = F.lower("message_id").alias("message_id"), F.lower("queue").alias("queue")
    goes = routed.where(F.col("reason").isNull()).select(*keys)
    return goes.groupBy("message_id", "queue").count().where(F.col("count") > 1)


def not_there(routed: DataFrame, known: DataFrame) -> DataFrame:
    """`known` is what the topics have (`in_topics`, `in_audit`)."""
    there = known.select(
        F.lower("message_id").alias("_id"), F.lower("queue").alias("_queue")
    ).distinct()
    found = routed.join(there.withColumn("_there", F.lit(True)), _same(), how="left")
    marked = _stays(found, F.col("_there").isNotNull(), PRESENT)
    return marked.drop("_id", "_queue", "_there")


def in_topics(
    records: DataFrame,
    id_names: Sequence[str],
    queue_names: Sequence[str],
    homes: Mapping[str, str],
) -> DataFrame:
    """The messages of records; the names are what mappings call `msmq.id` and `msmq.queue`, `homes`
    the queues of topics that have one and do not tell it."""
    mark = F.from_json(_header(MARK), _MARK)
    pairs = [F.lit(x) for pair in sorted(homes.items()) for x in pair]
    home = F.create_map(*pairs)[F.col("topic")] if pairs else F.lit(None).cast("string")
    found = records.select(
        F.coalesce(*(_header(name) for name in id_names), mark["id"]).alias("message_id"),
        F.coalesce(home, *(_header(name) for name in queue_names), mark["queue"]).alias("queue"),
    )
    return found.where(F.col("message_id").isNotNull() & F.col("queue").isNotNull())


def in_audit(records: DataFrame) -> DataFrame:
    """The messages that the audit says became records."""
    entries = F.from_json(F.col("value").cast("string"), _AUDIT)
    each = records.select(F.explode(entries).alias("entry")).select("entry.*")
    became = each.where(F.col("verdict").isin(*_THERE))
    return became.select(F.col("id").alias("message_id"), F.lower("queue").alias("queue"))


def in_order(routed: DataFrame, tasks: int) -> DataFrame:
    """One task has all that goes to a partition, the messages of a stream in their order (DM-36).

    Transactional ones by their sequence; plain ones by when they were sent and by their ordinals,
    which a sender counts up (data-model.md 2.13)."""
    return (
        routed.where(F.col("reason").isNull())
        .repartition(tasks, "topic", "partition")
        .sortWithinPartitions(
            *("topic", "partition", "stream", "tx_sequence_id", "tx_sequence_number"),
            *("sent_time", "ordinal", "message_id"),
        )
    )


def counted(routed: DataFrame) -> DataFrame:
    """The plan of a run: how many messages go where, or stay, and why."""
    return (
        routed.groupBy(ORIGIN, "queue", "topic", "reason")
        .agg(F.count("*").alias("messages"), F.min("detail").alias("detail"))
        .orderBy(ORIGIN, "queue", "topic", "reason")
    )


def results(written: DataFrame) -> DataFrame:
    """How many messages each end had, by source and topic."""
    return (
        written.groupBy(ORIGIN, "queue", "topic", "result")
        .agg(F.count("*").alias("messages"), F.min("detail").alias("detail"))
        .orderBy(ORIGIN, "queue", "topic", "result")
    )


def missing(plan: DataFrame, routed: DataFrame) -> DataFrame:
    """What the plan names and no source has."""
    asked = plan.select(
        F.lower("message_id").alias("_id"), F.lower("queue").alias("_queue")
    ).distinct()
    return asked.join(routed.select("message_id", "queue"), _same(), how="left_anti")


def _stays(
    rows: DataFrame, condition: Column, reason: str, *, over_others: bool = False
) -> DataFrame:
    """`over_others`: what was not asked for is nobody's trouble, whatever else is wrong with it;
    but those that were not looked into have no queue yet."""
    applies = condition if over_others else condition & F.col("reason").isNull()
    if over_others:
        applies = applies & F.coalesce(~F.col("reason").isin(*_EARLY), F.lit(True))
    return rows.withColumn("reason", F.when(applies, reason).otherwise(F.col("reason")))


def _same() -> Column:
    return (F.lower("message_id") == F.col("_id")) & (F.lower("queue") == F.col("_queue"))


def _header(name: str) -> Column:
    """The text of a record's header; null without one, and in a topic without headers."""
    named = F.filter(F.col("headers"), lambda header: header["key"] == name)
    return F.get(named, F.lit(0))["value"].cast("string")


def _all(conditions: Sequence[Column | None]) -> Column:
    """A row that cannot tell (no time, say) does not fit."""
    given = [F.coalesce(c, F.lit(False)) for c in conditions if c is not None]
    return reduce(Column.__and__, given, F.lit(True))
