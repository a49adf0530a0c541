"""Planted faults of every kind on a real Kafka; `make prove-reconcile` does it with a million."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from msmq_jobs.reconcile.job import reconcile
from tests.spark.reconcile.planted import SPAN_MS, Scene, Silent, planted


@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_each_is_found_and_none_invented(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path
) -> None:
    start = int(time.time() * 1000) - SPAN_MS - 60_000
    scene = Scene(tmp_path, kafka, planted(5000, seed=11, start=start), seed=11)
    scene.fill()
    told = reconcile(spark, scene.order(), Silent())
    scene.check(told)
    assert not told["parity"]
