"""`verdicts/`: what was judged alike before stays as it is."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from msmq_jobs.reconcile.details import Details

SCHEMA = "message_id string, queue string, bucket string"


def files(folder: Path) -> dict[str, float]:
    found = (folder / "verdicts").rglob("*.parquet")
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in found}


def test_only_what_is_stale_is_written(spark: SparkSession, tmp_path: Path) -> None:
    def rows(*buckets: str) -> DataFrame:
        return spark.createDataFrame([(f"m{n}", "q", n) for n in buckets], SCHEMA)

    details = Details(spark, str(tmp_path))
    (tmp_path / "verdicts").mkdir()
    (tmp_path / "verdicts" / "part-of-another-layout.parquet").write_bytes(b"")
    marks = {"2026-01-30": "a", "2026-01-31": "b", "undated": "c"}
    assert details.stale(marks) == set(marks)
    details.write(rows(*marks), marks, set(marks))
    before = files(tmp_path)
    assert len(before) == 3
    # One has changed, one has nothing more that is asked for, one is gone.
    after = {"2026-01-30": "a", "2026-01-31": "b2", "2026-02-01": "d"}
    stale = details.stale(after)
    assert stale == {"2026-01-31", "2026-02-01"}
    (tmp_path / "verdicts" / "_temporary").mkdir()  # of one that was killed
    details.write(rows("2026-02-01"), after, stale)
    left = files(tmp_path)
    assert sorted(Path(name).parts[1] for name in left) == [
        "bucket=2026-01-30",
        "bucket=2026-02-01",
    ]
    assert {name: at for name, at in left.items() if "01-30" in name}.items() <= before.items()
    assert not (tmp_path / "verdicts" / "_temporary").exists()
    assert details.stale(after) == set()
    found = details.read(rows().schema).collect()
    assert sorted(map(tuple, found)) == [(f"m{n}", "q", n) for n in ("2026-01-30", "2026-02-01")]


def test_killed_while_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    """The marks of what is being written are taken away first."""
    details = Details(spark, str(tmp_path))
    one = spark.createDataFrame([("m", "q", "x")], SCHEMA)
    details.write(one, {"x": "1"}, {"x"})
    broken = one.selectExpr("cast(raise_error('killed') as string) message_id", "queue", "bucket")
    with pytest.raises(PySparkException, match="killed"):
        details.write(broken, {"x": "2"}, {"x"})
    assert details.stale({"x": "1"}) == details.stale({"x": "2"}) == {"x"}


def test_nothing_at_all(spark: SparkSession, tmp_path: Path) -> None:
    details = Details(spark, str(tmp_path))
    none = spark.createDataFrame([], SCHEMA)
    details.write(none, {}, set())
    assert details.read(none.schema).count() == 0
