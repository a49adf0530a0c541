"""Between the shards and the retained queues: how a message is kept, and how its record tells.

A message for a retained queue becomes a record like any other, with marks: the queue that holds
it, its lookup identifier, and what later acks need. So a shelf can be built from records alone.
Copies in journals and dead-letter queues carry the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from bridge.core.admission import size_on_wire
from bridge.core.mapping import message_from_record
from bridge.core.ports import Record
from bridge.core.posted import Posted
from bridge.core.retained.flights import Ids
from bridge.core.retained.letterhead import Letterhead, read_letterhead
from bridge.core.retained.place import lookup_id
from bridge.core.retained.quotas import Quotas, Shortage
from bridge.core.retained.rows import RecordAt, Row, row_of, wants_of
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.wire.cursor import well_formed

HELD: Final = "msmq.held"  # queue manager and queue
LOOKUP: Final = "msmq.lookup"
LETTERHEAD: Final = "msmq.letterhead"
OUTCOME: Final = "msmq.outcome"  # what a dead letter died of
MARKS: Final = frozenset((HELD, LOOKUP, LETTERHEAD))


class Keeper:
    """What shards ask of the retained queues. `local` is set once the identity is known."""

    def __init__(self, quotas: Quotas, ids: Ids, local: Guid) -> None:
        self._quotas, self._ids, self.local = quotas, ids, local
        self._reserved: dict[int, tuple[str, int]] = {}  # by lookup id: not on the shelf yet

    def shortage(self, queue: str, message: Message) -> Shortage | None:
        """Whether there is no room for it."""
        return self._quotas.shortage(queue.lower(), size_on_wire(message))

    def held(self, queue: str) -> int:
        """Bytes that lie in a queue, or are on their way to it."""
        return self._quotas.held(queue)

    def keep(
        self, record: Record, message: Message, queue: str, via: Guid, stream: Posted | None
    ) -> tuple[Record, int]:
        """The record with its marks, and its lookup id; room is reserved until it `arrived`."""
        name = queue.lower()
        place = lookup_id(
            message.priority, self._ids(), transactional=message.transaction is not None
        )
        size = size_on_wire(message)
        self._quotas.reserve(name, size)
        self._reserved[place] = name, size
        letterhead = Letterhead(message, via, stream).encode() if wants_of(message) else b""
        return marked(record, self.local, name, place, letterhead), place

    def copy(self, record: Record, message: Message, queue: str) -> tuple[Record, int] | None:
        """For a journal or a dead-letter queue: the marked record and its lookup id; it owes no
        ack. Room is reserved until it `arrived`. None: there is no room for it."""
        size = size_on_wire(message)
        if not self._quotas.reserve_copy(queue, size):
            return None
        place = lookup_id(
            message.priority, self._ids(), transactional=message.transaction is not None
        )
        self._reserved[place] = queue, size
        return marked(record, self.local, queue, place), place

    def arrived(self, rows: Iterable[Row]) -> None:
        """They are on the shelf."""
        self.forget(row.lookup_id for row in rows)

    def forget(self, places: Iterable[int]) -> None:
        """They will never be on it, or are on it already."""
        for place in places:
            if (reserved := self._reserved.pop(place, None)) is not None:
                self._quotas.release(*reserved)


def places_of(records: Iterable[Record]) -> Iterator[int]:
    """Lookup ids of those that are marked."""
    for record in records:
        if place := record.headers.get(LOOKUP):
            yield int(place)


def marked(record: Record, local: Guid, queue: str, place: int, letterhead: bytes = b"") -> Record:
    held = f"{local}/{queue}".encode("utf-8", "surrogatepass")
    headers = record.headers | {HELD: held, LOOKUP: b"%d" % place}
    if letterhead:
        headers[LETTERHEAD] = letterhead
    return msgspec.structs.replace(record, headers=headers)


def held_in(headers: Mapping[str, bytes], local: Guid) -> str | None:
    """The queue of ours that the record is in; None: it is just a record."""
    who, _, name = headers.get(HELD, b"").partition(b"/")
    if not name or who != str(local).encode() or LOOKUP not in headers:
        return None
    return well_formed(name.decode("utf-8", "surrogatepass"))


def message_in(record: Record) -> Message:
    """As it was sent, with its lookup id. The class of a dead letter is that of its failure
    (data-model.md 2.14)."""
    message = message_from_record(record)
    if outcome := record.headers.get(OUTCOME):
        message = msgspec.structs.replace(message, message_class=int(outcome))
    return message


def row_in(record: Record, at: RecordAt, local: Guid, clock_skew_s: int = 0) -> Row | None:
    """The row of a record that lies in one of our queues; None: it lies in none."""
    queue = held_in(record.headers, local)
    if queue is None:
        return None
    message, letterhead = message_in(record), record.headers.get(LETTERHEAD, b"")
    if letterhead:  # what was asked for over HTTP is no property
        srmp = read_letterhead(letterhead, message.arrived_ms).message.srmp
        message = msgspec.structs.replace(message, srmp=srmp)
    row = row_of(
        message,
        queue=queue,
        sequential_id=message.lookup_id,
        at=at,
        letterhead=letterhead,
        clock_skew_s=clock_skew_s,
    )
    return msgspec.structs.replace(row, lookup_id=message.lookup_id)
