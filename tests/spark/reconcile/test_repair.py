"""The plan and the copies to skip, as files."""

import json
from pathlib import Path

from pyspark.sql import Row, SparkSession

from msmq_jobs.backfill.io import read_plan
from msmq_jobs.reconcile import repair


def test_a_plan_is_what_backfill_reads(tmp_path: Path) -> None:
    rows = [Row(message_id=f"g\\{n}", queue="q", source="a.jsonl") for n in range(3)]
    for some in (rows, []):
        file = tmp_path / "plan.json"
        file.write_text("".join(repair.as_list(iter(some))))
        assert [p.message_id for p in read_plan(file)] == [row["message_id"] for row in some]


def test_every_copy_but_the_first(spark: SparkSession) -> None:
    verdicts = spark.createDataFrame(
        [
            ("a", "Q", "duplicated", None),
            ("b", "Q", "delivered_once", None),
            ("c", "Q", "missing", "s"),
        ],
        "message_id string, queue string, verdict string, origin string",
    )
    places = [("a", 5, 0, 9), ("a", 5, 0, 3), ("a", 6, 1, 0), ("b", 5, 0, 4)]
    landed = spark.createDataFrame(
        [(id_, "q", at, "t", partition, offset) for id_, at, partition, offset in places],
        "message_id string, queue string, at long, topic string, partition int, offset long",
    )
    lines = list(repair.as_lines(iter(repair.surplus(verdicts, landed).collect())))
    told = [json.loads(line) for line in lines]
    assert [(row["partition"], row["offset"]) for row in told] == [(0, 9), (1, 0)]
    assert told[0] == {"topic": "t", "partition": 0, "offset": 9, "message_id": "a", "queue": "Q"}
    assert [row["source"] for row in repair.planned(verdicts).collect()] == ["s"]
