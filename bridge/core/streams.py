"""Exactly once and in order: the cursor of every stream. MS-MQQB 3.1.5.8.6

A stream is (source queue manager, destination name byte for byte): never the session, never the
peer. Two spellings of one queue are two streams. Over HTTP the source is the one that the
stream's id names, and the destination is `<to>` as it was sent, whatever it is redirected to.

The room for streams is counted by the peer that began them. A cursor is never forgotten to make
room, because what was taken could then be taken again. So at a bound a new stream is not taken, and
its sender keeps its messages: at the bound of one peer, and in a full table for peers that have
more than an equal share.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from bridge.core.shares import Shares
from bridge.model.cache import text_size
from bridge.model.guid import Guid
from bridge.model.message import Message, Transaction
from bridge.model.verdict import Cursor

StreamKey = tuple[Guid, str]

PREFIX: Final = "stream/"
MOST_BYTES: Final = 256 << 20  # of one table; twice as much, where peers have less than their share
MOST_OF_PEER: Final = 16 << 20
ROW_BYTES: Final = 300  # what a stream takes beside the name of its destination
SMALL_GROWTH: Final = 64  # bytes that a known row may grow by: numbers get longer
_encode = msgspec.json.Encoder().encode


class Row(Protocol):
    """What is kept of a stream."""

    @property
    def peer(self) -> str:
        """The address that it is counted for."""


C = TypeVar("C", bound=Row)


class _Peer(msgspec.Struct):
    """The only part of an entry that a start looks at."""

    peer: str = ""


_peer_of = msgspec.json.Decoder(_Peer).decode


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
        self._shares = Shares(MOST_BYTES, MOST_OF_PEER)

    @property
    def size(self) -> int:
        """Bytes that are kept, about."""
        return self._shares.total

    def __len__(self) -> int:
        return len(self._rows) + len(self._asleep)

    def __contains__(self, key: StreamKey) -> bool:
        return key in self._rows or self._entry_key(key) in self._asleep

    def get(self, key: StreamKey) -> C:
        return self._rows.get(key) or self._wake(key)

    def _wake(self, key: StreamKey) -> C:
        value = self._asleep.pop(self._entry_key(key), None)
        if value is None:
            return self._start
        row = self._rows[key] = self._decode(value)
        return row

    def has_room(self, key: StreamKey, peer: str, row: C | None = None) -> bool:
        """Whether the stream may be kept: it is known, or `peer` may begin it. `row`: what is to be
        kept of it, where rows differ in size; one that grows needs room, too."""
        if row is None:
            return key in self or self._shares.has_room(peer, _size(key[1]))
        more = self._weight(key, row)
        if key in self:
            more -= self._weight(key, self.get(key))
        return more <= SMALL_GROWTH or self._shares.has_room(peer, more)

    def _weight(self, key: StreamKey, _row: C) -> int:
        """Bytes of a row. What `restore` counts for it is the same."""
        return _size(key[1])

    def _weight_of_entry(self, _value: bytes) -> int:
        """What `_weight` adds to the size of the key."""
        return 0

    def _set(self, key: StreamKey, row: C) -> None:
        known = self.get(key)
        if known is self._start and key not in self._rows:
            self._shares.count(row.peer, self._weight(key, row))
        else:
            self._recount(key, known, row)
        self._rows[key] = row
        self._changed.add(key)

    def _recount(self, key: StreamKey, known: C, row: C) -> None:
        before, after = self._weight(key, known), self._weight(key, row)
        if known.peer != row.peer:
            self._shares.count(known.peer, -before)
            before = 0
        if before != after:
            self._shares.count(row.peer, after - before)

    def drop(self, key: StreamKey) -> None:
        """Forget the stream, here and in Kafka."""
        if key in self:
            row = self.get(key)
            self._shares.count(row.peer, -self._weight(key, row))
        self._rows.pop(key, None)
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
        name = key[len(self._prefix) + _GUID :]
        self._shares.count(_peer_of(value).peer, _size(name) + self._weight_of_entry(value))

    def _entry_key(self, key: StreamKey) -> str:
        return f"{self._prefix}{key[0]}/{key[1]}"

    def _stream_key(self, entry_key: str) -> StreamKey:
        guid, _, destination = entry_key.removeprefix(self._prefix).partition("/")
        return Guid.parse(guid), destination


_GUID: Final = 37  # characters of a GUID and the slash behind it


def _size(destination: str) -> int:
    return ROW_BYTES + (len(destination) if destination.isascii() else text_size(destination))


class Stream(Cursor, frozen=True, gc=False, omit_defaults=True):
    """A cursor as it is kept."""

    peer: str = ""  # that began it


class Streams(Table[Stream]):
    """The cursors of binary senders."""

    def __init__(self) -> None:
        super().__init__(PREFIX, Stream())

    def advance(self, key: StreamKey, cursor: Cursor, peer: str = "") -> None:
        known = self._rows.get(key)
        if known is not None:
            peer = known.peer
        self._set(key, Stream(cursor.sequence_id, cursor.number, peer))
