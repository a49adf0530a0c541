"""`--follow`: the same events and verdicts, as Structured Streaming brings the records.

The checkpoint lies in the state. A batch that is repeated after a crash has records below the
state's positions, and those are left out: each is counted once, whoever read it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from signal import SIGINT, signal
from threading import Event
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from bridge.adapters.kafka.topics import Offsets
from bridge.model.errors import Unavailable
from msmq_jobs.reconcile.job import Job, failed
from msmq_jobs.reconcile.reading import Order, Watcher, folders
from msmq_jobs.sources.kafka import follow_topics

Tell = Callable[[dict[str, Any]], None]
_LOOK_S: Final = 0.5


def follow(
    spark: SparkSession,
    order: Order,
    watcher: Watcher,
    every_s: int | None,
    tell: Tell,
) -> dict[str, Any]:
    """Until somebody stops it; the last findings. Without `every_s` only what is there now."""
    try:
        with folders(spark, order):
            told = _follow(spark, order, watcher, every_s, tell)
    except (Py4JJavaError, PySparkException) as error:
        raise failed(order, error) from error
    if told is None:
        raise Unavailable("it was stopped before anything was read")
    return told


def _follow(
    spark: SparkSession, order: Order, watcher: Watcher, every_s: int | None, tell: Tell
) -> dict[str, Any] | None:
    job = Job(spark, order, watcher)
    job.read_sources()
    topics = [job.audit, *job.topics()]
    batches = Batches(job, tell, topics)
    batches.judge_what_is_known()
    records = follow_topics(spark, job.place.settings, topics)
    writer = records.writeStream.foreachBatch(batches.take)
    writer = writer.option("checkpointLocation", f"{order.state}/checkpoint")
    if every_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{every_s} seconds")
    _await(writer.start())
    return batches.told


def _await(query: StreamingQuery) -> None:
    """Until it ends, or Ctrl-C. PySpark's own answer to that would speak to Java in the middle of
    a call that waits for Java, so nothing waits there."""
    stopped = Event()
    usual = signal(SIGINT, lambda *_: stopped.set())
    try:
        while query.isActive and not stopped.wait(_LOOK_S):
            pass
        if stopped.is_set():
            query.stop()
        else:
            query.awaitTermination()  # raises what has ended it
    finally:
        signal(SIGINT, usual)


class Batches:
    def __init__(self, job: Job, tell: Tell, topics: Sequence[str]) -> None:
        self._job, self._tell, self._subscribed = job, tell, frozenset(topics)
        extent = job.extent(topics)
        extent.ranges(job.state.known.positions, job.state.known.ids)  # or they were made anew
        job.take(first=extent.first, ids=extent.ids)
        self.told: dict[str, Any] | None = None

    def judge_what_is_known(self) -> None:
        """Nothing may come for long. Of a state that is new nothing can be said before Kafka was
        read: all that sources hold would be missing."""
        if self._job.state.known.buckets:
            self._judge()

    def take(self, records: DataFrame, _number: int) -> None:
        known = self._job.state.known.positions
        new = records.where(_is_new(known)).persist()
        try:
            positions = _positions(new)
            if positions:
                is_audit = F.col("topic") == self._job.audit
                self._job.take(accepted=new.where(is_audit))
                self._take_landed(new.where(~is_audit), positions)
        finally:
            new.unpersist()
        self._judge()

    def _take_landed(self, landed: DataFrame, positions: Offsets) -> None:
        """With topics that were not there, or not known, when the stream began."""
        job = self._job
        job.look_again()
        later = job.extent(set(job.topics()) - self._subscribed)
        rest = job.range(later)
        if rest is not None:
            landed = landed.unionByName(rest.select(*landed.columns))
        ends = {**positions, **later.ends}
        job.take(landed=landed, first=later.first, positions=ends, ids=later.ids)

    def _judge(self) -> None:
        self.told = self._job.judge()
        self._tell(self.told)


def _is_new(positions: Mapping[str, Mapping[int, int]]) -> Column:
    """Not yet counted."""
    pairs = [
        F.lit(x)
        for topic, places in sorted(positions.items())
        for n, at in sorted(places.items())
        for x in (f"{n}/{topic}", at)
    ]
    if not pairs:
        return F.lit(True)
    place = F.concat_ws("/", F.col("partition").cast("string"), F.col("topic"))
    return F.col("offset") >= F.coalesce(F.create_map(*pairs)[place], F.lit(0))


def _positions(records: DataFrame) -> Offsets:
    """Where to read on: behind the last record of each partition."""
    rows = records.groupBy("topic", "partition").agg(F.max("offset").alias("last")).collect()
    found: Offsets = {}
    for row in rows:
        found.setdefault(row["topic"], {})[row["partition"]] = row["last"] + 1
    return found
