import io
import json
from typing import Any

import pytest
from rich.console import Console

from tests.bench.report import WIDTH, amount, share, show
from tests.bench.sample import sample


def shown(told: dict[str, Any]) -> str:
    out = io.StringIO()
    show(told, Console(file=out, width=WIDTH))
    return out.getvalue()


def test_document_is_json_with_stable_keys() -> None:
    told = sample()
    assert json.loads(json.dumps(told)) == told
    assert list(told) == [
        *("format", "quick", "seconds", "settings", "machine", "versions", "results", "targets")
    ]
    assert set(told["versions"]) == {"msmq-bridge", "python", "confluent-kafka", "librdkafka"}
    assert told["machine"]["cores"] >= 1


def test_tables_fit_a_terminal() -> None:
    text = shown(sample())
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert "…" not in text


def test_tables_show_every_figure_beside_its_target() -> None:
    text = shown(sample())
    for part in ("64 sessions and 1,000 idle", "raw producer, express, 64 KiB", "15 / 99 / 130 ms"):
        assert part in text
    for part in ("raw producer, SRMP durable, 1 KiB", "8 connections", "11 / 22 / 33 ms"):
        assert part in text
    assert text.count("4,000, 150 / 200 µs") == 3  # remote read beside a Kafka consumer
    assert "2,000, 0.25 of the sink" in text
    assert "84 / 60 s" in text  # verdicts beside a bare join
    rows = [line for line in text.splitlines() if "reached" in line]
    assert len(rows) == len(sample()["targets"]) == 11
    assert sum("not reached" in row for row in rows) == 3


def test_a_run_of_one_scenario() -> None:
    told = sample()
    told["results"] = {"memory/idle-session": told["results"]["memory/idle-session"]}
    told["targets"] = []
    assert "idle sessions" in shown(told)


def test_a_machine_that_others_use() -> None:
    told = sample()
    assert "took 0.50 of" in shown(told)
    told["machine"]["cores_taken_by_others"] = 0.01
    assert "these figures say little" not in shown(told)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.364, "", "0.36"), (7.16, " KiB", "7.16 KiB"), (657, " ms", "657 ms")],
)
def test_amount(value: float, unit: str, text: str) -> None:
    assert amount({"value": value, "unit": unit}) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.234, "1.23"), (0.1, "0.10"), (0.0512, "0.051"), (0.00164, "0.0016")]
)
def test_share(value: float, text: str) -> None:
    assert share(value) == text
