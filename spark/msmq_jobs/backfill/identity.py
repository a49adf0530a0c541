"""Which message a record is of, whoever wrote it; the writer's counterpart of `in_topics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from confluent_kafka import Message

from msmq_jobs.backfill.prepare import MARK, Mark

Key = tuple[str, str]  # message id and queue, in lower case
_decode_mark = msgspec.json.Decoder(Mark).decode


def identity_of(
    message: Message, id_names: Iterable[str], queue_names: Iterable[str], home: str = ""
) -> tuple[Key, str] | None:
    """The message that a record is of, and the run that wrote it; None: of none that we know.
    `home` is the queue of a topic that has one, whose records do not tell it."""
    headers: dict[str, Any] = dict(message.headers() or ())
    mark = _mark(headers.get(MARK))
    id_ = _first(headers, id_names) or mark.id
    queue = home or _first(headers, queue_names) or mark.queue
    return ((id_.lower(), queue.lower()), mark.run) if id_ and queue else None


def _mark(data: bytes | None) -> Mark:
    try:
        return _decode_mark(data or b"")
    except msgspec.DecodeError:  # there is none, or somebody else has written it
        return Mark("", "")


def _first(headers: Mapping[str, bytes | None], names: Iterable[str]) -> str:
    found = (headers.get(name) for name in names)
    return next((value.decode("utf-8", "replace") for value in found if value), "")
