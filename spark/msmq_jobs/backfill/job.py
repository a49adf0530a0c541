"""Brings messages from journals, dead-letter queues and exports into their topics, exactly once.

    sources -> kept in the run's folder -> chosen -> mapped -> once -> not there yet -> written

Everything up to the last arrow can be done any number of times. The last one is (`writer`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.adapters.kafka.topics import committed_ends
from bridge.model.errors import BridgeError, ConfigError
from msmq_jobs.arrow import SPARK_ROWS, map_batches
from msmq_jobs.backfill import io, summary, transforms
from msmq_jobs.backfill.prepare import Target
from msmq_jobs.backfill.progress import Progress
from msmq_jobs.backfill.reading import Reading
from msmq_jobs.backfill.routing import routed
from msmq_jobs.backfill.summary import Summary
from msmq_jobs.backfill.writer import WriteJob, write_batches
from msmq_jobs.place import Place, identity_of, look_around
from msmq_jobs.schemas import ROUTED, WRITTEN
from msmq_jobs.session import require_connector
from msmq_jobs.sources.exports import reason_of
from msmq_jobs.sources.locator import Export, Source, parse_source

MAX_TASKS: Final = 200


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asked for."""

    config: Path | None = None
    sources: tuple[str, ...] = ()
    out: str
    asked: transforms.Asked = transforms.Asked()
    plan: Path | None = None
    receive: bool = False
    dry_run: bool = False
    password_file: str = ""  # for live queues, read where the reading is done
    rate: float = 0.0  # messages per second, of the whole run


class Watcher(Protocol):
    """Who wants to see how far it is."""

    def stage(self, text: str) -> None: ...

    def read(self, source: str, messages: int) -> None:
        """So far."""

    def written(self, counts: Mapping[str, int]) -> None:
        """By queue, so far."""


class BackfillFailed(BridgeError):
    """Spark gave up; what was committed stays, and the next run goes on from there."""


def backfill(spark: SparkSession, order: Order, watcher: Watcher) -> Summary:
    """Raises BridgeError when nothing can be done; what could not be done in part is told."""
    require_connector(spark)
    spark.conf.set(*SPARK_ROWS)
    plan, sources = wanted(order)
    place = look_around(order.config)
    folder = io.RunFolder(order.out, io.new_run(datetime.now(UTC)))
    folder.prepare()
    try:
        return _run(spark, order, place, folder, sources, plan, watcher)
    except (Py4JJavaError, PySparkException) as error:
        raise BackfillFailed(f"run {folder.run}: {reason_of(error)}; run it again") from error


def wanted(order: Order) -> tuple[list[transforms.Planned] | None, list[Source]]:
    """The plan, if there is one, and the sources. Raises ConfigError."""
    plan = io.read_plan(order.plan) if order.plan else None
    sources = [parse_source(text) for text in _sources(order, plan)]
    if order.receive and any(isinstance(source, Export) for source in sources):
        what = "an export cannot be emptied"
        raise ConfigError(what, where="--receive", mend="leave it out, or name msmq:// queues only")
    return plan, sources


def _run(
    spark: SparkSession,
    order: Order,
    place: Place,
    folder: io.RunFolder,
    sources: Sequence[Source],
    plan: Sequence[transforms.Planned] | None,
    watcher: Watcher,
) -> Summary:
    watcher.stage("reading the sources")
    with Reading(watcher.read) as reading:
        kept, refused = io.keep_sources(spark, sources, folder, order.password_file, reading)
    watcher.stage("mapping")
    mapped = _mapped(spark, order, place, folder, kept, plan)
    watcher.stage("looking for what is there already")
    topics = [row["topic"] for row in _going(mapped).select("topic").distinct().collect()]
    ends = committed_ends(place.settings, {t: place.limits[t].partitions for t in topics})
    audit = place.own.audit
    audit_ends = committed_ends(place.settings, {audit: place.limits[audit].partitions})
    names = io.names_in(place.mappings)
    known = io.known_messages(spark, place.settings, place.mappings, names, ends, audit_ends)
    planned = transforms.not_there(mapped, known).persist(StorageLevel.DISK_ONLY)
    counts = transforms.counted(planned).collect()
    unplanned = _unplanned(spark, planned, plan)
    results: list[Any] = []
    if not order.dry_run:
        watcher.stage("writing")
        job = WriteJob(
            run=folder.run,
            settings=place.settings,
            prefix=place.own.prefix,
            audit_topic=audit,
            seen_to=ends,
            id_names=names.ids,
            queue_names=names.queues,
            homes=names.homes,
            data=str(place.config.data),
        )
        with Progress(place.settings, audit, audit_ends[audit], folder.run, watcher.written):
            results = _write(spark, planned, job, folder, order.rate)
    planned.where(F.col("reason").isNotNull()).drop("unit").write.parquet(folder.place("skipped"))
    removed = 0
    if order.receive and not order.dry_run:
        watcher.stage("emptying the sources")
        removed, stayed = io.empty_sources(spark, sources, folder, order.password_file)
        refused += stayed
    told = summary.of(folder, order.dry_run, counts, results, refused, unplanned, removed)
    folder.keep(spark, msgspec.to_builtins(told))
    planned.unpersist()
    return told


def _mapped(
    spark: SparkSession,
    order: Order,
    place: Place,
    folder: io.RunFolder,
    kept: Sequence[int],
    plan: Sequence[transforms.Planned] | None,
) -> DataFrame:
    target = Target(
        run=folder.run,
        mappings=place.mappings,
        limits=place.limits,
        reserved=f"{place.own.prefix}.",
        local=identity_of(place),
        audit_partitions=place.limits[place.own.audit].partitions,
    )
    read = io.read_kept(spark, folder, kept)
    rows = routed(transforms.chosen(read, order.asked, int(time.time())), target)
    rows = transforms.of_queues(rows, order.asked.queues)
    if plan is not None:
        rows = transforms.of_plan(rows, io.plan_frame(spark, plan))
    where = folder.place("work")
    rows.write.parquet(where)
    mapped = spark.read.schema(ROUTED).parquet(where)
    # Whole messages are moved about only if some are there more than once.
    return transforms.once(mapped) if transforms.repeated(mapped).head(1) else mapped


def _write(
    spark: SparkSession, planned: DataFrame, job: WriteJob, folder: io.RunFolder, rate: float
) -> list[Any]:
    """Counts by queue and result; each message's own is in the folder."""
    targets = _going(planned).select("topic", "partition").distinct().count()
    tasks = max(1, min(targets, MAX_TASKS))
    at_once = min(tasks, spark.sparkContext.defaultParallelism)
    job = msgspec.structs.replace(job, rate=rate / at_once)
    ordered = transforms.in_order(planned, tasks)
    where = folder.place("written")
    map_batches(ordered, partial(write_batches, job=job), WRITTEN).write.parquet(where)
    written = spark.read.schema(WRITTEN).parquet(where)
    return transforms.results(written).collect()


def _going(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("reason").isNull())


def _unplanned(
    spark: SparkSession, planned: DataFrame, plan: Sequence[transforms.Planned] | None
) -> int:
    """How many of the plan's messages no source has."""
    if plan is None:
        return 0
    return transforms.missing(io.plan_frame(spark, plan), planned).count()


def _sources(order: Order, plan: Sequence[transforms.Planned] | None) -> list[str]:
    """Those of the command line; those that the plan names when there are none."""
    named = order.sources or tuple(entry.source for entry in plan or () if entry.source)
    if not named:
        what = "there is no source"
        raise ConfigError(what, where="--source", mend="name an export or an msmq:// queue")
    return list(dict.fromkeys(named))
