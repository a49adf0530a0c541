"""What a backfill did, or would do, as a table and a line for every problem."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bridge.cli.output import console, table

if TYPE_CHECKING:
    from msmq_jobs.backfill.summary import QueueCount, Summary


def print_summary(told: Summary) -> None:
    """The table on stdout, the problems on stderr, one line each."""
    title = f"run {told.run}" + (" (dry run: nothing was written)" if told.dry_run else "")
    rows: list[Any] = [_row(line) for line in told.queues]
    out = console()
    if rows:
        out.print(table(rows, title))
    out.print(_sentence(told))
    for problem in told.problems:
        text = "".join(c if c.isprintable() else "?" for c in problem)
        sys.stderr.write(f"msmq-bridge: {text}\n")


def _row(line: QueueCount) -> dict[str, Any]:
    return {
        "source": line.source,
        "queue": line.queue,
        "topic": line.topic,
        "messages": line.messages,
        "what": f"skipped: {line.skipped}" if line.skipped else line.result or "would be written",
    }


def _sentence(told: Summary) -> str:
    skipped = sum(told.skipped.values())
    if told.dry_run:
        head = f"{told.to_write} of {told.read} would be written"
    else:
        head = f"{told.written} of {told.read} written"
    parts = [f"{told.already_there} already there", f"{skipped} skipped"]
    if told.failed:
        parts.append(f"{told.failed} failed")
    return f"{head}, {', '.join(parts)}; kept in {told.folder}"
