"""Exactly once and in order: the cursor of every stream. MS-MQQB 3.1.5.8.6; DM-7 to DM-9

A stream is (source queue manager, destination name byte for byte): never the session, never the
peer (DM-8). Two spellings of one queue are two streams.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """The cursors of one shard. Changes are collected until a transaction takes them."""

    def __init__(self) -> None:
        self._cursors: dict[StreamKey, Cursor] = {}
        self._changed: set[StreamKey] = set()

    def __len__(self) -> int:
        return len(self._cursors)

    def get(self, key: StreamKey) -> Cursor:
        return self._cursors.get(key, _START)

    def advance(self, key: StreamKey, cursor: Cursor) -> None:
        self._cursors[key] = cursor
        self._changed.add(key)

    def items(self) -> Iterable[tuple[StreamKey, Cursor]]:
        return self._cursors.items()

    def take_changes(self) -> dict[str, bytes | None]:
        """The new cursors as entries of the state topic; only the last one of each stream."""
        changed, self._changed = self._changed, set()
        return {f"{PREFIX}{key[0]}/{key[1]}": _encode(self._cursors[key]) for key in changed}

    def restore(self, key: str, value: bytes) -> None:
        guid, _, destination = key.removeprefix(PREFIX).partition("/")
        self._cursors[Guid.parse(guid), destination] = _decode(value)
