"""A backfill beside Spark's plain Kafka sink with the same records, in one Spark session.

    python -m tests.bench.spark --bootstrap … --folder … --count 100000

The backfill is the whole job, from an export in Parquet to the summary. The sink gets the records
that the backfill has written, from Parquet too; it neither maps nor looks for what is there, and
may write a record twice. Both write to topics of as many partitions. A small round of each comes
first and is not counted: a JVM that has just started is slow.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bridge.adapters.kafka.topics import OwnTopics, committed_ends, ensure_topics
from msmq_jobs.backfill.job import Order, backfill
from msmq_jobs.rows import values_of
from msmq_jobs.session import open_session
from msmq_jobs.sources.kafka import read_range
from msmq_jobs.sources.msmq import batches
from tests.spark.letters import ORDERS, letter
from tests.support.config import topic, write_config
from tests.support.kafka import create_topic, unique

PARTITIONS = 4
SENDERS = [f"{n:08x}-2222-3333-4444-555555555555" for n in range(1, 17)]
BODY = bytes(range(256)) * 4  # 1 KiB


class Stages:
    """How long each took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._now, self._since = "", time.monotonic()

    def stage(self, text: str) -> None:
        moment = time.monotonic()
        if self._now:
            self.seconds[self._now] = round(moment - self._since, 2)
        self._now, self._since = text, moment

    def read(self, source: str, messages: int) -> None: ...

    def written(self, counts: Mapping[str, int]) -> None: ...


class Ground:
    """A cluster with a prefix of its own for each round."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path, count: int) -> None:
        self._spark, self._folder, self._count = spark, folder, count
        self._settings = {"bootstrap.servers": bootstrap}
        prefix = unique("spark")
        self._config = write_config(folder, bootstrap, topic_prefix=prefix)
        self._orders = create_topic(bootstrap, topic(prefix, "orders"), PARTITIONS)
        self._sink = create_topic(bootstrap, topic(prefix, "sink"), PARTITIONS)
        ensure_topics(self._settings, OwnTopics(prefix), 1, [])
        self._export = folder / "orders.parquet"
        self._write_export()

    def _write_export(self) -> None:
        letters = (
            letter(1 + n // len(SENDERS), ORDERS, SENDERS[n % len(SENDERS)], body=BODY)
            for n in range(self._count)
        )
        rows = (values_of(data, "") for data in letters)
        pq.write_table(pa.Table.from_batches(batches(rows)), self._export)

    def backfill(self) -> dict[str, Any]:
        stages, out = Stages(), str(self._folder / "out")
        started = time.monotonic()
        order = Order(config=self._config, sources=(str(self._export),), out=out)
        told = backfill(self._spark, order, stages)
        seconds = time.monotonic() - started
        stages.stage("")
        assert (told.written, told.exit_code) == (self._count, 0), told
        return self._told(seconds) | {"stages": stages.seconds}

    def sink(self) -> dict[str, Any]:
        """After `backfill`: the same keys, values and headers."""
        records = str(self._folder / "records")
        ends = committed_ends(self._settings, {self._orders: PARTITIONS})
        columns = ("key", "value", "headers", "partition")
        read_range(self._spark, self._settings, ends).select(*columns).write.parquet(records)
        started = time.monotonic()
        (
            self._spark.read.parquet(records)
            .write.format("kafka")
            .option("kafka.bootstrap.servers", self._settings["bootstrap.servers"])
            .option("includeHeaders", "true")
            .option("topic", self._sink)
            .save()
        )
        return self._told(time.monotonic() - started)

    def _told(self, seconds: float) -> dict[str, Any]:
        return {
            "messages": self._count,
            "seconds": seconds,
            "per_second": self._count / seconds,
        }


def end(spark: SparkSession) -> None:
    """Its JVM too, and waited for: only then its CPU counts as ours (`neighbours`)."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    spark = open_session("bench")
    try:
        for name, count in (("warm", max(100, given.count // 20)), ("measured", given.count)):
            ground = Ground(spark, given.bootstrap, given.folder / name, count)
            told = {"backfill": ground.backfill(), "sink": ground.sink()}
    finally:
        end(spark)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
