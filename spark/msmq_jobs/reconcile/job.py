"""Proves, message by message, that senders, wire and topics agree; says what does not.

    sources, audit, topics -> events, kept in the state -> one verdict per message -> findings

Sources are read first, then the end of the audit is taken, then that of the topics: what an earlier
ledger has, a later one had before, so nothing is called missing that was only late.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.adapters.kafka.spark_jars import CONNECTOR_VERSION
from bridge.core.mapping_rules import QueueMapping, QueueSettings
from bridge.model.errors import BridgeError
from msmq_jobs.backfill import io
from msmq_jobs.backfill.job import _identity, _look, _Place
from msmq_jobs.backfill.prepare import Target
from msmq_jobs.reconcile import findings, ledgers, order, queues, repair, verdicts
from msmq_jobs.reconcile.cluster import Extent, look
from msmq_jobs.reconcile.files import Folder
from msmq_jobs.reconcile.ledgers import HeaderNames
from msmq_jobs.reconcile.rules import DUPLICATED, MISSING
from msmq_jobs.reconcile.state import ACCEPTED, LANDED, SENT, Known, State
from msmq_jobs.reconcile.verdicts import Bounds
from msmq_jobs.session import require_connector
from msmq_jobs.sources.exports import SourceFailed, reason_of
from msmq_jobs.sources.kafka import read_range
from msmq_jobs.sources.locator import Export, parse_source

SCHEMA: Final = 1
PER_TASK: Final = 250_000  # events that one task puts together
_WORK: Final = ".work"
_NEVER: Final = (1 << 63) - 1


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asked for."""

    config: Path | None = None
    sources: tuple[str, ...] = ()
    out: str
    queues: tuple[str, ...] = ()  # path names with * and ?
    since_ms: int | None = None
    until_ms: int | None = None
    in_flight_s: int = 300
    plan: str = ""
    state: str = ""  # a folder; without one all is read anew
    state_format: str = "parquet"
    allowed: Mapping[str, str] = {}
    password_file: str = ""


class Watcher(Protocol):
    """Who wants to see how far it is."""

    def stage(self, text: str) -> None: ...


class ReconcileFailed(BridgeError):
    """Spark gave up; nothing was changed, run it again."""


class Job:
    """One appliance, one order; `read_new` any number of times, then `judge`."""

    def __init__(self, spark: SparkSession, order: Order, watcher: Watcher) -> None:
        require_connector(spark)
        spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")  # a header twice is no failure
        self._spark, self._order, self._watcher = spark, order, watcher
        self.place: _Place = _look(order.config)
        self._out = Folder(spark, order.out)
        self._out.make("--out")
        self._mapping = _hash(self.place.mappings)
        root = order.state or f"{self._out.root}/{_WORK}/state"
        if not order.state:
            self._out.delete(_WORK)
        folder = Folder(spark, root)
        folder.make("--state")
        self.state = State(spark, root, self._mapping, order.state_format)
        self.names = HeaderNames.of(self.place.mappings)
        self.homes = queues.lone_topics(self.place.mappings)

    @property
    def audit(self) -> str:
        return self.place.own.audit

    # -- reading ------------------------------------------------------------------------------

    def read_sources(self) -> None:
        if not self._order.sources:
            return
        self._watcher.stage("reading the sources")
        folder = io.RunFolder(f"{self._out.root}/{_WORK}", "now")
        parsed = [parse_source(text) for text in self._order.sources]
        kept, refused = io.keep_sources(self._spark, parsed, folder, self._order.password_file)
        if refused:  # what cannot be read cannot be compared
            raise SourceFailed("; ".join(line.why for line in refused))
        read = io.read_kept(self._spark, folder, kept)
        whole = read.where(F.col("fault").isNull())
        target = Target(
            run="",
            mappings=self.place.mappings,
            limits=self.place.limits,
            reserved=f"{self.place.own.prefix}.",
            local=_identity(self.place),
        )
        placed = queues.homes(self._spark, whole, target)
        placed.write.mode("overwrite").parquet(f"{self._out.root}/{_WORK}/placed")
        placed = self._spark.read.parquet(f"{self._out.root}/{_WORK}/placed")
        told = self._sources(read, placed)
        events = ledgers.sent(queues.decoded(self._spark, placed, self.place.mappings))
        known = self.state.known
        self.state.append({SENT: events}, replace(known, sources={**known.sources, **told}))

    def _sources(self, read: DataFrame, placed: DataFrame) -> dict[str, dict[str, Any]]:
        """What each source held, by its name: exactly this was compared."""
        hashed = F.xxhash64("message_id", "queue", F.sha2("body", 256))
        about = placed.groupBy("origin").agg(
            F.count("*").alias("messages"),
            F.sum(F.col("home").isNull().cast("int")).alias("strange"),
            F.min("lookup_id").alias("first"),
            F.max("lookup_id").alias("last"),
            F.bit_xor(hashed).alias("hash"),
        )
        faults = read.where(F.col("fault").isNotNull()).groupBy("origin").count()
        bad = {row["origin"]: row["count"] for row in faults.collect()}
        found = {row["origin"]: row for row in about.collect()}
        return {
            name: {
                "source": name,
                "messages": found[name]["messages"] if name in found else 0,
                "detail": _detail(name, found.get(name), bad.get(name, 0)),
            }
            for name in sorted(found.keys() | bad.keys())
        }

    def topics(self) -> list[str]:
        """Those that have messages; a journal's copies are no second ones."""
        mappings, prefix = self.place.mappings, f"{self.place.own.prefix}."
        named = {m.topic_name for m in mappings.queues} - {""}
        journals = set(mappings.topics()) - named
        told = self.state.events([ACCEPTED]).select("topic").distinct()
        if any(m.is_dynamic for m in mappings.queues) or mappings.defaults.unknown != "reject":
            named |= {row["topic"] for row in told.collect() if row["topic"]} - journals
        return sorted(t for t in named if t in self.place.limits and not t.startswith(prefix))

    def read_new(self) -> None:
        """What the audit and the topics have got since the last time."""
        self._watcher.stage("reading the audit")
        limits, settings = self.place.limits, self.place.settings
        audit = look(settings, {self.audit: limits[self.audit].partitions})
        entries = self._range(audit)
        if entries is not None:
            self.append(accepted=entries, extent=audit)
        self._watcher.stage("reading the topics")
        topics = look(settings, {t: limits[t].partitions for t in self.topics()})
        self.append(landed=self._range(topics), extent=topics)

    def _range(self, extent: Extent) -> DataFrame | None:
        starts = extent.ranges(self.state.known.positions)
        some = {
            topic: ends
            for topic, ends in extent.ends.items()
            if any(ends[n] > starts[topic][n] for n in ends)
        }
        if not some:
            return None
        begin = {topic: starts[topic] for topic in some}
        return read_range(self._spark, self.place.settings, some, begin)

    def append(
        self,
        accepted: DataFrame | None = None,
        landed: DataFrame | None = None,
        extent: Extent | None = None,
        positions: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        """Records become events of the state, in one step with where to read on."""
        made: dict[str, DataFrame] = {}
        known = self.state.known
        strangers = known.foreign
        if accepted is not None:
            made[ACCEPTED] = ledgers.accepted(accepted)
        if landed is not None:
            made[LANDED] = self._landed(landed)
            strangers += ledgers.foreign(landed, self.names).count()
        first, ends = dict(known.first), dict(known.positions)
        if extent is not None:
            first = {**extent.first, **first}
            ends |= extent.ends
        for topic, places in (positions or {}).items():
            ends[topic] = {**ends.get(topic, {}), **places}
        self.state.append(made, replace(known, first=first, positions=ends, foreign=strangers))

    def _landed(self, records: DataFrame) -> DataFrame:
        mappings = self.place.mappings
        envelope = queues.is_envelope(mappings)
        whole = ledgers.landed(records, self.names, self.homes, envelope)
        if any(settings.oversize == "chunk" for settings in mappings.every()):
            return whole.union(ledgers.joined(records, self.names, self.homes, envelope))
        return whole

    # -- judging ------------------------------------------------------------------------------

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
        told["details"] = "verdicts"
        self._out.write("report.json", [json.dumps(told, indent=1, sort_keys=True) + "\n"])
        self._out.delete(_WORK)
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

    def __init__(self, place: _Place) -> None:
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


def _detail(name: str, about: Any, faults: int) -> str:
    said = []
    if about is not None:
        said.append(f"hash {about['hash'] & (1 << 64) - 1:016x}")
        if not isinstance(parse_source(name), Export) and about["first"] is not None:
            said.append(f"lookup ids {about['first']} to {about['last']}")
        if about["strange"]:
            said.append(f"{about['strange']} for queues that no mapping has")
    if faults:
        said.append(f"{faults} cannot be read")
    return ", ".join(said)


def _ranges(known: Known, topic: str) -> list[dict[str, int]]:
    ends = known.positions.get(topic, {})
    first = known.first.get(topic, {})
    return [{"partition": n, "from": first.get(n, 0), "to": ends[n]} for n in sorted(ends)]


def _moment(ms: int | None) -> str | None:
    return None if ms is None else findings.iso_s(ms / 1000)


def _hash(mappings: Any) -> str:
    return sha256(msgspec.json.encode(mappings, order="sorted", enc_hook=str)).hexdigest()[:16]


def _files(path: Path | None) -> list[str]:
    if path is None:
        return []
    found: Iterable[Path] = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    return [file.name for file in found]
