"""Proves, message by message, that senders, wire and topics agree; says what does not.

sources, audit, topics -> events -> one row per message, kept in the state -> verdicts -> findings
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.adapters.kafka.spark_jars import CONNECTOR_VERSION
from bridge.core.mapping_rules import Mappings
from bridge.core.patterns import PatternTable
from bridge.model.errors import BridgeError
from msmq_jobs import mapped
from msmq_jobs.reconcile import findings, queues, repair, verdicts
from msmq_jobs.reconcile.cluster import compacted
from msmq_jobs.reconcile.details import Details
from msmq_jobs.reconcile.files import Folder
from msmq_jobs.reconcile.merging import NEVER, PLACE, QUEUE, TEXT
from msmq_jobs.reconcile.reading import WORK, Order, Reading, Watcher, audit_from, folders
from msmq_jobs.reconcile.report import rendered
from msmq_jobs.reconcile.rules import DUPLICATED, MISSING, RULES
from msmq_jobs.reconcile.state import Known
from msmq_jobs.reconcile.verdicts import Bounds
from msmq_jobs.sources.exports import reason_of

SCHEMA: Final = 1


class ReconcileFailed(BridgeError):
    """Spark gave up; nothing was changed, run it again."""


class Job(Reading):
    """One appliance, one order; `read_new` any number of times, then `judge`."""

    def judge(self) -> dict[str, Any]:
        """Settles what was read and writes all that `--out` has; the findings."""
        self.settle()
        self._watcher.stage("judging")
        texts = self.state.small("texts").persist()
        try:
            bounds, places = self._bounds(), self._places()
            marks = self._marks(bounds, places)
            details = Details(self._spark, self._out.root)
            stale = details.stale(marks)
            found = verdicts.judged(
                self.state.rows(stale), self._known(places, texts), self._queues(texts), bounds
            )
            named = verdicts.rows(found, texts.where(F.col("kind") == TEXT), "bucket")
            details.write(self._asked(named), marks, stale)
            return self._told(details.read(named.schema), bounds)
        finally:
            texts.unpersist()

    def _told(self, rows: DataFrame, bounds: Bounds) -> dict[str, Any]:
        self._watcher.stage("summing up")
        copies = self.state.small("copies")
        told = findings.find(
            rows,
            copies,
            self._inputs(bounds),
            _Modes(self.place.mappings),
            self._order.allowed,
            self.state.known.foreign,
        )
        told["repair"] = self._repair(rows, copies, told["verdicts"])
        told["details"] = "verdicts/"
        for name, content in rendered(told).items():
            self._out.write(name, [content.decode()])
        self._out.delete(WORK)
        return told

    def _repair(
        self, rows: DataFrame, copies: DataFrame, totals: Mapping[str, int]
    ) -> dict[str, Any]:
        made: dict[str, Any] = {"missing": totals[MISSING], "with_copy": 0, "surplus": 0}
        made |= {"plan": None, "skip": None}
        plan = repair.planned(rows)
        if totals[MISSING]:
            made["with_copy"] = plan.count()
        if self._order.plan:
            made["plan"] = Path(self._order.plan).name
            _write(self._spark, self._order.plan, plan)
        if totals[DUPLICATED]:
            surplus = repair.surplus(rows, copies)
            made |= {"surplus": surplus.count(), "skip": "skip.jsonl"}
            self._out.write("skip.jsonl", repair.as_lines(surplus.toLocalIterator()))
        else:
            self._out.delete("skip.jsonl")
        return made

    def _bounds(self) -> Bounds:
        known, asked = self.state.known, self._order
        newest = known.newest if known.newest is not None else known.newest_sent or 0
        watermark = asked.until_ms if asked.until_ms is not None else newest
        return Bounds(
            since=asked.since_ms,
            until=asked.until_ms,
            watermark=watermark,
            new_from=watermark - asked.in_flight_s * 1000,
            audit_from=audit_from(known.oldest.get(self.audit, {})),
        )

    def _places(self) -> list[tuple[str, int, bool, int | None]]:
        """Partitions that do not keep everything: compacted, or what is older has aged."""
        known = self.state.known
        topics = [t for t in known.positions if t != self.audit]
        there = [t for t in topics if t in self.place.limits]
        gaps = compacted(self.place.settings, there)
        oldest = {t: known.oldest.get(t, {}) for t in there}
        # A topic that is gone has nothing any more.
        oldest |= {t: dict.fromkeys(known.positions[t], NEVER) for t in topics if t not in there}
        return [
            (topic, n, topic in gaps, oldest[topic].get(n))
            for topic in sorted(topics)
            for n in sorted(known.positions[topic])
            if topic in gaps or n in oldest[topic]
        ]

    def _known(self, places: Sequence[Any], texts: DataFrame) -> DataFrame:
        """All places that anything was said of."""
        schema = "topic string, partition int, compacted boolean, oldest long"
        made = self._spark.createDataFrame(list(places), schema)
        every = texts.where(F.col("kind") == PLACE).select(
            F.col("key").alias("place"),
            F.col("text").alias("topic"),
            F.col("number").alias("partition"),
        )
        return every.join(F.broadcast(made), on=["topic", "partition"], how="left")

    def _queues(self, texts: DataFrame) -> DataFrame:
        named = texts.where(F.col("kind") == QUEUE).select(
            F.lower("text").alias("queue"), F.col("text").alias("name")
        )
        return named.withColumn("hidden", mapped.hidden(self.place.mappings))

    def _marks(self, bounds: Bounds, places: Sequence[Any]) -> dict[str, str]:
        """Of each bucket, what its verdicts follow from. A watermark behind its newest time does
        not change them."""
        known = self.state.known
        limits = (bounds.since, bounds.until, bounds.audit_from, self._order.queues)
        common = (RULES, version("msmq-bridge"), known.id, known.renamed, limits, places)
        return {
            name: _hash(common, bucket.run, min(bounds.new_from, bucket.latest + 1))
            for name, bucket in known.buckets.items()
        }

    def _asked(self, rows: DataFrame) -> DataFrame:
        if not self._order.queues:
            return rows
        fits = [mapped.like(F.lower("queue"), name.lower()) for name in self._order.queues]
        condition = fits[0]
        for one in fits[1:]:
            condition = condition | one
        return rows.where(condition)

    def _inputs(self, bounds: Bounds) -> dict[str, Any]:
        known, asked = self.state.known, self._order
        topics = sorted(t for t in known.positions if t != self.audit)
        return {
            "window": {
                "from": _moment(asked.since_ms),
                "to": _moment(asked.until_ms),
                "in_flight_s": asked.in_flight_s,
                "watermark": _moment(bounds.watermark),
            },
            "audit": {"topic": self.audit, "ranges": _ranges(known, self.audit)},
            "topics": [{"topic": topic, "ranges": _ranges(known, topic)} for topic in topics],
            "sources": [known.sources[name] for name in sorted(known.sources)],
            "mapping": {"hash": self._mapping, "files": _files(self.place.config.mappings)},
            "versions": {
                "msmq-bridge": version("msmq-bridge"),
                "spark": self._spark.version,
                "kafka_connector": CONNECTOR_VERSION,
                "schema": SCHEMA,
            },
        }


def reconcile(spark: SparkSession, order: Order, watcher: Watcher) -> dict[str, Any]:
    """The findings. Raises BridgeError when nothing can be said."""
    try:
        with folders(spark, order):
            job = Job(spark, order, watcher)
            job.read_sources()
            job.read_new()
            return job.judge()
    except (Py4JJavaError, PySparkException) as error:
        raise failed(order, error) from error


def failed(order: Order, error: Exception) -> ReconcileFailed:
    mend = "run it again"
    if order.state:
        mend += "; if it says the same then, the state is damaged: name a new folder"
    return ReconcileFailed(f"{reason_of(error)}; {mend}")


class _Modes(dict[str, tuple[str, str]]):
    """What the mapping says of a queue, by its name in lower case."""

    def __init__(self, mappings: Mappings) -> None:
        super().__init__()
        self._exact = {m.queue.lower(): m for m in mappings.queues if not m.queue.has_wildcard}
        self._patterns = PatternTable((m.queue, m) for m in mappings.queues if m.queue.has_wildcard)
        is_open = mappings.defaults.unknown == "auto-create"
        self._rest = mappings.defaults if is_open else None
        self._alone = frozenset(mapped.lone_topics(mappings).values())

    def get(self, name: str, default: Any = None) -> Any:
        settings = self._exact.get(name) or self._patterns.find(name) or self._rest
        return (settings.mode, queues.content(settings, self._alone)) if settings else default


def _hash(*values: Any) -> str:
    return sha256(msgspec.json.encode(values)).hexdigest()


def _write(spark: SparkSession, path: str, plan: DataFrame) -> None:
    where, _, name = path.rpartition("/")
    Folder(spark, where or ".").write(name, repair.as_list(plan.toLocalIterator()))


def _ranges(known: Known, topic: str) -> list[dict[str, int]]:
    ends = known.positions.get(topic, {})
    first = known.first.get(topic, {})
    return [{"partition": n, "from": first.get(n, 0), "to": ends[n]} for n in sorted(ends)]


def _moment(ms: int | None) -> str | None:
    return None if ms is None else findings.iso_s(ms / 1000)


def _files(path: Path | None) -> list[str]:
    if path is None:
        return []
    found: Iterable[Path] = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    return [file.name for file in found]
