"""Sources, audit and topics become events once; `test_job` and `test_planted` show the rest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.model.errors import BridgeError, ConfigError
from msmq_jobs.reconcile import job
from msmq_jobs.reconcile.cluster import Extent
from msmq_jobs.reconcile.job import Job
from msmq_jobs.reconcile.merging import NEVER
from msmq_jobs.reconcile.reading import Order, Reading, audit_from, folders
from msmq_jobs.reconcile.state import Bucket
from msmq_jobs.reconcile.verdicts import Bounds
from tests.spark.reconcile.planted import Scene, Silent
from tests.spark.reconcile.world import RECORD, World, audit_record


def test_the_folders_of_a_run_are_its_own(spark: SparkSession, tmp_path: Path) -> None:
    both = Order(out=f"{tmp_path}/x", state=f"{tmp_path}/x/")  # one for both is no clash
    with folders(spark, both):
        second = Order(out=f"{tmp_path}/y", state=f"{tmp_path}/x")
        with pytest.raises(ConfigError, match=r"--state .*another run"), folders(spark, second):
            pass
    with folders(spark, second):
        assert (tmp_path / "y").is_dir()


@pytest.mark.kafka
def test_a_source_that_cannot_be_read_ends_it(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, kafka, World([]), seed=1)
    reading = Reading(spark, scene.order(sources=(f"{tmp_path}/none.jsonl",)), Silent())
    assert len(reading.topics()) == 3
    with pytest.raises(BridgeError, match=r"none\.jsonl"):
        reading.read_sources()


@pytest.mark.kafka
def test_all_ends_are_of_one_moment(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit's first, then those of the topics, then reading: that may take longer than
    anything is in flight, and what is committed meanwhile belongs to the next run."""
    reading = Reading(spark, Scene(tmp_path, kafka, World([]), seed=1).order(), Silent())
    steps: list[str] = []
    extent, take = reading.extent, reading.take

    def looked(topics: Iterable[str]) -> Extent:
        names = list(topics)
        steps.append("audit" if names == [reading.audit] else "topics")
        return extent(names)

    def taken(**known: Any) -> None:
        steps.append("read")
        take(**known)

    monkeypatch.setattr(reading, "extent", looked)
    monkeypatch.setattr(reading, "take", taken)
    reading.read_new()
    assert steps == ["audit", "topics", "read", "read"]


@pytest.mark.kafka
def test_a_topic_that_is_gone(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    """It has nothing any more; the audit has the commits of what it had."""
    made = Job(spark, Scene(tmp_path, kafka, World([]), seed=1).order(), Silent())
    made.state.known = replace(made.state.known, positions={"gone": {0: 5}, made.audit: {0: 1}})
    assert made._places() == [("gone", 0, False, NEVER)]


@pytest.mark.kafka
def test_kept_verdicts_do_not_outlive_what_they_follow_from(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rules, another release, other bounds: every message is judged again. A watermark that
    has passed a bucket's newest time changes nothing there."""
    made = Job(spark, Scene(tmp_path, kafka, World([]), seed=1).order(), Silent())
    buckets = {"old": Bucket(0, 1, 100), "new": Bucket(0, 1, 900)}
    made.state.known = replace(made.state.known, buckets=buckets)
    bounds = Bounds(since=None, until=None, watermark=600, new_from=500, audit_from=None)
    before = made._marks(bounds, [])
    later = made._marks(replace(bounds, watermark=800, new_from=700), [])
    assert {name for name in before if later[name] != before[name]} == {"new"}
    changes: list[tuple[str, Any]] = [("RULES", -1), ("version", lambda _: "next")]
    for name, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(job, name, value)
            assert not before.items() & made._marks(bounds, []).items(), name
    assert not before.items() & made._marks(replace(bounds, since=1), []).items()
    assert made._marks(bounds, []) == before


@pytest.mark.kafka
def test_an_audit_that_has_lost_something(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """By partition: what is older than the latest of them may have been accepted all the same."""
    assert audit_from({}) is None
    assert audit_from({0: 100, 3: 250}) == 250
    reading = Reading(spark, Scene(tmp_path, kafka, World([]), seed=1).order(), Silent())
    (_, value, topic, _, _, when, headers) = audit_record([])
    records = [(None, value, topic, n, 7, when, headers) for n in (0, 1)]
    first = {reading.audit: {0: 0, 1: 5, 2: 5}, "t": {0: 9}}
    reading.take(accepted=spark.createDataFrame(records, RECORD), first=first)
    known = reading.changed
    assert known.first == first
    # The first had everything; of the third, and of the topic, nothing was there to read.
    assert known.oldest == {
        reading.audit: {1: int(when.timestamp() * 1000), 2: NEVER},
        "t": {0: NEVER},
    }
    # Read on without a gap, nothing more is lost; with one, there is.
    reading.changed = replace(known, oldest={}, positions={"t": {0: 9, 1: 4}})
    reading.take(first={"t": {0: 9, 1: 5}})
    assert reading.changed.oldest == {"t": {1: NEVER}}
