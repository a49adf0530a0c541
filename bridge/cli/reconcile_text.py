"""What reconcile found, for a terminal: the answer in one sentence, then each verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bridge.cli.output import console, table

MEANINGS: Final = {
    "delivered_once": "one copy, as it was sent",
    "missing": "sent or accepted, but there is no record",
    "duplicated": "more than one record; skip.jsonl names the surplus ones",
    "out_of_order": "a later message of its stream stands before it",
    "altered": "its record differs from what was sent or accepted",
    "unexpected": "a record that no ledger knows",
    "expired": "ran out of time, by MSMQ's rules",
    "rejected": "refused on the wire, with a reason",
    "dead_lettered": "lies in a dead-letter queue",
    "in_flight": "too new to judge",
}
_LAWFUL: Final = ("expired", "rejected", "dead_lettered", "in_flight")


def print_findings(told: Mapping[str, Any], folder: str) -> None:
    out = console()
    out.print(sentence(told))
    rows = [
        {
            "verdict": name,
            "messages": f"{count:,}",
            "": _mark(name),
            "what it means": MEANINGS[name],
        }
        for name, count in told["verdicts"].items()
        if count or name == "delivered_once"
    ]
    out.print(table(rows))
    broken = [queue for queue in told["queues"] if _faults(queue["verdicts"])]
    if broken:
        shown: list[Any] = [
            {"queue": q["queue"], "messages": f"{q['messages']:,}", **_faults(q["verdicts"])}
            for q in broken[:20]
        ]
        out.print(table(shown, "queues with faults"))
    for line in _advice(told):
        out.print(line)
    out.print(f"report.json and verdicts/ are in {folder}")


def sentence(told: Mapping[str, Any]) -> str:
    """The answer first."""
    faults = _faults(told["verdicts"])
    judged = f"{told['messages']:,} messages in {len(told['queues']):,} queues"
    if not told["messages"]:
        return "Parity: there are no messages to judge."
    if not faults:
        return f"Parity: {judged}, each accounted for."
    words = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in faults.items())
    if told["parity"]:
        return f"Parity within what was allowed: {judged}; {words}."
    return f"No parity: {judged}; {words}."


def _faults(verdicts: Mapping[str, int]) -> dict[str, int]:
    lawful = (*_LAWFUL, "delivered_once")
    return {name: count for name, count in verdicts.items() if count and name not in lawful}


def _mark(name: str) -> str:
    return "ok" if name == "delivered_once" else "lawful" if name in _LAWFUL else "breaks parity"


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
    if told["foreign"]:
        lines.append(f"{told['foreign']:,} records are no messages of ours (no id)")
    return lines
