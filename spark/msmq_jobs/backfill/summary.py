"""What a run did, for people, programs and exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from msmq_jobs.backfill.io import Refused, RunFolder
from msmq_jobs.backfill.transforms import LAWFUL, PRESENT
from msmq_jobs.backfill.writer import DOUBLED, FAILED, WRITTEN

DONE: Final = 0
PARTLY: Final = 2


class QueueCount(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the plan: messages that share their way and their fate."""

    source: str
    queue: str
    topic: str
    messages: int
    skipped: str = ""  # why; empty: they go
    result: str = ""  # what became of those that went
    detail: str = ""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    folder: str
    dry_run: bool
    read: int
    to_write: int
    written: int
    already_there: int
    skipped: Mapping[str, int]  # reason -> messages
    failed: int
    doubled: int
    removed: int  # from live queues, after the commit
    not_found: int  # of the plan's messages, in no source
    queues: list[QueueCount]
    problems: list[str]  # one line each

    @property
    def exit_code(self) -> int:
        return PARTLY if self.problems else DONE


def of(
    folder: RunFolder,
    dry_run: bool,
    counts: Iterable[Any],
    results: Iterable[Any],
    refused: Sequence[Refused],
    not_found: int,
    removed: int = 0,
) -> Summary:
    """`counts` are rows of `transforms.counted`, `results` of `transforms.results`."""
    planned = [_line(row, skipped=row["reason"] or "") for row in counts]
    went = [_line(row, result=row["result"]) for row in results]
    to_write = [line for line in planned if not line.skipped]
    queues = [line for line in planned if line.skipped] + (to_write if dry_run else went)
    queues.sort(key=lambda line: (line.source, line.queue, line.topic, line.skipped, line.result))
    became: dict[str, int] = {}
    for line in went:
        became[line.result] = became.get(line.result, 0) + line.messages
    skipped: dict[str, int] = {}
    for line in queues:
        if line.skipped:
            skipped[line.skipped] = skipped.get(line.skipped, 0) + line.messages
    there = skipped.pop(PRESENT, 0) + became.get(PRESENT, 0)
    return Summary(
        run=folder.run,
        folder=folder.root,
        dry_run=dry_run,
        read=sum(line.messages for line in planned),
        to_write=sum(line.messages for line in to_write),
        written=became.get(WRITTEN, 0) + became.get(DOUBLED, 0),
        already_there=there,
        skipped=skipped,
        failed=became.get(FAILED, 0),
        doubled=became.get(DOUBLED, 0),
        removed=removed,
        not_found=not_found,
        queues=queues,
        problems=list(_problems(queues, refused, became, not_found)),
    )


def _line(row: Any, skipped: str = "", result: str = "") -> QueueCount:
    return QueueCount(
        source=row["origin"] or "",
        queue=row["queue"] or "",
        topic=row["topic"] or "",
        messages=row["messages"],
        skipped=skipped,
        result=result,
        detail=row["detail"] or "",
    )


def _problems(
    queues: Iterable[QueueCount],
    refused: Sequence[Refused],
    became: Mapping[str, int],
    not_found: int,
) -> Iterable[str]:
    for source in refused:
        yield source.why
    for line in queues:
        if line.skipped and line.skipped not in LAWFUL:
            yield _one_line(line)
    if not_found:
        yield f"{not_found} of the plan's messages are in no source"
    if doubled := became.get(DOUBLED, 0):
        yield f"{doubled} were brought in by live traffic at the same moment: they are there twice"
    for line in queues:
        if line.result == FAILED:
            yield f"{line.topic}: {line.messages} not written: {line.detail}"


_WORDS: Final = {
    "unreadable": "cannot be read",
    "unknown-queue": "are for a queue that no mapping has",
    "topic-missing": "are for a topic that is not there: make it with 'msmq-bridge map apply'",
    "retained-queue": "are for a retained queue: send them to it instead",
    "no-identity": "have no id of their own, so nobody could tell a copy",
    "encrypted-body": "are encrypted",
    "larger-than-the-topic-takes": "are larger than the topic takes",
    "transactional-message-to-plain-queue": "are transactional, the queue is not",
    "plain-message-to-transactional-queue": "are not transactional, the queue is",
}


def _one_line(line: QueueCount) -> str:
    where = f"{line.source}: {line.messages} for {line.queue or 'no queue'}"
    if line.skipped == "unreadable":
        where = f"{line.source}: {line.messages}"
    first = f" (first: {line.detail})" if line.detail else ""
    topic = f" ({line.topic})" if line.skipped == "topic-missing" else ""
    return f"{where} {_WORDS.get(line.skipped, line.skipped)}{topic}{first}"
