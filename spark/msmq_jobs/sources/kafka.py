"""Topics through Spark's own connector: committed records with their headers, by range or time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from msmq_jobs.sources.kafka_options import java_options

Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> offset


def read_range(
    spark: SparkSession, settings: Mapping[str, Any], ends: Offsets, starts: Offsets | None = None
) -> DataFrame:
    """Up to `ends`, from `starts` on or from the beginning. An end behind what is committed would
    never be reached: ask `committed_ends` for it."""
    options = {
        "subscribe": ",".join(sorted(ends)),
        "startingOffsets": "earliest" if starts is None else _json(starts),
        "endingOffsets": _json(ends),
    }
    return _read(spark, settings, options)


def read_between(
    spark: SparkSession,
    settings: Mapping[str, Any],
    topics: Mapping[str, int],
    since_ms: int,
    ends: Offsets,
) -> DataFrame:
    """Records whose timestamp is not before `since_ms`; `topics` says how many partitions each has.
    A partition without any gives none."""
    since = {topic: dict.fromkeys(range(n), since_ms) for topic, n in topics.items()}
    options = {
        "subscribe": ",".join(sorted(topics)),
        "startingOffsetsByTimestamp": _json(since),
        "startingOffsetsByTimestampStrategy": "latest",
        "endingOffsets": _json(ends),
    }
    return _read(spark, settings, options)


def follow_topics(
    spark: SparkSession, settings: Mapping[str, Any], topics: Iterable[str]
) -> DataFrame:
    """A stream of what they have and get, from their beginning."""
    options = {"subscribe": ",".join(sorted(topics)), "startingOffsets": "earliest"}
    return spark.readStream.format("kafka").options(**options, **_common(settings)).load()


def _read(
    spark: SparkSession, settings: Mapping[str, Any], options: Mapping[str, str]
) -> DataFrame:
    return spark.read.format("kafka").options(**options, **_common(settings)).load()


def _common(settings: Mapping[str, Any]) -> dict[str, str]:
    made = {f"kafka.{name}": value for name, value in java_options(settings).items()}
    return made | {
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "false",  # what ages out while we read is as if read before
    }


def _json(offsets: Offsets) -> str:
    return json.dumps({t: {str(p): o for p, o in places.items()} for t, places in offsets.items()})
