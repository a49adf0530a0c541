"""As a stream: stopped and started again, it knows what a run from the beginning knows."""

import random
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from msmq_jobs.reconcile.follow import Batches, follow
from msmq_jobs.reconcile.job import Job
from msmq_jobs.sources.kafka import read_range
from tests.spark.reconcile.killing import Following, rounds
from tests.spark.reconcile.planted import Scene, Silent
from tests.spark.reconcile.test_job import few, rows
from tests.spark.reconcile.world import Seen, World


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_stopped_and_started(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    start = int(time.time() - 7200) * 1000
    scene = Scene(tmp_path, kafka, few(start), seed=1)
    scene.fill()
    order = scene.order(state=f"{tmp_path}/state", in_flight_s=1)
    told: list[dict[str, Any]] = []
    first = follow(spark, order, Silent(), None, told.append)
    assert (first["messages"], first["verdicts"]["missing"]) == (30, 2)
    scene.add(World([Seen(n, is_sent=False, start=start) for n in range(31, 36)]))
    # The state had not heard of the last batch when it died: that one is taken again.
    last = follow(spark, order, Silent(), None, told.append)
    assert told[-1] == last
    assert (last["messages"], last["verdicts"]["missing"]) == (35, 2)
    assert last["verdicts"]["duplicated"] == 0
    assert len(rows(tmp_path / "out")) == 35


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_topics_that_come_later(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    """A stream has the topics that were known when it began; the others are read beside it."""
    scene = Scene(tmp_path, kafka, few(int(time.time() - 7200) * 1000), seed=1)
    scene.fill()
    job = Job(spark, scene.order(state=f"{tmp_path}/state", in_flight_s=1), Silent())
    job.read_sources()
    told: list[dict[str, Any]] = []
    batches = Batches(job, told.append, [job.audit])
    audit = read_range(spark, job.place.settings, job.extent([job.audit]).ends)
    batches.take(audit, 0)
    assert (told[-1]["messages"], told[-1]["verdicts"]["missing"]) == (30, 2)
    batches.take(audit, 1)  # nothing is counted twice
    assert told[-1]["verdicts"] == told[-2]["verdicts"]


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(3600)
def test_killed_and_started(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """At any moment, between state and checkpoint too: no record is counted twice or left out."""
    scene = Following(tmp_path, kafka, seed=random.randrange(1 << 32))
    kills = [("jvm", "settled"), ("driver", "staged"), ("driver", "settled"), ("jvm", "written")]
    assert rounds(scene, kills) == len(kills)
    scene.check()
