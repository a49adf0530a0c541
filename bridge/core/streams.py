"""Exactly once and in order: the cursor of every stream. MS-MQQB 3.1.5.8.6; DM-7 to DM-9

A stream is (source queue manager, destination name byte for byte): never the session, never the
peer (DM-8). Two spellings of one queue are two streams. Over HTTP the source is the one that the
stream's id names, and the destination is `<to>` as it was sent, whatever it is redirected to.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Generic, TypeVar

import msgspec

from bridge.model.guid import Guid
from bridge.model.message import Message, Transaction
from bridge.model.verdict import Cursor

StreamKey = tuple[Guid, str]

PREFIX: Final = "stream/"
_encode = msgspec.json.Encoder().encode
C = TypeVar("C", bound=msgspec.Struct)


class Place(Enum):
    """Where a transactional message stands against the cursor of its stream."""

    NEXT = auto()
    BEHIND = auto()  # taken before: a duplicate
    AHEAD = auto()  # something before it is missing


def place(cursor: Cursor, tx: Transaction) -> Place:
    """QB-81. Gaps are legal: expiry at the sender removes numbers and bridges `previous`."""
    if tx.sequence_id == cursor.sequence_id:
        if tx.number <= cursor.number:
            return Place.BEHIND
        return Place.NEXT if tx.previous <= cursor.number else Place.AHEAD
    if tx.sequence_id < cursor.sequence_id:
        return Place.BEHIND
    return Place.NEXT if tx.previous == 0 else Place.AHEAD


def stream_key(message: Message) -> StreamKey:
    tx = message.transaction
    if tx is None or tx.stream is None:
        return message.source, message.destination
    return tx.stream


class Table(Generic[C]):
    """A row for every stream of one shard. Changes are collected until a transaction takes them.

    What Kafka has of them is read when a message of the stream comes: a start over a hundred
    thousand streams, most of them asleep, should not take long.
    """

    def __init__(self, prefix: str, start: C) -> None:
        self._prefix, self._start = prefix, start
        self._decode = msgspec.json.Decoder(type(start)).decode
        self._rows: dict[StreamKey, C] = {}
        self._asleep: dict[str, bytes] = {}  # entries of the state topic, not looked at
        self._changed: set[StreamKey] = set()
        self._dropped: set[StreamKey] = set()

    def __len__(self) -> int:
        return len(self._rows) + len(self._asleep)

    def get(self, key: StreamKey) -> C:
        return self._rows.get(key) or self._wake(key)

    def _wake(self, key: StreamKey) -> C:
        value = self._asleep.pop(self._entry_key(key), None)
        if value is None:
            return self._start
        row = self._rows[key] = self._decode(value)
        return row

    def advance(self, key: StreamKey, row: C) -> None:
        self._rows[key] = row
        self._changed.add(key)

    def drop(self, key: StreamKey) -> None:
        """Forget the stream, here and in Kafka."""
        self._rows.pop(key, None)
        self._asleep.pop(self._entry_key(key), None)
        self._changed.discard(key)
        self._dropped.add(key)

    def __iter__(self) -> Iterator[StreamKey]:
        yield from self._rows
        yield from map(self._stream_key, self._asleep)

    def items(self) -> Iterator[tuple[StreamKey, C]]:
        yield from self._rows.items()
        for text, value in self._asleep.items():
            yield self._stream_key(text), self._decode(value)

    def snapshot(self) -> Table[C]:
        """The rows as they are now, for somebody who looks at them in a thread of his own."""
        copy = Table(self._prefix, self._start)
        copy._rows, copy._asleep = dict(self._rows), dict(self._asleep)
        return copy

    def take_changes(self) -> dict[str, bytes | None]:
        """The new rows as entries of the state topic; only the last one of each stream."""
        changed, self._changed = self._changed, set()
        entries: dict[str, bytes | None] = {
            self._entry_key(key): _encode(self._rows[key]) for key in changed
        }
        if self._dropped:
            entries |= {self._entry_key(key): None for key in self._dropped - changed}
            self._dropped = set()
        return entries

    def restore(self, key: str, value: bytes) -> None:
        self._asleep[key] = value

    def _entry_key(self, key: StreamKey) -> str:
        return f"{self._prefix}{key[0]}/{key[1]}"

    def _stream_key(self, entry_key: str) -> StreamKey:
        guid, _, destination = entry_key.removeprefix(self._prefix).partition("/")
        return Guid.parse(guid), destination


class Streams(Table[Cursor]):
    """The cursors of binary senders."""

    def __init__(self) -> None:
        super().__init__(PREFIX, Cursor())
