"""Queues and their messages as `msmq-bridge queue` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from bridge.core.body import Decoded, decode
from bridge.core.message_data import MessageData, read_data
from bridge.core.trial import readable
from bridge.model.words import class_name

BODY: Final = 400  # characters of a body that is shown alone
EXCERPT: Final = 60  # of one in a row
_HEADER: Final = 80
_ENCRYPTED: Final = Decoded(formatter="bytes", why="encrypted")
_OWN_ROW: Final = ("body", "headers", "locked")

Row = dict[str, Any]


def queue_rows(queues: Iterable[Row]) -> list[Row]:
    """One row for each; of its journal and its subqueues only what is in them."""
    return [
        {
            "queue": queue.get("name"),
            "mode": queue.get("mode"),
            "kind": "transactional" if queue.get("transactional") else "plain",
            "topic": queue.get("topic") or "",
            "messages": queue.get("messages"),
            "bytes": queue.get("bytes"),
            "journal": _journal(queue),
            "subqueues": _counts(queue.get("subqueues")),
            "readers": queue.get("readers"),
            "quota_kb": queue.get("quota_kb"),
        }
        for queue in queues
    ]


def opening_rows(queues: Iterable[Row]) -> list[Row]:
    """Of another host: whether each opens, and its first message in a few words."""
    return [
        {
            "queue": queue["queue"],
            "opens": queue["opens"],
            "first message": _first(queue),
        }
        for queue in queues
    ]


def _first(queue: Row) -> str:
    first = queue["first"]
    if first is None:
        return queue["error"] or "(empty)"
    row = _excerpt(first)
    return ", ".join(str(row[name]) for name in ("message_id", "label", "arrived") if row[name])


def _journal(queue: Row) -> str:
    topic, count = queue.get("journal"), queue.get("journal_messages")
    return f"{topic} ({count})" if topic else ""


def _counts(subqueues: object) -> str:
    if not isinstance(subqueues, dict):
        return ""
    return ", ".join(f"{name} ({count})" for name, count in sorted(subqueues.items()))


def with_value(message: Row) -> Row:
    """For programs: what the body says beside its bytes, when it can be read."""
    decoded = _decoded(read_data(message))
    return message if decoded.why else message | {"value": decoded.value}


def message_rows(messages: Sequence[Row]) -> list[Row]:
    """For people: one row for each; a column that says nothing is left out."""
    rows = [_excerpt(message) for message in messages]
    dull = {name for name in ("class", "state") if not any(row[name] for row in rows)}
    return [{name: value for name, value in row.items() if name not in dull} for row in rows]


def _excerpt(message: Row) -> Row:
    data = read_data(message)
    return {
        "lookup_id": data.lookup_id,
        "message_id": data.message_id,
        "label": data.label,
        "class": class_name(data.message_class) if data.message_class else "",
        "arrived": data.arrived_time,
        "size": len(data.body),
        "state": "locked" if message.get("locked") else "",
        "body": cut(body_text(data), EXCERPT),
    }


def message_sheet(message: Row) -> Row:
    """For people: one message with all that it has, headers as rows of their own."""
    data = read_data(message)
    rows = {
        name: value
        for name, value in message.items()
        if name not in _OWN_ROW and value not in (None, "")
    }
    rows["class"] = class_name(data.message_class)
    rows |= {"locked": True} if message.get("locked") else {}
    rows |= {"size": len(data.body), "body": cut(body_text(data), BODY)}
    return rows | {f"  {name}": cut(text, _HEADER) for name, text in sorted(data.headers.items())}


def body_text(data: MessageData) -> str:
    """What it says by its type and formatter; else as text, or hex, as fits."""
    decoded = _decoded(data)
    return readable(data.body) if decoded.text is None else decoded.text


def _decoded(data: MessageData) -> Decoded:
    return _ENCRYPTED if "msmq.encrypted" in data.headers else decode(data.body, data.body_type)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
