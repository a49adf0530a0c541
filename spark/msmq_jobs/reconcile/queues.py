"""What of a queue can be compared, and which queue a message of a source was for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from bridge.core.mapping_rules import Mappings, QueueSettings
from bridge.core.message_data import message_of
from bridge.core.values import value_of
from bridge.model.errors import ConfigError
from msmq_jobs.backfill.prepare import Target, bare_path
from msmq_jobs.mapped import hides_ids, per_queue
from msmq_jobs.reconcile.events import BODY, CLASS, CORRELATION, CRC, HASHES, LABEL, REST, TX, WHICH
from msmq_jobs.reconcile.rules import PROPERTIES
from msmq_jobs.rows import data_of_row
from msmq_jobs.schemas import READ

DECODED: Final = ("text", "json")  # values that only our own code can foretell
NOT_COMPARED: Final = "not compared: the mapping leaves out msmq.id or msmq.queue"
FEW: Final = 100_000  # destinations that every task can have
_HOME: Final = "dest string, held string, home string"
_SHOWS: Final = {
    LABEL: ("msmq.label",),
    CORRELATION: ("msmq.correlation",),
    TX: ("msmq.tx.seqid", "msmq.tx.seq"),
    CLASS: ("msmq.class",),
    REST: PROPERTIES,
    WHICH: PROPERTIES,
}


def is_envelope(mappings: Mappings) -> Column | None:
    if not any(settings.value == "envelope" for settings in mappings.every()):
        return None
    return per_queue(mappings, lambda settings: settings.value == "envelope")


def comparable(events: DataFrame, mappings: Mappings) -> DataFrame:
    """Without the hashes that the queue's records cannot have: a header that is left out, a value
    that is not the body."""
    columns = {name: _shown(mappings, name) for name in HASHES}
    if all(column is None for column in columns.values()):
        return events
    return events.select(
        *(_only_if(columns.get(name), name).alias(name) for name in events.columns)
    )


def _only_if(condition: Column | None, name: str) -> Column:
    return F.col(name) if condition is None else F.when(condition, F.col(name))


def _shown(mappings: Mappings, name: str) -> Column | None:
    def tells(settings: QueueSettings) -> bool:
        if name == CRC:  # the audit has that of the body
            return settings.value not in DECODED
        if name == BODY:
            return True
        return all(settings.headers.includes(header) for header in _SHOWS[name])

    if all(tells(settings) for settings in mappings.every()):
        return None
    return per_queue(mappings, tells)


def content(settings: QueueSettings, alone: Collection[str]) -> str:
    """For people: what of the content was compared."""
    if hides_ids(settings, alone):
        return NOT_COMPARED
    left = [
        n
        for n in dict.fromkeys(h for hs in _SHOWS.values() for h in hs)
        if not settings.headers.includes(n)
    ]
    if left:
        return f"compared, but for what the mapping leaves out: {', '.join(left)}"
    if settings.value in DECODED:
        return "compared with sources only: the value is decoded"
    return "compared"


# -- sources ----------------------------------------------------------------------------------


def homes(spark: SparkSession, read: DataFrame, target: Target) -> DataFrame:
    """With `home`, our queue for each message; null: it was for nobody here. Python sees each
    destination once."""
    dest = F.coalesce(F.col("headers")["msmq.dest"], F.lit(""))
    marked = read.withColumn("_dest", dest)
    pairs = marked.select(F.col("_dest").alias("dest"), F.col("queue").alias("held")).distinct()
    found = spark.createDataFrame(
        pairs.rdd.mapPartitions(partial(_find, target=target)), _HOME, verifySchema=False
    )
    if pairs.count() <= FEW:  # else somebody has invented them
        found = F.broadcast(found)
    same = (F.col("_dest") == F.col("dest")) & F.col("queue").eqNullSafe(F.col("held"))
    return marked.join(found, same, how="left").drop("_dest", "dest", "held")


def _find(rows: Iterable[Row], target: Target) -> Iterator[tuple[str, str | None, str | None]]:
    catalogue = target.catalogue()
    for row in rows:
        queue = catalogue.find(row["dest"]) if row["dest"] else None
        path = bare_path(row["held"] or "")
        queue = queue or (catalogue.by_path(path) if path else None)
        yield row["dest"], row["held"], queue.name if queue else None


def decoded(spark: SparkSession, read: DataFrame, mappings: Mappings) -> DataFrame:
    """Where a queue's value is decoded, `body` becomes the value that the mapping makes of it:
    the one step in Python, and only for such queues."""
    if not any(settings.value in DECODED for settings in mappings.every()):
        return read
    kind = per_queue(mappings, lambda settings: settings.value)
    marked = read.withColumn("_held", F.col("queue")).withColumn("queue", F.lower("home"))
    marked = marked.withColumn("_kind", kind).withColumn("queue", F.col("_held")).drop("_held")
    narrow = marked.where(F.col("_kind").isin(*DECODED))
    others = marked.where(~F.col("_kind").isin(*DECODED) | F.col("_kind").isNull()).drop("_kind")
    schema = (
        f"{', '.join(f'`{f.name}` {f.dataType.simpleString()}' for f in READ.fields)}, home string"
    )
    made = spark.createDataFrame(narrow.rdd.mapPartitions(_decode), schema, verifySchema=False)
    return others.select(*made.columns).union(made)


def _decode(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        values: Mapping[str, Any] = row.asDict()
        try:
            message = message_of(data_of_row(values))
            value, _ = value_of(message, values["_kind"], values["home"] or "", {})
        except ConfigError:
            value = values["body"]
        yield (*({**values, "body": value}[f.name] for f in READ.fields), values["home"])
