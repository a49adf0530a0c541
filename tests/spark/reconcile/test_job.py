"""Found, repaired, clean: a plan that backfill brings in; and what is new is all that is read."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from bridge.adapters.kafka.embedded import EmbeddedKafka
from bridge.core.mapping_rules import Defaults, Mappings, QueueMapping, QueuePath, Topic
from msmq_jobs.backfill.job import Order as Bring
from msmq_jobs.backfill.job import backfill
from msmq_jobs.reconcile.job import _Modes, reconcile
from tests.spark.reconcile.planted import Scene, Silent
from tests.spark.reconcile.world import ORDERS, PLAIN, Copy, Seen, World


class Quiet(Silent):
    def read(self, source: str, messages: int) -> None: ...

    def written(self, counts: Mapping[str, int]) -> None: ...


def few(start: int) -> World:
    """Two of thirty are lost, one in a stream and one outside of any."""
    return World(
        [
            Seen(
                n, ORDERS if n % 2 else PLAIN, start=start, copies=() if n in (5, 6) else (Copy(),)
            )
            for n in range(1, 31)
        ]
    )


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_repair(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kafka, few(int(time.time() - 7200) * 1000), seed=1)
    scene.fill()
    plan, state = str(tmp_path / "plan.json"), str(tmp_path / "state")
    told = reconcile(spark, scene.order(plan=plan, state=state, in_flight_s=1), Silent())
    assert not told["parity"]
    assert told["verdicts"]["missing"] == 2
    assert told["repair"] == {
        "missing": 2,
        "with_copy": 2,
        "surplus": 0,
        "plan": "plan.json",
        "skip": None,
    }
    done = backfill(
        spark, Bring(config=scene.config, plan=Path(plan), out=f"{tmp_path}/b"), Quiet()
    )
    assert (done.written, done.problems) == (2, [])
    # Only what is new: the sources are in the state, and reading goes on where it stopped.
    after = scene.order(state=state, sources=(), in_flight_s=1, out=f"{tmp_path}/after")
    clean = reconcile(spark, after, Silent())
    assert clean["parity"]
    assert clean["verdicts"]["delivered_once"] == 30
    # All of it, from the beginning: the same bytes, and the same verdicts.
    reconcile(spark, scene.order(in_flight_s=1, out=f"{tmp_path}/anew"), Silent())
    one, two = (tmp_path / name for name in ("after", "anew"))
    assert (one / "report.json").read_bytes() == (two / "report.json").read_bytes()
    assert sorted(rows(one), key=str) == sorted(rows(two), key=str)
    brought = [row for row in rows(one) if row["backfill_run"]]
    assert [row["backfill_run"] for row in brought] == [done.run] * 2


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ds.dataset(folder / "verdicts").to_table().to_pylist()
    return found


def test_which_mapping_a_queue_has() -> None:
    kept = QueueMapping(queue=QueuePath("private$\\Orders"), topic=Topic("a"), mode="retain")
    wide = QueueMapping(queue=QueuePath("*-long-name"), topic=Topic("b"), mode="retain")
    private = QueueMapping(queue=QueuePath("private$\\*"), topic=Topic("c"), value="json")
    modes = _Modes(Mappings(queues=(kept, wide, private)))
    assert modes.get("private$\\orders") == ("retain", "compared")
    assert modes.get("private$\\a-long-name")[0] == "forward"  # a public pattern is for public ones
    assert modes.get("a-long-name")[0] == "retain"
    assert modes.get("nobody") is None
    anybody = Mappings(queues=(), defaults=Defaults(unknown="auto-create"))
    assert _Modes(anybody).get("nobody") == ("forward", "compared")
