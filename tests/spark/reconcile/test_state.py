"""What is kept between runs: buckets that count once `state.json` says so."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile import verdicts
from msmq_jobs.reconcile.events import event
from msmq_jobs.reconcile.rules import Kind
from msmq_jobs.reconcile.state import MANY, Bucket, Known, State

DAY_MS = 86_400_000


def landed(spark: SparkSession, first: int, last: int) -> DataFrame:
    """A message a day, from 1970-01-01 plus 20,000 days on."""
    days = spark.range(first, last)
    at = (F.col("id") + 20_000) * DAY_MS
    kind = F.lit(int(Kind.LANDED))
    return event(days, {"message_id": F.col("id").cast("string"), "kind": kind, "at": at})


def test_buckets_and_positions(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path)
    state = State(spark, root, "m1")
    assert state.rows().count() == 0
    rows = verdicts.bucketed(verdicts.gathered(landed(spark, 0, 3)))
    texts = spark.createDataFrame([("queue", 1, "Q", None)], state.small("texts").schema)
    changed = replace(state.known, positions={"t": {0: 5}})
    state.keep(changed, state.write_rows(rows), small={"texts": texts})
    assert state.known.buckets["2024-10-05"] == Bucket(0, 1, 20_001 * DAY_MS)
    # A run that died before it said so has done nothing, and leaves nothing.
    state.stage("landed", landed(spark, 1, 2))
    state.write_rows(rows.limit(1))
    again = State(spark, root, "m1")
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"0"}
    assert (again.known.positions, again.known.id) == ({"t": {0: 5}}, state.known.id)
    assert (again.rows().count(), again.has_new) == (3, False)
    # One bucket is replaced; the first run's others still count, and its small tables do not.
    second = again.rows(["2024-10-05"]).withColumn("copies", F.lit(7).cast("long"))
    again.keep(again.known, again.write_rows(second), ["2024-10-05"], {"texts": texts})
    kept = State(spark, root, "m1")
    found = {row["message_id"]: row["copies"] for row in kept.rows().collect()}
    assert found == {"0": 1, "1": 7, "2": 1}
    assert kept.small("texts").count() == 1
    # Everything replaced: nothing of the first run is left.
    kept.keep(kept.known, kept.write_rows(kept.rows()), kept.known.buckets.keys(), {"texts": texts})
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"2"}
    assert State(spark, root, "m1").rows().count() == 3


def test_crumbs_are_swept_together(spark: SparkSession, tmp_path: Path) -> None:
    state = State(spark, str(tmp_path), "m1")
    many = {str(n): Bucket(n, 1, 0) for n in range(MANY)} | {"x": Bucket(0, 1, 0)}
    state.known = replace(state.known, buckets=many)
    assert state.crumbs() == set()
    state.known = replace(state.known, buckets={**many, "y": Bucket(MANY, 1, 0)})
    assert state.crumbs() == {str(n) for n in range(1, MANY)} | {"y"}


def test_what_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    state = State(spark, str(tmp_path), "m1")
    state.keep(state.known)
    with pytest.raises(ConfigError, match="other mappings"):
        State(spark, str(tmp_path), "m2")
    with pytest.raises(ConfigError, match="made with the cluster"):
        State(spark, str(tmp_path), "m1", cluster="another")
    with pytest.raises(ConfigError, match="Spark has no delta"):
        State(spark, str(tmp_path / "new"), "m1", "delta")
    with pytest.raises(ConfigError, match="is kept as parquet"):
        State(spark, str(tmp_path), "m1", "delta")
    file = tmp_path / "state.json"
    older = {"version": 1, "mapping": "m1", "next": 1, "parts": [{"number": 0, "ledgers": []}]}
    file.write_text(json.dumps(older))
    with pytest.raises(ConfigError, match="has version 1") as refused:
        State(spark, str(tmp_path), "m1")
    assert "name a new folder" in str(refused.value)
    file.write_text("{")
    with pytest.raises(ConfigError, match="--state"):
        State(spark, str(tmp_path), "m1")


def test_two_runs_on_one_state(spark: SparkSession, tmp_path: Path) -> None:
    """Where no lock keeps them apart, the second one to end does not count."""
    one, other = State(spark, str(tmp_path), "m1"), State(spark, str(tmp_path), "m1")
    one.keep(replace(one.known, positions={"t": {0: 5}}))
    one.keep(replace(one.known, positions={"t": {0: 6}}))
    with pytest.raises(ConfigError, match="another run has changed it meanwhile"):
        other.keep(replace(other.known, positions={"t": {0: 3}}))
    assert State(spark, str(tmp_path), "m1").known.positions == {"t": {0: 6}}


def test_two_states_are_two() -> None:
    """A report folder that one has filled says nothing of the other."""
    assert Known().id != Known().id
