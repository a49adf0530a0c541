"""Parquet needs nothing; the other formats are the user's to bring."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.tables import Tables, require


def test_a_table_is_read_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(spark, str(tmp_path), "parquet", "n")
    rows = [("2026-01-31", 1), ("2026-01", 2), ("undated", 3)]  # a day, if Spark may guess
    frame = spark.createDataFrame(rows, "bucket string, n int")
    tables.write(frame, 4, "rows", by="bucket")
    found = tables.read(4, "rows", frame.limit(0))
    assert sorted(map(tuple, found.collect())) == sorted(rows)
    assert found.columns == frame.columns


@pytest.mark.parametrize(
    ("format_", "what"),
    [("csv", "no format"), ("delta", "Spark has no delta"), ("iceberg", "Spark has no iceberg")],
)
def test_what_is_not_there(spark: SparkSession, format_: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        require(spark, format_)
