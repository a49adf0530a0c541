"""What to type, and what to put into a consumer, after a report that is not clean.

Names in commands come from outside: each is quoted for the shell or as a literal.
"""

from __future__ import annotations

import json
import shlex

from msmq_jobs.reconcile.words import Findings


def repair_commands(findings: Findings) -> list[str]:
    """Mends what is missing and has a copy; the last one shows that it did."""
    plan = findings["repair"]["plan"]
    path = shlex.quote(plan or "plan.json")
    asked = [] if plan else [_job(findings, "reconcile", "--plan plan.json --out parity")]
    return [
        *asked,
        _job(findings, "backfill", f"--plan {path} --dry-run"),
        _job(findings, "backfill", f"--plan {path} --out runs"),
        _job(findings, "reconcile", "--out parity-after"),
    ]


def expired_command(findings: Findings) -> str:
    return _job(findings, "backfill", "--include-expired --dry-run")


def trace_command(findings: Findings, verdict: str) -> str:
    first = findings["offenders"][verdict][0]["message_id"]
    return f"msmq-bridge trace --config bridge.yaml {shlex.quote(first)}"


def skip_code(findings: Findings) -> str:
    """For a consumer: steps over the surplus copies."""
    return f"""\
import json
with open({json.dumps(findings["repair"]["skip"] or "skip.jsonl")}) as lines:
    surplus = {{(r["topic"], r["partition"], r["offset"]) for r in map(json.loads, lines)}}
...
if (record.topic(), record.partition(), record.offset()) in surplus:
    continue  # its first copy was handled"""


def late_code(findings: Findings) -> str:
    """For a consumer: the ids that lie behind a later message of their stream."""
    return f"""\
import pyarrow.dataset as ds
verdicts = ds.dataset({json.dumps(findings["details"])})
rows = verdicts.to_table(["message_id", "queue"], filter=ds.field("verdict") == "out_of_order")
late = {{(r["message_id"], r["queue"]) for r in rows.to_pylist()}}"""


def _job(findings: Findings, command: str, options: str) -> str:
    sources = (shlex.quote(source["source"]) for source in findings["inputs"]["sources"])
    given = [f"--source {source}" for source in sources]
    return " \\\n    ".join([f"msmq-bridge {command} --config bridge.yaml", *given, options])
