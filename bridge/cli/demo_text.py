"""What the demo shows: verdicts as they come, then the three answers, as tables or as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bridge.adapters.demo.script import Part
from bridge.adapters.demo.senders import Told
from bridge.adapters.demo.witness import FoundRecord
from bridge.cli.output import cell
from bridge.core.audit import AuditEntry
from bridge.model.words import class_name, counted, in_words

LAST: Final = 12  # verdicts in the live table
PER_TOPIC: Final = 2  # records in the second answer
LONGEST: Final = 24  # of a key or value in a table
_STYLES: Final = {"accepted": "green", "duplicate": "yellow"}
_EXCERPT: Final = (
    *("msmq.label", "msmq.transport", "msmq.tx.seq"),
    "__connect.errors.exception.message",
)
_ORIGINALS: Final = ("msmq.wire", "msmq.soap")  # the message as it came: long
_COLUMNS: Final = (
    *(("arrived", 8), ("over", 6), ("message", 16), ("queue", 17)),
    *(("verdict", 23), ("record", 11)),
)
CAME_IN: Final = "1. What came in?"
IN_KAFKA: Final = "2. Where is it in Kafka?  (read back with isolation.level=read_committed)"
TOLD: Final = "3. What was the sender told?"


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """All that the demo has to tell."""

    verdicts: Sequence[AuditEntry]
    records: Sequence[FoundRecord]
    told: Sequence[tuple[Part, Told]]

    @property
    def senders(self) -> dict[str, Part]:
        """By message id; the first that sent it."""
        found: dict[str, Part] = {}
        for part, _ in self.told:
            for message in part.messages:
                found.setdefault(message.id, part)
        return found


# -- as data ----------------------------------------------------------------------------------


def as_data(answers: Answers) -> dict[str, Any]:
    senders = answers.senders
    return {
        "came_in": [_verdict(entry, senders.get(entry.id)) for entry in answers.verdicts],
        "in_kafka": [_record(record) for record in answers.records],
        "told": [_told(part, told) for part, told in answers.told],
    }


def _verdict(entry: AuditEntry, part: Part | None) -> dict[str, Any]:
    return {
        "message_id": entry.id,
        "sender": part.sender if part else None,
        "queue": _queue(entry),
        "label": entry.label,
        "transport": entry.transport,
        "delivery": part.delivery if part else None,
        "arrived_time": _time(entry.at),
        "verdict": entry.verdict,
        "class": class_name(entry.message_class) if entry.message_class else None,
        "reason": entry.reason or None,
    }


def _record(record: FoundRecord) -> dict[str, Any]:
    return {
        "message_id": record.message_id,
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": _time(record.timestamp_ms),
        "key": None if record.key is None else readable(record.key),
        "value": readable(record.value),
        "headers": {
            name: readable(value)
            for name, value in sorted(record.headers.items())
            if name not in _ORIGINALS
        },
    }


def _told(part: Part, told: Told) -> dict[str, Any]:
    return {
        "sender": part.sender,
        "about": part.about,
        "queue": part.queue,
        "transport": part.transport,
        "delivery": part.delivery,
        "sent": told.sent,
        "session_acked": told.session_acked,
        "order_acked": told.order_acked,
        "final_acks": counted(told.final_acks),
        "admin_acks": counted(told.admin_acks),
    }


def readable(value: bytes) -> str:
    """Text if it is text, else hex."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex()
    return text if text.isprintable() else value.hex()


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


# -- as tables --------------------------------------------------------------------------------


def as_tables(answers: Answers) -> Iterator[RenderableType]:
    yield _table(CAME_IN, _groups(answers))
    yield _table(IN_KAFKA, _places(answers.records))
    yield _table(TOLD, (_told_row(part, told) for part, told in answers.told))


def _table(title: str, rows: Iterable[dict[str, Any]]) -> Table:
    """A list is a line for each of its items."""
    made = Table(title=Text(title, style="bold"), title_justify="left")
    for row in rows:
        if not made.columns:
            for name in row:
                made.add_column(name, overflow="fold")
        lines = [value if isinstance(value, list) else [value] for value in row.values()]
        made.add_row(*(Text("\n").join(map(cell, items)) for items in lines))
    if not made.columns:
        made.add_column("nothing")
    return made


def _groups(answers: Answers) -> Iterator[dict[str, Any]]:
    """One row for all messages of a sender that fared alike."""
    senders = answers.senders
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in answers.verdicts:
        part = senders.get(entry.id)
        known = (part.sender, part.delivery) if part else ("", "")
        key = (*known, entry.transport, _queue(entry), _words(entry))
        groups.setdefault(key, []).append(entry.label)
    for (sender, delivery, transport, queue, verdict), labels in groups.items():
        yield {
            "sender": sender,
            "messages": _span(labels),
            "delivery": delivery,
            "over": transport,
            "queue": queue,
            "verdict": verdict,
        }


def _queue(entry: AuditEntry) -> str:
    """Its name; of one that is unknown what the direct name says."""
    return entry.queue or entry.dest.partition("\\")[2] or entry.dest


def _words(entry: AuditEntry) -> str:
    return f"{entry.verdict}: {entry.reason.replace('-', ' ')}" if entry.reason else entry.verdict


def _span(labels: list[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} … {labels[-1].rpartition(' ')[2]}"


def _places(records: Iterable[FoundRecord]) -> Iterator[dict[str, Any]]:
    """The first of each topic; those that we own last."""
    by_topic: dict[str, list[FoundRecord]] = {}
    for record in records:
        by_topic.setdefault(record.topic, []).append(record)
    for topic, found in sorted(by_topic.items(), key=lambda item: (item[0][0] == "_", item[0])):
        shown = PER_TOPIC if len(found) > PER_TOPIC + 1 else len(found)
        for record in found[:shown]:
            headers = record.headers
            key = "none" if record.key is None else _short(readable(record.key))
            yield {
                "topic-partition@offset": f"{topic}-{record.partition}@{record.offset}",
                "record": [f"key    {key}", f"value  {_short(readable(record.value))}"],
                "some headers": [f"{n}={readable(headers[n])}" for n in _EXCERPT if n in headers],
            }
        if len(found) > shown:
            yield {"topic-partition@offset": f"and {len(found) - shown:,} more"}


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _told_row(part: Part, told: Told) -> dict[str, Any]:
    transactional = part.delivery == "transactional"
    answer, receipt = ("200: ", "receipt: ") if part.transport == "http" else ("", "")
    finals = [f"final ack: {text}" for text in _classes(told.final_acks)]
    admins = [f"admin queue: {text}" for text in _classes(told.admin_acks)]
    return {
        "sender": f"{part.sender}: {part.about}",
        "session ack": f"{answer}{told.session_acked} of {told.sent}",
        "order ack": f"{receipt}{told.order_acked} of {told.sent}" if transactional else "-",
        "what became of them": [*finals, *admins] or "-",
    }


def _classes(numbers: Sequence[int]) -> list[str]:
    return [f"{numbers.count(n):,} x {in_words(n)}" for n in dict.fromkeys(numbers)]


# -- as they come -----------------------------------------------------------------------------


def line(entry: AuditEntry) -> str:
    """One verdict, for a pipe; nothing in it can begin a line of its own."""
    place = f" -> {entry.topic}-{entry.partition}" if entry.topic else ""
    reason = f" ({entry.reason})" if entry.reason else ""
    message = f"{entry.label or entry.id} over {entry.transport} to {_queue(entry)}"
    return cell(f"{_time(entry.at)} {entry.verdict}{reason}: {message}{place}").plain


def picture(latest: Sequence[AuditEntry], counts: Mapping[str, int], head: str) -> Group:
    """The latest verdicts under one line that counts them all."""
    total = ", ".join(f"{n:,} {verdict}" for verdict, n in counts.items())
    rows = Table()
    for name, width in _COLUMNS:
        rows.add_column(name, overflow="ellipsis", no_wrap=True, max_width=width)
    for entry in latest:
        rows.add_row(
            _time(entry.at)[11:19],
            cell(entry.transport),
            cell(entry.label or entry.id),
            cell(_queue(entry)),
            Text(_words(entry), _STYLES.get(entry.verdict, "red")),
            cell(f"{entry.topic}-{entry.partition}" if entry.topic else "-"),
        )
    return Group(Text.assemble(("● ", "green"), cell(head), f"   {total}"), rows)
