from tests.bench.scenarios import SPARK
from tests.bench.spark_rows import reconcile_row, rows_of


def test_a_backfill_beside_the_sink() -> None:
    told: dict[str, dict[str, object]] = {
        "backfill": {"per_second": 500.0, "stages": {}},
        "sink": {"per_second": 2000.0},
    }
    rows = rows_of(told)
    assert rows.keys() == SPARK.keys()
    assert rows["spark/backfill"]["of_sink"] == 0.25
    assert "of_sink" not in rows["spark/sink"]


def test_verdicts_beside_a_join() -> None:
    whole = {"messages": 10, "join_s": 2.0, "seconds": 3.0, "of_join": 1.5}
    told = {"half": {"seconds": 1.4}, "whole": whole, "growth": 2.1, "peak_gib": 1.9}
    row = reconcile_row(told)
    assert row == {**whole, "half_s": 1.4, "growth": 2.1, "peak_gib": 1.9}
