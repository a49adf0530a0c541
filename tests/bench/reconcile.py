"""How long verdicts take beside a bare full outer join of the same ledgers, in one run.

    python -m tests.bench.reconcile --count 10000000

The ledgers are made by Spark as Parquet: reading Kafka is not the subject here. The join counts
the ids of the three of them and nothing else. Beside it the verdicts are counted as well, then made
once more with all that a row has and kept as Parquet; the target rests on the latter. A small round
of each comes first and does not count: a JVM that has just started is slow. Then half as many
messages, so that the growth can be seen; memory is the largest resident set of the JVM.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psutil
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from msmq_jobs.reconcile import events, order, verdicts
from msmq_jobs.reconcile.merging import PER_TASK
from msmq_jobs.reconcile.reading import SETTINGS
from msmq_jobs.reconcile.rules import Kind
from msmq_jobs.reconcile.verdicts import Bounds
from msmq_jobs.session import open_session
from tests.bench.spark import end

STREAMS = 20
PARTITIONS = 8
KEY = ["message_id", "queue"]


def ledgers(spark: SparkSession, count: int, folder: str) -> list[DataFrame]:
    """Sent, accepted, landed; one in a thousand is missing, one in a thousand is doubled."""
    numbers = spark.range(1, count + 1, numPartitions=max(4, count // 500_000))
    n = F.col("id")
    stream = n % STREAMS
    common: dict[str, Column] = {
        "message_id": F.format_string("%08x-2222-3333-4444-555555555555\\%d", stream, n),
        "queue": F.lit("private$\\orders"),
        "name": F.lit("private$\\orders"),
        "label": F.xxhash64(n),
        "correlation": F.xxhash64(F.lit("")),
        "tx": F.xxhash64(n, F.lit(1)),
        "sequence": F.lit(1),
        "number": n,
    }
    at = n + 1_700_000_000_000
    sent = {"kind": F.lit(int(Kind.SENT)), "sent": at, "body_sha": F.xxhash64(n, F.lit(2))}
    sent |= {"rest": F.xxhash64(n, F.lit(3)), "which": F.xxhash64(n, F.lit(3)), "class": F.lit(0)}
    taken = {"kind": F.lit(int(Kind.ACCEPTED)), "at": at, "body_crc": F.crc32(n.cast("string"))}
    place = {"topic": F.lit("orders"), "partition": stream % PARTITIONS}
    lies = {**sent, **taken, **place, "kind": F.lit(int(Kind.LANDED)), "offset": n}
    lies["domain"] = F.xxhash64(stream)
    there = numbers.where(n % 1000 != 0)
    made = [
        events.event(numbers, {**common, **sent, "origin": F.lit("x")}),
        events.event(numbers, {**common, **taken, **place}),
        events.event(there.union(there.where(n % 1000 == 1)), {**common, **lies}),
    ]
    for number, frame in enumerate(made):
        frame.write.mode("overwrite").parquet(f"{folder}/{count}-{number}")
    return [spark.read.parquet(f"{folder}/{count}-{number}") for number in range(3)]


def bare(frames: list[DataFrame]) -> int:
    one, two, three = (frame.select(*KEY) for frame in frames)
    return one.join(two, on=KEY, how="full").join(three, on=KEY, how="full").count()


def judged(spark: SparkSession, frames: list[DataFrame], count: int) -> DataFrame:
    sent, taken, landed = frames
    every = sent.union(taken).union(landed).union(order.swapped(landed))
    places = spark.createDataFrame(
        [], "place long, topic string, partition int, compacted boolean, oldest long"
    )
    queues = spark.createDataFrame(
        [("private$\\orders", "private$\\orders", False)],
        "queue string, name string, hidden boolean",
    )
    bounds = Bounds(new_from=1_700_000_000_000 + 2 * count)
    return verdicts.judged(verdicts.gathered(every), places, queues, bounds)


def counted(rows: DataFrame) -> dict[str, int]:
    return {row["verdict"]: row["count"] for row in rows.groupBy("verdict").count().collect()}


def kept(spark: SparkSession, rows: DataFrame, where: str) -> None:
    texts = spark.createDataFrame([], "key long, text string")
    verdicts.rows(rows, texts).write.mode("overwrite").parquet(where)


class Memory(threading.Thread):
    """The largest sum of resident sets so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self._over = 0, threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.5):
            family = psutil.Process(os.getpid()).children(recursive=True)
            total = 0
            for process in family:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.most = max(self.most, total)

    def end(self) -> float:
        self._over.set()
        self.join()
        return self.most / (1 << 30)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.monotonic()
    return work(), time.monotonic() - start


def measured(spark: SparkSession, count: int, folder: str) -> dict[str, float]:
    """Seconds of both."""
    tasks = max(4, -(-3 * count // PER_TASK))
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    frames = ledgers(spark, count, folder)
    joined, plain = timed(partial(bare, frames))
    rows = judged(spark, frames, count)
    found, ours = timed(partial(counted, rows))
    _, written = timed(partial(kept, spark, rows, f"{folder}/verdicts"))
    assert joined == count + found["duplicated"], joined
    assert found["missing"] == count // 1000
    assert sum(found.values()) == count
    seconds = {"join_s": plain, "counted_s": ours, "seconds": written}
    return {"messages": count, **seconds, "of_join": written / plain}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    spark = open_session("bench")
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    memory = Memory()
    memory.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            warm = max(1000, given.count // 20)
            _, half, whole = (
                measured(spark, count, folder) for count in (warm, given.count // 2, given.count)
            )
        peak = memory.end()
    finally:
        end(spark)
    growth = whole["seconds"] / half["seconds"]
    print(json.dumps({"half": half, "whole": whole, "growth": growth, "peak_gib": peak}))


if __name__ == "__main__":
    main()
