"""Order along a partition, over slices."""

from pyspark.sql import SparkSession

from msmq_jobs.reconcile.order import swapped

ROW = "message_id string, queue string, domain long, offset long, sequence long, number long"


def test_only_what_stands_behind_a_higher_one(spark: SparkSession) -> None:
    """Gaps are lawful (QB-81), so is a new sequence; slices of four do not matter."""
    lines = {
        1: [(1, 1), (1, 2), (1, 5), (1, 4), (1, 6), (1, 9), (1, 10), (1, 11), (1, 3), (1, 12)],
        2: [(1, 7), (1, 8), (2, 1), (2, 2), (1, 9), (2, 3)],  # a new sequence, then an old one
        3: [(1, 1), (1, 1), (1, 2)],  # a copy beside it is in order
    }
    rows = [
        (f"{domain}/{sequence}.{number}", "q", domain, 3 * at, sequence, number)
        for domain, line in lines.items()
        for at, (sequence, number) in enumerate(line)
    ]
    found = swapped(spark.createDataFrame(rows, ROW), slice_size=12).collect()
    assert {row["message_id"] for row in found} == {"1/1.4", "1/1.3", "2/1.9"}
