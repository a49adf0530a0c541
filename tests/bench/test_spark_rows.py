from tests.bench.scenarios import SPARK
from tests.bench.spark_rows import rows_of


def test_a_backfill_beside_the_sink() -> None:
    told: dict[str, dict[str, object]] = {
        "backfill": {"per_second": 500.0, "stages": {}},
        "sink": {"per_second": 2000.0},
    }
    rows = rows_of(told)
    assert rows.keys() == SPARK.keys()
    assert rows["spark/backfill"]["of_sink"] == 0.25
    assert "of_sink" not in rows["spark/sink"]
