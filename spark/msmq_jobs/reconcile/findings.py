"""The verdicts in sums, as plain data: what `report.json` has and the page shows.

Only small aggregates leave Spark: at most so many queues, senders, points and offenders.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.model.classes import MessageClass
from msmq_jobs.reconcile.rules import BREAKING, DELIVERED, EXPIRED, REJECTED, VERDICTS
from msmq_jobs.reconcile.thresholds import holds

VERSION: Final = 1
MAX_QUEUES: Final = 5000  # those that were refused too: senders can invent names
MAX_SENDERS: Final = 1000
MAX_OFFENDERS: Final = 200
MAX_POINTS: Final = 500
MAX_COPIES: Final = 20
_STEPS: Final = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    21_600,
    43_200,
    86_400,
)
_LATENCIES: Final = tuple(m * 10**e for e in range(8) for m in (1, 2, 5))  # ms, to 13 hours


def find(
    verdicts: DataFrame,
    copies: DataFrame,
    inputs: Mapping[str, Any],
    modes: Mapping[str, tuple[str, str]],
    allowed: Mapping[str, str],
    foreign: int,
) -> dict[str, Any]:
    """`verdicts` as they are kept, `copies` where the records lie of messages that have several.
    `modes` has the mode of a queue and what of its content was compared."""
    totals, unseen = _totals(verdicts)
    messages = sum(totals.values())
    queues_total, queues = _queues(verdicts, modes)
    senders_total, senders = _senders(verdicts)
    return {
        "version": VERSION,
        "parity": all(holds(totals[name], messages, allowed.get(name)) for name in BREAKING),
        "strict": not any(totals[name] for name in BREAKING),
        "thresholds": dict(allowed),
        "verdicts": totals,
        "messages": messages,
        "unseen": unseen,
        "queues": queues,
        "queues_total": queues_total,
        "senders": senders,
        "senders_total": senders_total,
        "timeline": _timeline(verdicts),
        "latency": {"buckets": _latency(verdicts)},
        "offenders": _offenders(verdicts, copies, totals),
        "inputs": dict(inputs),
        "foreign": foreign,
    }


def _first() -> Column:
    return F.least("sent_time", "accepted_time", "landed_time")


def _last() -> Column:
    return F.greatest("sent_time", "accepted_time", "landed_time")


def _delay() -> Column:
    """From sending to landing: accepted and landed are one reading of one clock. A backfill says
    nothing about it."""
    ms = F.unix_millis("landed_time") - F.unix_millis("sent_time")
    told = ms.isNotNull() & F.col("backfill_run").isNull()  # `greatest` would skip a null
    return F.when(told, F.greatest(ms, F.lit(0)))


def _rounded(delay: Column) -> Column:
    """Down to three digits: so few values that their percentiles can be exact, and so the same
    however the rows lie."""
    step = F.pow(F.lit(10), F.greatest(F.length(delay.cast("string")) - 3, F.lit(0))).cast("long")
    return delay - delay % step


def _totals(verdicts: DataFrame) -> tuple[dict[str, int], int]:
    """By verdict; and of those delivered, how many have no record that could be looked at."""
    rows = verdicts.groupBy("verdict", (F.col("copies") == 0).alias("unseen")).count().collect()
    totals = dict.fromkeys(VERDICTS, 0)
    for row in rows:
        totals[row["verdict"]] += row["count"]
    unseen = sum(row["count"] for row in rows if row["unseen"] and row["verdict"] == DELIVERED)
    return totals, unseen


def _queues(
    verdicts: DataFrame, modes: Mapping[str, tuple[str, str]]
) -> tuple[int, list[dict[str, Any]]]:
    delays = (
        F.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY _rounded)").alias(name)
        for name, share in (("p50", 0.5), ("p99", 0.99))
    )
    each = (
        verdicts.withColumn("_rounded", _rounded(_delay()))
        .groupBy("queue")
        .agg(
            F.sort_array(F.collect_set("topic")).alias("topics"),
            *_counted(),
            *delays,
            F.max(_delay()).alias("max"),
        )
    )
    total, worst = _worst(each, "queue", MAX_QUEUES)
    made: dict[str, dict[str, Any]] = {}
    for row in worst:
        mode, content = modes.get(row["queue"].lower(), ("forward", "compared"))
        delay = {name: row[name] for name in ("p50", "p99", "max")}
        made[row["queue"]] = {
            "queue": row["queue"],
            "topics": list(row["topics"]),
            "mode": mode,
            **_told(row),
            "classes": {},
            "latency_ms": delay if row["max"] is not None else None,
            "content": content,
        }
    for row in _classes(verdicts, made):
        made[row["queue"]]["classes"][class_name(row["class"])] = row["count"]
    return total, list(made.values())


def _classes(verdicts: DataFrame, queues: Collection[str]) -> list[Any]:
    """Of these queues, in order."""
    some = verdicts.where(F.col("class") != 0)
    names = [(name,) for name in queues]
    chosen = F.broadcast(verdicts.sparkSession.createDataFrame(names, "queue string"))
    counts = some.join(chosen, on="queue", how="left_semi").groupBy("queue", "class").count()
    return sorted(counts.collect(), key=lambda row: (row["queue"], row["class"]))


def _senders(verdicts: DataFrame) -> tuple[int, list[dict[str, Any]]]:
    each = verdicts.groupBy("source").agg(F.count_distinct("queue").alias("queues"), *_counted())
    total, worst = _worst(each, "source", MAX_SENDERS)
    return total, [
        {"source": row["source"], "queues": row["queues"], **_told(row)} for row in worst
    ]


def _counted() -> list[Column]:
    by_verdict = [F.sum((F.col("verdict") == v).cast("int")).alias(v) for v in VERDICTS]
    times = [F.min(_first()).alias("first"), F.max(_last()).alias("last")]
    return [F.count("*").alias("messages"), *by_verdict, *times]


def _told(row: Any) -> dict[str, Any]:
    """`_counted`, as the report has it."""
    return {
        "messages": row["messages"],
        "verdicts": {v: row[v] for v in VERDICTS if row[v]},
        "first": iso(row["first"]),
        "last": iso(row["last"]),
    }


def _worst(each: DataFrame, name: str, most: int) -> tuple[int, list[Any]]:
    """How many there are, and those with the most broken messages, then with the most that came
    (names that somebody invents have none); in the order of their names."""
    broken = sum((F.col(v) for v in BREAKING), F.lit(0))
    worst = each.orderBy(broken.desc(), F.col(DELIVERED).desc(), name).limit(most).collect()
    total = len(worst) if len(worst) < most else each.count()
    return total, sorted(worst, key=lambda row: row[name])


def _timeline(verdicts: DataFrame) -> dict[str, Any]:
    kinds = ("sent", "accepted", "landed")
    times = {kind: F.unix_seconds(f"{kind}_time") for kind in kinds}
    is_refused = F.col("verdict").isin(REJECTED, EXPIRED)  # the audit has the time of that
    times["accepted"] = F.when(~is_refused, times["accepted"])
    bounds = verdicts.agg(
        F.min(F.unix_seconds(_first())).alias("first"), F.max(F.unix_seconds(_last())).alias("last")
    ).first()
    if bounds is None or bounds["first"] is None:
        return {"bucket_s": 1, "points": []}
    span = bounds["last"] - bounds["first"]
    step = next((s for s in _STEPS if span / s < MAX_POINTS), 0) or -(-span // MAX_POINTS)
    rows = verdicts.select(
        F.explode(
            F.array(
                *(
                    F.struct(F.lit(kind).alias("kind"), time.alias("t"))
                    for kind, time in times.items()
                )
            )
        ).alias("e")
    ).select("e.*")
    counted = (
        rows.where(F.col("t").isNotNull())
        .groupBy((F.floor(F.col("t") / step) * step).alias("at"), "kind")
        .agg(F.count("*").alias("n"))
        .collect()
    )
    points: dict[int, dict[str, int]] = {}
    for row in counted:
        points.setdefault(row["at"], dict.fromkeys(kinds, 0))[row["kind"]] = row["n"]
    return {
        "bucket_s": step,
        "points": [{"at": iso_s(at), **points[at]} for at in sorted(points)],
    }


def _latency(verdicts: DataFrame) -> list[dict[str, Any]]:
    delay = _delay()
    bucket = F.lit(len(_LATENCIES))
    for n, limit in reversed(list(enumerate(_LATENCIES))):
        bucket = F.when(delay <= limit, n).otherwise(bucket)
    rows = (
        verdicts.select(F.when(delay.isNotNull(), bucket).alias("bucket"))
        .where(F.col("bucket").isNotNull())
        .groupBy("bucket")
        .count()
        .collect()
    )
    found = {row["bucket"]: row["count"] for row in rows}
    last = max(found, default=-1)
    limits: list[int | None] = [*_LATENCIES, None]
    return [{"le_ms": limits[n], "count": found.get(n, 0)} for n in range(last + 1)]


def _offenders(
    verdicts: DataFrame, several: DataFrame, totals: Mapping[str, int]
) -> dict[str, list[dict[str, Any]]]:
    """The first of each by queue and id; where their copies lie, for people."""
    names = [name for name in VERDICTS if name != DELIVERED and totals[name]]
    if not names:
        return {}
    some = [
        verdicts.where(F.col("verdict") == name).orderBy("queue", "message_id").limit(MAX_OFFENDERS)
        for name in names
    ]
    rows = reduce(DataFrame.union, some).collect()
    keys = several.sparkSession.createDataFrame(
        [(row["message_id"], row["queue"].lower()) for row in rows],
        "message_id string, queue string",
    )
    places = F.sort_array(F.collect_list(F.struct("topic", "partition", "offset")))
    copies = (
        several.join(F.broadcast(keys), on=["message_id", "queue"], how="left_semi")
        .groupBy("message_id", "queue")
        .agg(F.slice(places, 1, MAX_COPIES).alias("copies"))
        .collect()
    )
    where = {(row["message_id"], row["queue"]): row["copies"] for row in copies}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in sorted(rows, key=lambda row: (row["queue"], row["message_id"])):
        found[row["verdict"]].append(_offender(row, where))
    return found


def _offender(row: Any, where: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    only = [{name: row[name] for name in ("topic", "partition", "offset")}]
    several = where.get((row["message_id"], row["queue"].lower()), [])
    return {
        **{name: row[name] for name in ("message_id", "queue", "source", "reason")},
        "class": class_name(row["class"]) if row["class"] else None,
        **{name: iso(row[name]) for name in ("sent_time", "accepted_time", "landed_time")},
        "copies": only if row["copies"] == 1 else [copy.asDict() for copy in several],
    }


def class_name(number: int) -> str:
    try:
        return f"0x{number:04X} {MessageClass(number).name}"
    except ValueError:
        return f"0x{number:04X}"


def iso(moment: Any) -> str | None:
    """Spark hands out local time."""
    return None if moment is None else iso_s(moment.timestamp())


def iso_s(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace(".000", "").replace("+00:00", "Z")
