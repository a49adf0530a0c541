"""The answer first, then each verdict in words."""

from typing import Any

import pytest

from bridge.cli.reconcile_text import MEANINGS, print_findings, sentence


def told(parity: bool = False, **verdicts: int) -> dict[str, Any]:
    counts = {**dict.fromkeys(MEANINGS, 0), **verdicts}
    queue = {"queue": "private$\\or\x1b[2Jders", "messages": 5, "verdicts": verdicts}
    return {
        "parity": parity,
        "messages": sum(counts.values()),
        "verdicts": counts,
        "queues": [queue],
        "repair": {"missing": counts["missing"], "with_copy": 1, "surplus": 2, "plan": None},
        "foreign": 3,
    }


def test_one_sentence() -> None:
    assert sentence(told(True)) == "Parity: there are no messages to judge."
    fine = told(True, delivered_once=4, expired=1)
    assert sentence(fine) == "Parity: 5 messages in 1 queues, each accounted for."
    broken = told(delivered_once=1234, out_of_order=2)
    assert sentence(broken) == "No parity: 1,236 messages in 1 queues; 2 out of order."
    let_pass = told(True, delivered_once=9, missing=1)
    assert sentence(let_pass).startswith("Parity within what was allowed: ")


def test_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings(told(delivered_once=3, missing=1, expired=1), "out")
    text = capsys.readouterr().out
    assert text.startswith("No parity: ")
    for word in ("breaks parity", "lawful", MEANINGS["missing"], "add --plan", "skip.jsonl"):
        assert word in text
    assert "\x1b[2J" not in text  # names come from outside
    assert "duplicated" not in text  # there are none
