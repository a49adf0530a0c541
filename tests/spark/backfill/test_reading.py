"""Rows so far, of the jobs that are under way, by their description."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from msmq_jobs.backfill.reading import Reading
from tests.support.waiting import eventually


def test_rows_are_seen_while_they_are_read(spark: SparkSession, tmp_path: Any) -> None:
    """A job that reads a file and does not end before it was seen."""
    path, seen = str(tmp_path / "rows"), tmp_path / "seen"
    spark.range(5000).write.parquet(path)
    told: dict[str, int] = {}

    def tell(source: str, rows: int) -> None:
        told[source] = rows
        seen.touch()

    def slow(rows: Any) -> Any:
        yield from rows
        eventually(seen.exists, 300)

    with Reading(spark, tell):
        spark.sparkContext.setJobDescription("here")
        frame = spark.read.parquet(path).select(F.col("id") + 1)
        assert frame.rdd.mapPartitions(slow).count() == 5000
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
    assert told.keys() == {"here"}
    assert 0 < told["here"] <= 5000


def test_a_spark_that_has_ended_ends_it() -> None:
    class Gone:
        @property
        def _jsc(self) -> Any:
            raise Py4JError("gone")

    class Session:
        sparkContext = Gone()  # noqa: N815 (Spark's name)

    session: Any = Session()
    with Reading(session, lambda *_: None) as reading:
        reading._thread.join(30)
        assert not reading._thread.is_alive()
