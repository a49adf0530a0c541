"""What a run tells: sums, one line for every problem, and an exit code."""

from typing import Any

from msmq_jobs.backfill.io import Refused, RunFolder
from msmq_jobs.backfill.summary import Summary, of


def count(messages: int, reason: str | None = None, detail: str | None = None) -> dict[str, Any]:
    row = {"origin": "a.jsonl", "queue": "q", "topic": "t", "messages": messages}
    return row | {"reason": reason, "detail": detail}


def result(name: str, messages: int, detail: str | None = None) -> dict[str, Any]:
    row = {"origin": "a.jsonl", "queue": "q", "topic": "t", "messages": messages}
    return row | {"result": name, "detail": detail}


def told(
    *counts: Any, results: Any = (), refused: Any = (), not_found: int = 0, dry_run: bool = False
) -> Summary:
    return of(RunFolder("out", "run-1"), dry_run, counts, results, refused, not_found)


def test_all_done() -> None:
    found = told(
        count(3),
        count(2, "already-there"),
        count(1, "expired"),
        count(4, "filtered"),
        results=[result("written", 2), result("already-there", 1)],
    )
    assert (found.read, found.to_write, found.written, found.already_there) == (10, 3, 2, 3)
    assert found.skipped == {"expired": 1, "filtered": 4}
    assert (found.problems, found.exit_code) == ([], 0)


def test_the_lines_say_what_became_of_them() -> None:
    """A dry run has only what would be."""
    planned = count(3), count(2, "expired")
    would = [
        (line.messages, line.skipped, line.result) for line in told(*planned, dry_run=True).queues
    ]
    assert would == [(3, "", ""), (2, "expired", "")]
    done = told(*planned, results=[result("written", 2), result("failed", 1, "gone")])
    became = [(line.messages, line.skipped, line.result) for line in done.queues]
    assert became == [(1, "", "failed"), (2, "", "written"), (2, "expired", "")]


def test_a_part_of_it() -> None:
    found = told(
        count(1, "unknown-queue"),
        count(2, "unreadable", "half a line"),
        results=[result("failed", 5, "Kafka: gone"), result("doubled", 1)],
        refused=[Refused("b", "b: nobody there")],
        not_found=7,
    )
    assert found.exit_code == 2
    assert found.problems == [
        "b: nobody there",
        "a.jsonl: 1 for q are for a queue that no mapping has",
        "a.jsonl: 2 cannot be read (first: half a line)",
        "7 of the plan's messages are in no source",
        "1 were brought in by live traffic at the same moment: they are there twice",
        "t: 5 not written: Kafka: gone",
    ]
    assert (found.failed, found.doubled, found.written) == (5, 1, 1)


def test_a_missing_topic_says_how_to_make_it() -> None:
    (line,) = told(count(1, "topic-missing")).problems
    assert "map apply" in line
    assert "(t)" in line
