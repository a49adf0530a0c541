"""Parquet needs nothing; the other formats are the user's to bring."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.job import reconcile
from msmq_jobs.reconcile.tables import Tables, require
from tests.spark.reconcile.lakes import LAKES, PATIENCE_S, submit
from tests.spark.reconcile.planted import Scene, Silent
from tests.spark.reconcile.test_job import few, rows
from tests.spark.reconcile.world import Seen, World


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


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(3 * PATIENCE_S)
@pytest.mark.parametrize("name", LAKES)
def test_a_state_in_a_lake(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Two runs with their real jars say what one over everything says, to the byte."""
    lake, start = LAKES[name], int(time.time() - 7200) * 1000
    scene = Scene(tmp_path, kafka, few(start), seed=1)
    scene.fill()
    state, out = tmp_path / "state", tmp_path / "out"
    line = ["--config", str(scene.config), "--state", str(state), "--state-format", name]
    line += ["--in-flight", "1s", "--out", str(out)]
    if lake.settings:
        refused = submit(lake.jars(), {}, *line)
        assert refused.returncode == 1
        said = refused.stdout + refused.stderr  # spark-submit puts both on stdout
        assert f"Spark is not set up for {name}" in said
    first = submit(lake.jars(), lake.settings, *line, "--source", str(scene.export))
    assert first.returncode == 2, first.stderr  # two are missing
    assert all((path / lake.mark).is_dir() for path in state.glob("0/*"))
    scene.add(World([Seen(n, is_sent=False, start=start) for n in range(31, 36)]))
    second = submit(lake.jars(), lake.settings, *line)
    assert second.returncode == 2, second.stderr
    assert [path.name for path in state.glob("[0-9]*")] == ["1"]
    reconcile(spark, scene.order(in_flight_s=1, out=f"{tmp_path}/whole"), Silent())
    whole = tmp_path / "whole"
    assert (out / "report.json").read_bytes() == (whole / "report.json").read_bytes()
    assert sorted(rows(out), key=str) == sorted(rows(whole), key=str)
