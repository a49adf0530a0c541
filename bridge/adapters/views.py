"""The long lists that the web page shows: sessions, streams, waiting acks, queues, mappings.

Whoever watches must not slow down who sends: a page of a list costs its own rows; a list that is
searched or sorted is copied in one step and looked through in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

from msgspec.structs import asdict

from bridge.adapters import overview
from bridge.adapters.intake import ShardPump
from bridge.adapters.net.connection import Connection
from bridge.adapters.paging import Columns, Page, Question, Row, page_of
from bridge.adapters.queue_desk import QueueInfo
from bridge.core.mapping_rules import QueueMapping
from bridge.core.posted import Posted
from bridge.core.streams import StreamKey
from bridge.model.verdict import Cursor

MAX_NAME: Final = 500
Stream = tuple[StreamKey, Cursor | Posted]


class Views:
    """`pumps` and `connections` are asked each time: both come with the start."""

    def __init__(
        self,
        pumps: Callable[[], Sequence[ShardPump]],
        connections: Callable[[], Iterable[Connection]],
    ) -> None:
        self._pumps, self._connections = pumps, connections
        self._looking = asyncio.Lock()  # one long look at a time

    async def sessions(self, question: Question) -> Page:
        rows = list(self._connections())
        rows.sort(key=_came)
        return page_of(rows, question, _SESSIONS)

    async def streams(self, question: Question) -> Page:
        if question.is_plain:
            return self._as_they_stand(question)
        async with self._looking:
            tables = [
                table.snapshot()
                for pump in self._pumps()
                for table in (pump.shard.streams, pump.shard.posted)
            ]
            items = chain.from_iterable(table.items() for table in tables)
            return await asyncio.to_thread(lambda: page_of(list(items), question, _STREAMS))

    def _as_they_stand(self, question: Question) -> Page:
        total = sum(len(p.shard.streams) + len(p.shard.posted) for p in self._pumps())
        start = question.offset
        rows = [_stream(item) for item in islice(self._streams(), start, start + question.limit)]
        return Page(rows=rows, offset=start, found=total, total=total)

    def _streams(self) -> Iterator[Stream]:
        for pump in self._pumps():
            yield from pump.shard.streams.items()
            yield from pump.shard.posted.items()

    async def acks(self, question: Question) -> Page:
        return page_of(overview.acks(self._pumps()), question, _ACKS)


# -- sessions ---------------------------------------------------------------------------------


def _came(connection: Connection) -> tuple[str, int]:
    host, _, port = connection.name.rpartition(":")
    return host, int(port)


def _session(connection: Connection) -> Row:
    session = connection.session
    received = session.received
    return {
        "peer": connection.name,
        "queue_manager": str(session.remote),
        "state": session.state.name,
        "direction": "in" if connection.dialed is None else "out",
        "received": received.received,
        "decided": received.decided,
        "waiting": received.received - received.decided,
    }


_SESSIONS: Final = Columns(
    lambda c: f"{c.name} {c.session.remote} {c.session.state.name}",
    {
        "peer": _came,
        "queue_manager": lambda c: str(c.session.remote),
        "state": lambda c: c.session.state.name,
        "direction": lambda c: c.dialed is None,
        "received": lambda c: c.session.received.received,
        "decided": lambda c: c.session.received.decided,
        "waiting": lambda c: c.session.received.received - c.session.received.decided,
    },
    _session,
)


# -- streams ----------------------------------------------------------------------------------


def _stream(item: Stream) -> Row:
    (source, destination), state = item
    row: Row = {"source": str(source), "destination": _cut(destination)}
    if isinstance(state, Cursor):
        return row | {
            "transport": "binary",
            "sequence_id": str(state.sequence_id),  # 64 bits: more than a number of JavaScript has
            "number": state.number,
        }
    return row | {
        "transport": "http",
        "sequence_id": str(state.id),
        "number": state.number,
        "receipted": state.receipted,
        "rejects": state.rejects,
        "last_access": state.at,
        "receipts_to": _cut(state.receipts_to),
    }


def _cut(name: str) -> str:
    """Senders choose it: a page of very long ones must stay a page."""
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"


def _sequence_id(item: Stream) -> int:
    state = item[1]
    return state.sequence_id if isinstance(state, Cursor) else state.id


_STREAMS: Final = Columns(
    lambda item: f"{item[0][0]} {item[0][1]}",
    {
        "source": lambda item: item[0][0],
        "destination": lambda item: item[0][1].lower(),
        "transport": lambda item: isinstance(item[1], Posted),
        "sequence_id": _sequence_id,
        "number": lambda item: item[1].number,
    },
    _stream,
)


# -- the rest: short lists of rows ------------------------------------------------------------


def _by_name(name: str) -> Callable[[Any], Any]:
    def key(row: Row) -> Any:
        value = row[name]
        return value.lower() if isinstance(value, str) else value

    return key


def _columns(*names: str) -> Columns:
    """Of rows that are made already."""
    return Columns(
        lambda row: " ".join(str(value) for value in row.values() if value is not None),
        {name: _by_name(name) for name in names},
        lambda row: row,
    )


_ACKS: Final = _columns("peer", "waiting")
_QUEUES: Final = _columns(
    "name",
    "mode",
    "topic",
    "transactional",
    "messages",
    "bytes",
    "journal_messages",
    "readers",
    "records",
    "per_second",
)
_NO_TOPIC: Final[Row] = {"records": None, "per_second": None}
_NO_RECORDS: Final[Row] = {"records": 0, "per_second": 0.0}
_MAPPINGS: Final = _columns("queue", "topic", "mode", "transactional", "journal")


def queue_page(queues: Iterable[QueueInfo], topics: Iterable[Row], question: Question) -> Page:
    """`topics`: what each got since the start, and per second; a system queue has none."""
    counted = {row["topic"]: row for row in topics}

    def row(queue: QueueInfo) -> Row:
        found = counted.get(queue.topic, _NO_RECORDS if queue.topic else _NO_TOPIC)
        return asdict(queue) | {name: found[name] for name in _NO_TOPIC}

    return page_of([row(queue) for queue in queues], question, _QUEUES)


def mapping_page(mappings: Iterable[QueueMapping], question: Question) -> Page:
    return page_of([_mapping(mapping) for mapping in mappings], question, _MAPPINGS)


def _mapping(mapping: QueueMapping) -> Row:
    return {
        "queue": str(mapping.queue),
        "topic": mapping.topic_name or mapping.template,
        "mode": mapping.mode,
        "transactional": mapping.transactional,
        "key": str(mapping.key),
        "order": mapping.order,
        "value": mapping.value,
        "timestamp": mapping.timestamp,
        "journal": mapping.journal,
        "oversize": mapping.oversize,
        "quota_kb": mapping.quota_kb,
        "is_dynamic": mapping.is_dynamic,
    }
