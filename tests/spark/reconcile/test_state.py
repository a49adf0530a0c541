"""What is kept between runs: parts that count once `state.json` says so."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.model.errors import ConfigError
from msmq_jobs.reconcile.events import EVENT, event
from msmq_jobs.reconcile.state import State


def test_parts_and_positions(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path)
    state = State(spark, root, "m1")
    assert state.events().count() == 0
    rows = event(spark.range(3), {"message_id": F.col("id").cast("string")})
    state.append({"landed": rows}, replace(state.known, positions={"t": {0: 5}}))
    # A run that died before it said so: its part is written again.
    rows.write.parquet(f"{root}/landed/part=1")
    again = State(spark, root, "m1")
    assert again.known.positions == {"t": {0: 5}}
    assert again.events(["landed"]).count() == 3
    again.append({"landed": rows.limit(1)}, again.known)
    kept = State(spark, root, "m1").events()
    assert (kept.count(), kept.schema.names) == (4, EVENT.names)


def test_what_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    state = State(spark, str(tmp_path), "m1")
    state.append({}, state.known)
    with pytest.raises(ConfigError, match="other mappings"):
        State(spark, str(tmp_path), "m2")
    with pytest.raises(ConfigError, match="Spark has no delta"):
        State(spark, str(tmp_path / "new"), "m1", "delta")
    with pytest.raises(ConfigError, match="no format"):
        State(spark, str(tmp_path / "new"), "m1", "csv")
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(ConfigError, match="--state"):
        State(spark, str(tmp_path), "m1")
