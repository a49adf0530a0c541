"""What can be mended: a plan of what is missing, and the copies that consumers should skip."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from msmq_jobs.reconcile.rules import DUPLICATED, MISSING


def planned(verdicts: DataFrame) -> DataFrame:
    """What is missing and has a copy in a source, as `backfill --plan` reads it."""
    found = verdicts.where((F.col("verdict") == MISSING) & F.col("origin").isNotNull())
    return found.select("message_id", "queue", F.col("origin").alias("source")).orderBy(
        "queue", "message_id"
    )


def surplus(verdicts: DataFrame, copies: DataFrame) -> DataFrame:
    """Every copy but the first of a message, in the order of the log."""
    keys = verdicts.where(F.col("verdict") == DUPLICATED).select(
        "message_id", F.lower("queue").alias("queue"), F.col("queue").alias("name")
    )
    every = copies.join(keys, on=["message_id", "queue"], how="inner")
    turn = Window.partitionBy("message_id", "queue").orderBy("at", "topic", "partition", "offset")
    return (
        every.withColumn("turn", F.row_number().over(turn))
        .where(F.col("turn") > 1)
        .select("topic", "partition", "offset", "message_id", F.col("name").alias("queue"))
        .orderBy("topic", "partition", "offset")
    )


def as_list(rows: Iterator[Any]) -> Iterator[str]:
    """A JSON list, a line each; as long as it may be."""
    before = "[\n"
    for row in rows:
        yield f"{before}{json.dumps(row.asDict(), ensure_ascii=False)}"
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def as_lines(rows: Iterator[Any]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row.asDict(), ensure_ascii=False) + "\n"
