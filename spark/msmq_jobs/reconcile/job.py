"""Proves, message by message, that senders, wire and topics agree; says what does not.

sources, audit, topics -> events, kept in the state -> one verdict per message -> findings
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.adapters.kafka.spark_jars import CONNECTOR_VERSION
from bridge.core.mapping_rules import QueueMapping, QueueSettings
from bridge.model.errors import BridgeError
from msmq_jobs.place import Place
from msmq_jobs.reconcile import findings, order, queues, repair, verdicts
from msmq_jobs.reconcile.cluster import look
from msmq_jobs.reconcile.files import Folder
from msmq_jobs.reconcile.reading import WORK, Order, Reading, Watcher
from msmq_jobs.reconcile.report import rendered
from msmq_jobs.reconcile.rules import DUPLICATED, MISSING
from msmq_jobs.reconcile.state import LANDED, Known
from msmq_jobs.reconcile.verdicts import Bounds
from msmq_jobs.sources.exports import reason_of

SCHEMA: Final = 1
PER_TASK: Final = 250_000  # events that one task puts together
_NEVER: Final = (1 << 63) - 1


class ReconcileFailed(BridgeError):
    """Spark gave up; nothing was changed, run it again."""


class Job(Reading):
    """One appliance, one order; `read_new` any number of times, then `judge`."""

    def judge(self) -> dict[str, Any]:
        """Writes all that `--out` has; the findings."""
        self._watcher.stage("judging")
        landed = self.state.events([LANDED])
        events = self.state.events()
        facts = events.agg(F.count("*").alias("events"), *_newest()).first()
        assert facts is not None
        self._spread(facts["events"])
        bounds = self._bounds(facts)
        compared = queues.comparable(events.unionByName(order.swapped(landed)), self.place.mappings)
        found = verdicts.judged(
            verdicts.gathered(compared), self._places(landed), self._queues(events), bounds
        )
        kept = f"{self._out.root}/verdicts"
        rows = self._asked(verdicts.rows(found, _texts(events)))
        rows.repartitionByRange("queue", "message_id").sortWithinPartitions(
            "queue", "message_id"
        ).write.mode("overwrite").parquet(kept)
        return self._told(self._spark.read.parquet(kept), landed, bounds)

    def _told(self, rows: DataFrame, landed: DataFrame, bounds: Bounds) -> dict[str, Any]:
        self._watcher.stage("summing up")
        told = findings.find(
            rows,
            landed,
            self._inputs(bounds),
            _Modes(self.place),
            self._order.allowed,
            self.state.known.foreign,
        )
        told["repair"] = self._repair(rows, landed, told["verdicts"])
        told["details"] = "verdicts/"
        for name, content in rendered(told).items():
            self._out.write(name, [content.decode()])
        self._out.delete(WORK)
        return told

    def _repair(
        self, rows: DataFrame, landed: DataFrame, totals: Mapping[str, int]
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
            copies = repair.surplus(rows, landed)
            made |= {"surplus": copies.count(), "skip": "skip.jsonl"}
            self._out.write("skip.jsonl", repair.as_lines(copies.toLocalIterator()))
        else:
            self._out.delete("skip.jsonl")
        return made

    def _spread(self, events: int) -> None:
        """So many tasks that each has its part in memory."""
        usual = int(self._spark.conf.get("spark.sql.shuffle.partitions") or 4)
        wanted = min(max(usual, -(-events // PER_TASK)), 2000)
        self._spark.conf.set("spark.sql.shuffle.partitions", str(wanted))

    def _bounds(self, facts: Any) -> Bounds:
        newest = facts["newest"] if facts["newest"] is not None else facts["newest_sent"] or 0
        watermark = self._order.until_ms if self._order.until_ms is not None else newest
        audit = self.state.known.first.get(self.audit, {})
        aged = any(audit.values())
        return Bounds(
            since=self._order.since_ms,
            until=self._order.until_ms,
            watermark=watermark,
            new_from=watermark - self._order.in_flight_s * 1000,
            audit_from=(facts["audit_from"] or _NEVER) if aged else None,
        )

    def _places(self, landed: DataFrame) -> DataFrame:
        """Partitions, and what they do not keep."""
        known = self.state.known
        topics = [t for t in known.positions if t != self.audit]
        compacted = look(
            self.place.settings, {t: len(known.positions[t]) for t in topics}
        ).compacted
        rows = [
            (topic, n, topic in compacted, known.first.get(topic, {}).get(n, 0) > 0)
            for topic in topics
            for n in known.positions[topic]
        ]
        schema = "topic string, partition int, compacted boolean, aged boolean"
        made = self._spark.createDataFrame(rows, schema)
        oldest = landed.groupBy("topic", "partition").agg(F.min("at").alias("least"))
        return made.join(oldest, on=["topic", "partition"], how="left").select(
            F.xxhash64("topic", "partition").alias("place"),
            *("topic", "partition", "compacted"),
            F.when(F.col("aged"), F.coalesce("least", F.lit(_NEVER))).alias("oldest"),
        )

    def _queues(self, events: DataFrame) -> DataFrame:
        named = (
            events.where(F.col("name").isNotNull())
            .groupBy("queue")
            .agg(F.min("name").alias("name"))
        )
        return named.withColumn("hidden", queues.hidden(self.place.mappings))

    def _asked(self, rows: DataFrame) -> DataFrame:
        if not self._order.queues:
            return rows
        fits = [queues.like(F.lower("queue"), name.lower()) for name in self._order.queues]
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
        job = Job(spark, order, watcher)
        job.read_sources()
        job.read_new()
        return job.judge()
    except (Py4JJavaError, PySparkException) as error:
        raise ReconcileFailed(f"{reason_of(error)}; run it again") from error


class _Modes(dict[str, tuple[str, str]]):
    """What the mapping says of a queue, by its name in lower case."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._mappings = place.mappings

    def get(self, name: str, default: Any = None) -> Any:
        settings = settings_of(self._mappings, name)
        return (settings.mode, queues.content(settings)) if settings else default


def settings_of(mappings: Any, name: str) -> QueueSettings | None:
    from fnmatch import fnmatchcase

    for mapping in mappings.ranked():
        assert isinstance(mapping, QueueMapping)
        pattern = mapping.queue.lower().replace("[", "[[]")
        if fnmatchcase(name, pattern):
            return mapping
    return mappings.defaults if mappings.defaults.unknown == "auto-create" else None


def _newest() -> Sequence[Any]:
    seen = F.col("kind").isin(8, 16, 256)
    return (
        F.max(F.when(seen, F.col("at"))).alias("newest"),
        F.max("sent").alias("newest_sent"),
        F.min(F.when(F.col("kind").isin(8, 16), F.col("at"))).alias("audit_from"),
    )


def _texts(events: DataFrame) -> DataFrame:
    both = events.select("run").union(events.select("origin")).toDF("text")
    return (
        both.where(F.col("text").isNotNull())
        .distinct()
        .select(F.xxhash64("text").alias("key"), "text")
    )


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
