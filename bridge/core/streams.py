"""Exactly once and in order: the cursor of every stream. MS-MQQB 3.1.5.8.6; DM-7 to DM-9

A stream is (source queue manager, destination name byte for byte): never the session, never the
peer (DM-8). Two spellings of one queue are two streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

import msgspec

from bridge.model.guid import Guid
from bridge.model.message import Transaction
from bridge.model.verdict import Cursor

StreamKey = tuple[Guid, str]

PREFIX: Final = "stream/"
_START: Final = Cursor()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Cursor).decode


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


class Streams:
    """The cursors of one shard. Changes are collected until a transaction takes them.

    What Kafka has of them is read when a message of the stream comes: a start over a hundred
    thousand streams, most of them asleep, should not take long.
    """

    def __init__(self) -> None:
        self._cursors: dict[StreamKey, Cursor] = {}
        self._asleep: dict[str, bytes] = {}  # entries of the state topic, not looked at
        self._changed: set[StreamKey] = set()

    def __len__(self) -> int:
        return len(self._cursors) + len(self._asleep)

    def get(self, key: StreamKey) -> Cursor:
        return self._cursors.get(key) or self._wake(key)

    def _wake(self, key: StreamKey) -> Cursor:
        value = self._asleep.pop(_entry_key(key), None)
        if value is None:
            return _START
        cursor = self._cursors[key] = _decode(value)
        return cursor

    def advance(self, key: StreamKey, cursor: Cursor) -> None:
        self._cursors[key] = cursor
        self._changed.add(key)

    def __iter__(self) -> Iterator[StreamKey]:
        yield from self._cursors
        yield from map(_stream_key, self._asleep)

    def items(self) -> Iterator[tuple[StreamKey, Cursor]]:
        yield from self._cursors.items()
        for text, value in self._asleep.items():
            yield _stream_key(text), _decode(value)

    def take_changes(self) -> dict[str, bytes | None]:
        """The new cursors as entries of the state topic; only the last one of each stream."""
        changed, self._changed = self._changed, set()
        return {_entry_key(key): _encode(self._cursors[key]) for key in changed}

    def restore(self, key: str, value: bytes) -> None:
        self._asleep[key] = value


def _entry_key(key: StreamKey) -> str:
    return f"{PREFIX}{key[0]}/{key[1]}"


def _stream_key(entry_key: str) -> StreamKey:
    guid, _, destination = entry_key.removeprefix(PREFIX).partition("/")
    return Guid.parse(guid), destination
