"""What reconcile found, for a terminal: the answer in one sentence, then each verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bridge.cli.output import console, table
from msmq_jobs.reconcile import rules, words

MOST_QUEUES: Final = 20


def print_findings(told: Mapping[str, Any], folder: str) -> None:
    out = console()
    out.print(words.sentence(told))
    out.print(" ".join(words.totals(told)))
    shown: list[Any] = [
        {
            "verdict": name,
            "messages": f"{told['verdicts'][name]:,}",
            "": words.kind(name),
            "what it means": words.explain(name).meaning,
        }
        for name in rules.VERDICTS
        if told["verdicts"][name] or name == rules.DELIVERED
    ]
    out.print(table(shown))
    broken = [queue for queue in told["queues"] if words.total(queue["verdicts"], rules.BREAKING)]
    if broken:
        rows: list[Any] = [
            {
                "queue": queue["queue"],
                "messages": f"{queue['messages']:,}",
                "faults": words.counted(queue["verdicts"], rules.BREAKING),
            }
            for queue in broken[:MOST_QUEUES]
        ]
        out.print(table(rows, "queues with faults"))
    for line in _advice(told):
        out.print(line)
    out.print(f"report.html, report.json, junit.xml and verdicts/ are in {folder}")


def _advice(told: Mapping[str, Any]) -> list[str]:
    repair = told["repair"]
    lines = []
    if repair["missing"]:
        copies = f"{repair['with_copy']:,} of {repair['missing']:,} missing have a copy in a source"
        if repair["plan"]:
            copies += f": msmq-bridge backfill --plan {repair['plan']} brings them in"
        elif repair["with_copy"]:
            copies += ": add --plan plan.json, then backfill --plan plan.json"
        lines.append(copies)
    if repair["surplus"]:
        lines.append(f"consumers can skip {repair['surplus']:,} surplus copies: skip.jsonl")
    return lines
