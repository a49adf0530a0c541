"""The summary for people."""

from typing import Any

import pytest

from bridge.cli.backfill_text import print_summary
from msmq_jobs.backfill.io import Refused, RunFolder
from msmq_jobs.backfill.summary import of

ROW: dict[str, Any] = {"origin": "a.jsonl", "queue": "q", "topic": "t", "detail": None}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_table_and_a_line_for_each_problem(
    dry_run: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = [{**ROW, "messages": 3, "reason": None}, {**ROW, "messages": 2, "reason": "expired"}]
    results = [] if dry_run else [{**ROW, "result": "written", "messages": 3}]
    refused = [Refused("b", "b: nobody\x1b there")]
    print_summary(of(RunFolder("out", "r1"), dry_run, counts, results, refused, 0))
    printed = capsys.readouterr()
    head = "3 of 5 would be written" if dry_run else "3 of 5 written"
    assert f"{head}, 0 already there, 2 skipped; kept in out" in printed.out
    assert "skipped: expired" in printed.out
    assert ("dry run" in printed.out) is dry_run
    assert printed.err == "msmq-bridge: b: nobody? there\n"
