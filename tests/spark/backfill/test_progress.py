"""How far it is, from the audit topic."""

import threading
from collections.abc import Mapping

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from msmq_jobs.backfill.progress import Progress
from msmq_jobs.backfill.writer import write_rows
from tests.spark.backfill.bench import Bench
from tests.spark.letters import ORDERS, PLAIN, letter

pytestmark = pytest.mark.kafka


def test_counts_by_queue_of_this_run_only(kafka: EmbeddedKafka) -> None:
    bench = Bench(kafka)
    seen: dict[str, int] = {}
    whole = threading.Event()

    def tell(counts: Mapping[str, int]) -> None:
        seen.update(counts)
        if sum(seen.values()) >= 5:
            whole.set()

    others = [letter(n) for n in range(50, 60)]
    list(write_rows(bench.rows(others, "other"), bench.job("other")))
    with Progress(bench.settings, bench.own.audit, {0: 0, 1: 0}, "run-1", tell):
        ours = [letter(1), letter(2), *(letter(n, ORDERS) for n in (1, 2, 3))]
        list(write_rows(bench.rows(ours, "run-1"), bench.job("run-1")))
        assert whole.wait(30)
    assert seen == {PLAIN: 2, ORDERS: 3}


def test_a_broker_that_is_not_there_stops_nobody() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with Progress(nowhere, "audit", {0: 0}, "r", lambda _: None):
        pass
