"""From the events of all ledgers to one verdict per message and queue. The table is in `rules`.

The wide path is one shuffle by id and queue: every aggregate is a number, so that Spark keeps them
in its hash table; texts (topic, source, run) go through as hashes and come back from small tables.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from msmq_jobs.reconcile.events import (
    BODY,
    CLASS,
    CORRELATION,
    CRC,
    EVENT,
    HALF,
    HASHES,
    LABEL,
    REST,
    TX,
    WHICH,
    differing,
)
from msmq_jobs.reconcile.rules import (
    ALTERED,
    DEAD_LETTERED,
    DELIVERED,
    DUPLICATED,
    EXPIRED,
    IN_FLIGHT,
    MISSING,
    OUT_OF_ORDER,
    REJECTED,
    UNEXPECTED,
    Kind,
)

_TAKEN: Final = Kind.ACCEPTED | Kind.BACKFILLED
_REFUSED: Final = Kind.EXPIRED | Kind.REJECTED
KEY: Final = ("message_id", "queue")
_OURS: Final = ("accepted", "landed", "ahead")  # times that the appliance or Kafka tells
_YEAR_2000: Final = 946_684_800_000  # ms
_YEAR_2100: Final = 4_102_444_800_000


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged, and from when on it may still be on its way. Unix milliseconds."""

    since: int | None = None
    until: int | None = None
    watermark: int = 0
    new_from: int  # the watermark, less the window
    audit_from: int | None = None  # the audit has lost what is older


def gathered(events: DataFrame) -> DataFrame:
    """One row per message and queue, with all that its events say."""
    kind = F.col("kind")
    is_landed = kind == int(Kind.LANDED)
    narrow = events.select(
        *(*KEY, "kind", "at", "sent", "end", "sequence", "number"),
        _place(is_landed).alias("place"),
        F.when(is_landed, F.col("offset")).alias("offset"),
        F.when(is_landed, _key("run")).alias("run_key"),
        _key("origin").alias("origin_key"),
        *HASHES,
    )
    # A ledger has a message once as a rule: nothing to put together before the shuffle.
    return (
        narrow.repartition(*KEY)
        .groupBy(*KEY)
        .agg(
            F.bit_or(kind).alias("flags"),
            F.sum(is_landed.cast("int")).alias("copies"),
            *(F.min(time).alias(name) for name, time in _times().items()),
            F.max("end").alias("end"),
            *(F.min(name).alias(name) for name in ("place", "offset", "run_key", "origin_key")),
            F.max("sequence").alias("sequence"),
            F.max("number").alias("number"),
            *(F.min(name).alias(f"{name}_1") for name in HASHES),
            *(F.max(name).alias(f"{name}_2") for name in HASHES),
        )
    )


def times(events: DataFrame) -> DataFrame:
    """The message of each event, and when it was seen: enough for `bucketed`."""
    return events.select(*KEY, *(time.alias(name) for name, time in _times().items()))


def _times() -> dict[str, Column]:
    kind, at = F.col("kind"), F.col("at")
    is_taken = kind.isin(int(Kind.ACCEPTED), int(Kind.BACKFILLED), *_ends())
    is_landed = kind == int(Kind.LANDED)
    return {
        "sent": F.col("sent"),
        "accepted": F.when(is_taken, at),
        "landed": F.when(is_landed, at),
        "ahead": F.when(kind == int(Kind.AHEAD), at),
    }


def merged(rows: DataFrame) -> DataFrame:
    """Rows of one message become one; in any order, in any number of steps."""
    how = {"flags": F.bit_or, "copies": F.sum, "end": F.max, "sequence": F.max, "number": F.max}
    how |= {f"{name}_2": F.max for name in HASHES}
    names = [name for name in rows.columns if name not in KEY]
    return rows.groupBy(*KEY).agg(*(how.get(name, F.min)(name).alias(name) for name in names))


def bucketed(rows: DataFrame) -> DataFrame:
    """With `key`, to be found by, and `bucket`, to be kept in: the day when it came to us. What
    never did is kept by months: of days that only a sender tells there could be very many."""
    ours, theirs = F.least(*_OURS), F.col("sent")
    sane = (F.coalesce(ours, theirs) >= _YEAR_2000) & (F.coalesce(ours, theirs) < _YEAR_2100)
    day = F.date_format(F.timestamp_millis(F.when(sane, F.coalesce(ours, theirs))), "yyyy-MM-dd")
    name = F.when(ours.isNotNull(), day).otherwise(F.substring(day, 1, 7))
    return rows.select(
        "*", F.xxhash64(*KEY).alias("key"), F.coalesce(name, F.lit("undated")).alias("bucket")
    )


def shape(spark: SparkSession) -> StructType:
    """Of the rows of `bucketed`."""
    return bucketed(gathered(spark.createDataFrame([], EVENT))).schema


def latest() -> Column:
    """The newest time that is known of a message."""
    return F.greatest("sent", *_OURS)


def _ends() -> tuple[int, ...]:
    return int(Kind.EXPIRED), int(Kind.REJECTED)


def _place(is_landed: Column) -> Column:
    """A hash of topic and partition. Below zero a record lies there, else the audit says so; the
    lower one is kept."""
    key = _key("topic", "partition")
    return F.when(is_landed, landed_at(key)).otherwise(_unsigned(key))


def landed_at(key: Column) -> Column:
    return key.bitwiseOR(F.lit(-1 << 63))


def _key(*names: str) -> Column:
    return F.when(F.col(names[0]).isNotNull(), F.xxhash64(*names))


def _unsigned(key: Column) -> Column:
    return key.bitwiseAND(F.lit((1 << 63) - 1))


def judged(gathered: DataFrame, places: DataFrame, queues: DataFrame, bounds: Bounds) -> DataFrame:
    """`verdict` and `reason` for each. `places` are partitions of topics (`place`, `topic`,
    `partition`, `compacted`, `oldest`), `queues` what mappings say (`queue`, `name`, `hidden`)."""
    by_place = places.withColumn("place", _unsigned(F.col("place")))
    known = (
        gathered.withColumn("place", _unsigned(F.col("place")))
        .join(F.broadcast(by_place), on="place", how="left")
        .join(F.broadcast(queues), on="queue", how="left")
    )
    at = F.least("sent", *_OURS)
    inside = [
        at >= F.lit(bounds.since) if bounds.since is not None else None,
        at < F.lit(bounds.until) if bounds.until is not None else None,
    ]
    for condition in inside:
        if condition is not None:
            known = known.where(condition)
    return known.select("*", _verdict(bounds).alias("verdict")).select(
        "*", _reason().alias("reason")
    )


def _has(kind: Kind) -> Column:
    return F.col("flags").bitwiseAND(F.lit(int(kind))) != 0


def _differs(name: str) -> Column:
    return F.col(f"{name}_1") != F.col(f"{name}_2")


_COMPARED: Final = {
    "body": (BODY, CRC),
    "msmq.label": (LABEL,),
    "msmq.correlation": (CORRELATION,),
    "msmq.tx": (TX,),
    "msmq.class": (CLASS,),
}


def _apart(*names: str) -> Column:
    each = [F.coalesce(_differs(name), F.lit(False)) for name in names]
    return reduce(Column.__or__, each)


def _is_altered() -> Column:
    return _apart(*(name for pair in _COMPARED.values() for name in pair), REST)


def _is_gone_lawfully() -> Column:
    """Its commit is in the audit, and the topic does not keep it."""
    aged = F.col("accepted") < F.col("oldest")
    lawful = (F.col("compacted"), aged, F.col("hidden"))
    return reduce(Column.__or__, [F.coalesce(reason, F.lit(False)) for reason in lawful])


def _verdict(bounds: Bounds) -> Column:
    # By our own clock where it was looked at: a sender's may be years ahead.
    moment = F.coalesce(F.greatest(*_OURS), F.col("sent"))
    is_new = F.coalesce(moment >= F.lit(bounds.new_from), F.lit(False))
    is_known = _has(_TAKEN) | _has(Kind.SENT)
    before_audit = F.lit(False)
    if bounds.audit_from is not None:
        before_audit = F.col("landed") < F.lit(bounds.audit_from)
    one, none = F.col("copies") == 1, F.col("copies") == 0
    stray = one & ~_has(_TAKEN) & (~_has(Kind.SENT) | _has(_REFUSED))
    is_taken = none & _has(_TAKEN)
    return (
        F.when(F.col("copies") > 1, DUPLICATED)
        .when(stray & is_new, IN_FLIGHT)
        .when(stray & ~before_audit, UNEXPECTED)
        .when(one & ~is_known, DELIVERED)
        .when(one & _is_altered(), ALTERED)
        .when(one & _has(Kind.SWAPPED), OUT_OF_ORDER)
        .when(one, DELIVERED)
        .when(is_taken & _is_gone_lawfully(), DELIVERED)
        .when(is_taken & is_new, IN_FLIGHT)
        .when(is_taken, MISSING)
        .when(none & (_has(Kind.EXPIRED) | _has(Kind.LATE)), EXPIRED)
        .when(none & _has(Kind.REJECTED), REJECTED)
        .when(none & _has(Kind.DEAD), DEAD_LETTERED)
        .when(none & is_new, IN_FLIGHT)
        .when(none, MISSING)
    )


def _reason() -> Column:
    verdict = F.col("verdict")
    gone = (
        F.when(F.coalesce(F.col("hidden"), F.lit(False)), "the mapping hides ids: the audit has it")
        .when(F.coalesce(F.col("compacted"), F.lit(False)), "compacted: the audit has its commit")
        .otherwise("aged out: the audit has its commit")
    )
    never = (
        F.when(_has(Kind.AHEAD), "refused until its turn, and not sent again")
        .when(_has(Kind.EXPRESS), "sent express, never accepted: MSMQ may lose it")
        .otherwise("sent, never accepted")
    )
    missing = (
        F.when(_has(Kind.PARTIAL), "accepted, but not all of its chunks are there")
        .when(_has(_TAKEN), "accepted, but there is no record")
        .otherwise(never)
    )
    return (
        F.when(verdict == DUPLICATED, F.concat(F.col("copies").cast("string"), F.lit(" copies")))
        .when(verdict == ALTERED, F.concat(F.lit("differs: "), _what_differs()))
        .when(verdict == OUT_OF_ORDER, "a later one of its stream stands before it")
        .when((verdict == UNEXPECTED) & _has(_REFUSED), "refused, but there is a record")
        .when(verdict == UNEXPECTED, "no ledger knows its id")
        .when(verdict == MISSING, missing)
        .when((verdict == DELIVERED) & (F.col("copies") == 0), gone)
        .when((verdict == DELIVERED) & ~_has(_TAKEN) & ~_has(Kind.SENT), "older than the audit")
        .when((verdict == IN_FLIGHT) & (F.col("copies") == 1), "landed, not yet in the audit")
        .when((verdict == IN_FLIGHT) & _has(_TAKEN), "accepted, not yet visible")
        .when(verdict == IN_FLIGHT, "sent, not yet accepted")
    )


def _what_differs() -> Column:
    """The names. A lambda also keeps Spark from one method for the whole stage: this select would
    make it longer than the JVM compiles, and every row would be interpreted."""
    first, second = F.col(f"{WHICH}_1"), F.col(f"{WHICH}_2")
    named = F.array(
        *(F.when(_apart(*pair), name) for name, pair in _COMPARED.items()),
        *(F.when(_differs(REST), name) for name in differing(first, second)),
    )
    told = F.array_join(F.filter(named, lambda name: name.isNotNull()), ", ")
    return F.coalesce(_given(told), F.lit("a property"))


def _given(text: Column) -> Column:
    return F.when(text != "", text)


def rows(judged: DataFrame, texts: DataFrame, *more: str) -> DataFrame:
    """As they are kept, for people and programs. `texts` (`key`, `text`) has runs and sources,
    `more` are columns of `judged` that stay as they are."""
    runs = texts.select(F.col("key").alias("run_key"), F.col("text").alias("backfill_run"))
    origins = texts.select(F.col("key").alias("origin_key"), F.col("text").alias("origin"))
    named = judged.join(F.broadcast(runs), on="run_key", how="left").join(
        F.broadcast(origins), on="origin_key", how="left"
    )
    sequence = F.col("sequence").cast("decimal(20,0)") + F.lit(HALF).cast("decimal(20,0)")
    return named.select(
        "message_id",
        F.coalesce("name", "queue").alias("queue"),
        "verdict",
        "reason",
        F.substring_index("message_id", "\\", 1).alias("source"),
        F.when(F.col("verdict").isin(EXPIRED, REJECTED, DEAD_LETTERED), F.col("end")).alias(
            "class"
        ),
        *("topic", "partition", "offset"),
        F.col("copies").cast("int"),
        F.timestamp_millis("sent").alias("sent_time"),
        F.timestamp_millis("accepted").alias("accepted_time"),
        F.timestamp_millis("landed").alias("landed_time"),
        sequence.cast("decimal(20,0)").alias("tx_sequence_id"),
        F.col("number").alias("tx_sequence_number"),
        "backfill_run",
        "origin",
        *more,
    )
