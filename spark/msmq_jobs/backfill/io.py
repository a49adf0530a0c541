"""All that a backfill reads and keeps outside its transforms: sources, topics, the run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.core.mapping_rules import Mappings
from bridge.model.errors import BridgeError, ConfigError, Unavailable
from msmq_jobs import mapped
from msmq_jobs.backfill.reading import Reading
from msmq_jobs.backfill.transforms import PRESENT, Planned, in_audit, in_topics
from msmq_jobs.backfill.writer import FAILED
from msmq_jobs.schemas import KNOWN, READ, WRITTEN
from msmq_jobs.sources.exports import SourceFailed, files_of, read_export, reason_of
from msmq_jobs.sources.kafka import Offsets, read_range
from msmq_jobs.sources.locator import Export, LiveQueue, Source
from msmq_jobs.sources.msmq import MsmqDataSource, options_of, place_of, take_out

_MAX_PLAN: Final = 1 << 30
_REACH: Final = "is the host up, and does nothing block its RPC ports?"
AT_ONCE: Final = 4  # sources


class RunFolder:
    """`--out`: what was read and written, by run; on a disk or wherever Spark can write."""

    def __init__(self, root: str, run: str) -> None:
        self.root, self.run = root.rstrip("/") or "/", run

    def place(self, kind: str) -> str:
        return f"{self.root}/{kind}/run={self.run}"

    def prepare(self) -> None:
        """Raises ConfigError when nothing can be kept there."""
        if self.is_local:
            try:
                Path(self.root).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                what = f"{self.root}: {error.strerror}"
                raise ConfigError(what, where="--out", mend="name a folder of yours") from error

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    def keep(self, spark: SparkSession, summary: Mapping[str, Any]) -> None:
        """The summary of the run, and of the last one."""
        text = json.dumps(summary, indent=2) + "\n"
        for name in (f"run-{self.run}.json", "run.json"):
            _write(spark, f"{self.root}/{name}", text)


def new_run(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"


def _write(spark: SparkSession, path: str, text: str) -> None:
    if "://" not in path:
        Path(path).write_text(text, encoding="utf-8")
        return
    jvm: Any = spark.sparkContext._jvm
    where = jvm.org.apache.hadoop.fs.Path(path)
    system = where.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    stream = system.create(where, True)
    stream.write(bytearray(text.encode()))
    stream.close()


# -- sources ----------------------------------------------------------------------------------


class Refused(msgspec.Struct, frozen=True):
    """A source, or a part of it, that could not be read."""

    source: str
    why: str


def keep_sources(
    spark: SparkSession,
    sources: Sequence[Source],
    folder: RunFolder,
    password_file: str = "",
    reading: Reading | None = None,
) -> tuple[list[int], list[Refused]]:
    """Reads each into the folder, so that all that follows has the same; which, and which not.
    Several at a time: a host that does not answer holds up nobody.

    It is done before anybody looks at the topics: a journal has a message only after its topic
    had it, so what came in live is found there.
    """
    refused: list[Refused] = []
    parts = [(part, source) for source in sources for part in _parts(spark, source, refused)]
    spark.dataSource.register(MsmqDataSource)

    def keep(number: int) -> Refused | None:
        part, source = parts[number]
        try:
            _open(spark, part, password_file, reading).write.parquet(_kept_in(folder, number))
        except (SourceFailed, Py4JJavaError, PySparkException) as error:
            why = str(error) if isinstance(error, SourceFailed) else _failure(part, error)
            return Refused(source.text, why)
        return None

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        ends = list(pool.map(keep, range(len(parts))))
    finally:  # after Ctrl-C it is the end of the session that ends them
        pool.shutdown(wait=False, cancel_futures=True)
    kept = [number for number, end in enumerate(ends) if end is None]
    return kept, refused + [end for end in ends if end is not None]


def _kept_in(folder: RunFolder, number: int) -> str:
    return f"{folder.place('read')}/source={number}"


def _parts(spark: SparkSession, source: Source, refused: list[Refused]) -> Sequence[Source]:
    if isinstance(source, LiveQueue):
        return [source]
    try:
        return files_of(spark, source)
    except SourceFailed as error:
        refused.append(Refused(source.text, str(error)))
        return []


def _open(
    spark: SparkSession, part: Source, password_file: str, reading: Reading | None
) -> DataFrame:
    if isinstance(part, Export):
        return read_export(spark, part, origin=part.text)
    options = options_of(part, password_file)
    try:  # one look from here: an error of its own says more than Spark's around it
        with RemoteReader(place_of(options)) as reader:
            for _ in reader.scan(options["queue"], limit=1):
                break
    except BridgeError as error:
        mend = f"; {_REACH}" if isinstance(error, Unavailable) else ""
        raise SourceFailed(f"{part.text}: {error}{mend}") from error
    if reading is not None:
        options["progress"] = reading.place(part.text)
    return spark.read.format("msmq").options(**options).load()


def empty_sources(
    spark: SparkSession, sources: Sequence[Source], folder: RunFolder, password_file: str = ""
) -> tuple[int, list[Refused]]:
    """Removes from live queues what has its record: written now, or there before."""
    removed = 0
    refused: list[Refused] = []
    safe = _safe(spark, folder)
    for source in sources:
        if isinstance(source, LiveQueue):
            rows = safe.where(F.col("origin") == source.text).toLocalIterator()
            wanted = ((row["lookup_id"], row["message_id"]) for row in rows)
            options = options_of(source, password_file)
            try:
                with RemoteReader(place_of(options)) as reader:
                    removed += take_out(reader, options["queue"], wanted)
            except BridgeError as error:
                refused.append(Refused(source.text, f"{source.text}: not emptied: {error}"))
    return removed, refused


def _safe(spark: SparkSession, folder: RunFolder) -> DataFrame:
    written = spark.read.schema(WRITTEN).parquet(folder.place("written"))
    skipped = spark.read.parquet(folder.place("skipped"))
    columns = ("origin", "lookup_id", "message_id")
    there = skipped.where(F.col("reason") == PRESENT).select(*columns)
    return written.where(F.col("result") != FAILED).select(*columns).union(there)


def _failure(part: Source, error: Exception) -> str:
    return f"{part.text}: {reason_of(error)}"


def read_kept(spark: SparkSession, folder: RunFolder, kept: Sequence[int]) -> DataFrame:
    if not kept:
        return spark.createDataFrame([], READ)
    return spark.read.schema(READ).parquet(*(_kept_in(folder, number) for number in kept))


def read_plan(path: Path) -> list[Planned]:
    """Raises ConfigError: what is wrong with it."""
    try:
        if path.stat().st_size > _MAX_PLAN:
            raise ConfigError("is larger than 1 GiB", where=str(path))
        return msgspec.json.decode(path.read_bytes(), type=list[Planned])
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", where="--plan") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        mend = "it is a JSON list of {message_id, queue, source}, as reconcile writes it"
        raise ConfigError(f"{path}: {error}", where="--plan", mend=mend) from error


def plan_frame(spark: SparkSession, plan: Iterable[Planned]) -> DataFrame:
    return spark.createDataFrame([(p.message_id, p.queue) for p in plan], KNOWN)


# -- what the topics have ---------------------------------------------------------------------


class Names(msgspec.Struct, frozen=True):
    """What mappings call `msmq.id` and `msmq.queue` in a record, and what its topic tells."""

    ids: tuple[str, ...]
    queues: tuple[str, ...]
    homes: Mapping[str, str]  # topics with one queue, whose records do not tell it


def names_in(mappings: Mappings) -> Names:
    every = [settings.headers for settings in mappings.every()]
    found = {
        name: tuple(sorted({rules.name_of(name) for rules in every if rules.includes(name)}))
        for name in ("msmq.id", "msmq.queue")
    }
    ids, queues = (found[name] or (name,) for name in ("msmq.id", "msmq.queue"))
    silent = {str(m.queue) for m in mappings.queues if not m.headers.includes("msmq.queue")}
    lone = mapped.lone_topics(mappings).items()
    return Names(ids, queues, {topic: queue for topic, queue in lone if queue in silent})


def known_messages(
    spark: SparkSession,
    settings: Mapping[str, Any],
    mappings: Mappings,
    names: Names,
    ends: Offsets,
    audit: Offsets,
) -> DataFrame:
    """All that lies in the topics up to `ends`; of queues whose records do not tell, what the
    audit has."""
    # Nothing, in a form that Spark knows to be nothing: the join with it costs nothing.
    nothing = (F.lit("").alias(field.name) for field in KNOWN.fields)
    found: list[DataFrame] = [spark.range(1).where(F.lit(False)).select(*nothing)]
    written = {topic: places for topic, places in ends.items() if any(places.values())}
    if written:
        records = read_range(spark, settings, written)
        found.append(in_topics(records, names.ids, names.queues, names.homes))
    if mapped.hides_some(mappings) and any(any(places.values()) for places in audit.values()):
        told = in_audit(read_range(spark, settings, audit))
        found.append(told.where(mapped.hidden(mappings)))
    return _union(found)


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
