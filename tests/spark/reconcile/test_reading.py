"""Sources, audit and topics become events once; `test_job` and `test_planted` show the rest."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import BridgeError
from msmq_jobs.reconcile.reading import Reading
from tests.spark.reconcile.planted import Scene, Silent
from tests.spark.reconcile.world import World


@pytest.mark.kafka
def test_a_source_that_cannot_be_read_ends_it(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, kafka, World([]), seed=1)
    reading = Reading(spark, scene.order(sources=(f"{tmp_path}/none.jsonl",)), Silent())
    assert len(reading.topics()) == 3
    with pytest.raises(BridgeError, match=r"none\.jsonl"):
        reading.read_sources()
