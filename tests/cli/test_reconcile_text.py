"""The answer first, then each verdict in words."""

from typing import Any

import pytest

from bridge.cli.reconcile_text import print_findings
from msmq_jobs.reconcile import rules, words

Printed = pytest.CaptureFixture[str]


def told(parity: bool, plan: str | None, **verdicts: int) -> dict[str, Any]:
    counts = {**dict.fromkeys(rules.VERDICTS, 0), **verdicts}
    queue = {"queue": "private$\\or\x1b[2Jders", "messages": 5, "verdicts": verdicts}
    missing = counts["missing"]
    return {
        "parity": parity,
        "messages": sum(counts.values()),
        "verdicts": counts,
        "queues": [queue],
        "queues_total": 1,
        "repair": {"missing": missing, "with_copy": missing, "surplus": 2, "plan": plan},
        "foreign": 3,
        "inputs": {"sources": [{"unreadable": 2}]},
    }


def test_broken(capsys: Printed) -> None:
    found = told(False, None, delivered_once=3, missing=1, expired=1)
    print_findings(found, "out")
    text = capsys.readouterr().out
    assert text.startswith("No parity: 1 of 5 messages in 1 queue breaks it (1 missing).")
    meaning = words.explain("missing").meaning
    for word in (
        "breaks parity",
        "lawful",
        meaning,
        "add --plan",
        "skip.jsonl",
        "3 records",
        "2 entries",
    ):
        assert word in text
    assert "\x1b[2J" not in text  # names come from outside
    assert "duplicated" not in text  # there are none


def test_a_plan_says_how_to_go_on(capsys: Printed) -> None:
    print_findings(told(False, "plan.json", missing=1), "out")
    assert "backfill --plan plan.json brings them in" in capsys.readouterr().out
