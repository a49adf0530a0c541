"""Streams that were offered to us in the middle, and wait until an operator adopts them.

A transactional message is taken only behind the one that it follows (MS-MQQB 3.1.5.8.6). A sender
whose outgoing queue was not empty when this appliance took over offers a message with a previous
number that was never seen here, again and again. What it offers is remembered here, so that it can
be listed and adopted. Senders name the streams, so the memory is bounded, in bytes and by address:
at a bound the stream that was offered longest ago gives way. It comes back with the next offer.

Nothing of it is kept in Kafka: after a restart the senders offer their streams again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import msgspec

from bridge.core.streams import StreamKey
from bridge.model.cache import text_size
from bridge.model.guid import Guid
from bridge.model.hosts import neighbourhood
from bridge.model.message import Message, Transaction
from bridge.model.verdict import Cursor

MOST_BYTES: Final = 4 << 20  # of one shard
MOST_OF_PEER: Final = 256 << 10  # and of one address
ROW_BYTES: Final = 600  # what a stream takes beside the name of its destination
MOST_FRESH: Final = 100  # that are logged at a time


class Turn:
    """The messages of one session, which come in the order of their sender.

    `held_back`: one of them was left to its sender, so those behind it come before their turn."""

    __slots__ = ("held_back",)

    def __init__(self) -> None:
        self.held_back = False


class WaitingStream(msgspec.Struct):
    """`have` is where the stream stands here; the rest is the first message that was offered."""

    source: Guid
    destination: str
    have: Cursor
    sequence_id: int
    number: int
    previous: int
    since: int  # Unix seconds
    last: int
    peer: str
    turn: Turn | None = None

    @property
    def key(self) -> StreamKey:
        return self.source, self.destination

    @property
    def taken_up(self) -> Cursor:
        """Where the stream stands once it is adopted: the offered message is the next one."""
        return Cursor(self.sequence_id, self.previous)


class WaitingStreams:
    """Of one shard; the one that was offered longest ago first."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_of_peer: int = MOST_OF_PEER) -> None:
        self._most_bytes, self._most_of_peer = most_bytes, most_of_peer
        self._rows: OrderedDict[StreamKey, WaitingStream] = OrderedDict()
        self._of_peer: dict[str, OrderedDict[StreamKey, int]] = {}  # bytes
        self._peer_bytes: dict[str, int] = {}
        self.bytes = 0
        self.fresh: list[WaitingStream] = []  # not yet logged

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[WaitingStream]:
        return iter(self._rows.values())

    def get(self, key: StreamKey) -> WaitingStream | None:
        return self._rows.get(key)

    def note(self, message: Message, tx: Transaction, have: Cursor, turn: Turn | None) -> None:
        """It was offered, and something before it is missing."""
        key, now = (message.source, message.destination), message.arrived_ms // 1000
        known = self.pop(key)
        row = WaitingStream(
            source=message.source,
            destination=message.destination,
            have=have,
            sequence_id=tx.sequence_id,
            number=tx.number,
            previous=tx.previous,
            since=now if known is None else known.since,
            last=now,
            peer=message.peer,
            turn=turn,
        )
        if known is None:
            if len(self.fresh) < MOST_FRESH:
                self.fresh.append(row)
        elif turn is known.turn and _is_before(known, tx):
            # A session offers the oldest message first: what follows it says nothing new.
            row.sequence_id, row.number, row.previous = (
                known.sequence_id,
                known.number,
                known.previous,
            )
        self._keep(key, row)

    def pop(self, key: StreamKey) -> WaitingStream | None:
        row = self._rows.pop(key, None)
        if row is None:
            return None
        unit = neighbourhood(row.peer)
        of_peer = self._of_peer[unit]
        size = of_peer.pop(key)
        self.bytes -= size
        self._peer_bytes[unit] -= size
        if not of_peer:
            del self._of_peer[unit], self._peer_bytes[unit]
        return row

    def _keep(self, key: StreamKey, row: WaitingStream) -> None:
        unit = neighbourhood(row.peer)
        size = ROW_BYTES + text_size(row.destination)
        self._rows[key] = row
        self._of_peer.setdefault(unit, OrderedDict())[key] = size
        self._peer_bytes[unit] = self._peer_bytes.get(unit, 0) + size
        self.bytes += size
        while self._peer_bytes.get(unit, 0) > self._most_of_peer:
            self.pop(next(iter(self._of_peer[unit])))
        while self.bytes > self._most_bytes:
            self.pop(next(iter(self._rows)))


def _is_before(known: WaitingStream, tx: Transaction) -> bool:
    return (known.sequence_id, known.number) <= (tx.sequence_id, tx.number)
