"""When an order ack is due, per stream. MS-MQQB 3.1.2.7, 3.1.5.8.6; QB-85, QB-86"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.hosts import without_scope
from bridge.model.message import EXPRESS, INFINITE, Message
from bridge.model.verdict import Cursor
from bridge.protocol.timers import Deadlines
from bridge.wire.binary.acks import ORDER_ACK_LABEL, OrderAckBody
from bridge.wire.binary.base import BaseHeader
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.user import QueueRef, UserHeader

DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 10.0
ORDER_ACK_CLASS: Final = 0x00FF
ORDER_QUEUE_NUMBER: Final = 4
MOST_STREAMS: Final = 4096  # of one session, at about 700 bytes each
MOST_IN_ALL: Final = 131_072
_LONG: Final = 128  # characters of a name that are kept as they are

_Key = tuple[Guid, str | bytes]


class OrderStream:
    __slots__ = ("cursor", "direct", "due", "last_sent", "source")

    def __init__(self, message: Message, last_sent: float) -> None:
        self.source = message.source
        self.direct = message.destination.startswith("DIRECT=")
        self.last_sent = last_sent
        self.due: float | None = None
        self.cursor = Cursor()


class StreamRoom:
    """How many streams all sessions together remember."""

    def __init__(self, most: int = MOST_IN_ALL) -> None:
        self.most, self.used = most, 0

    @property
    def is_full(self) -> bool:
        return self.used >= self.most


class OrderAcks:
    """The streams of one session whose senders still wait to hear how far we are.

    Peers name the streams, so there is a bound. At the bound the stream that is quiet longest is
    forgotten; if none is quiet, the one that is due first is acknowledged at once.
    """

    def __init__(self, started: float, room: StreamRoom | None = None) -> None:
        self._started = started  # counts as the last send until there is one. MS-MQQB 3.1.3.2
        self._room = StreamRoom() if room is None else room
        self._streams: dict[_Key, OrderStream] = {}
        self._due = Deadlines[_Key]()
        self._quiet: OrderedDict[_Key, None] = OrderedDict()  # by their last ack

    def __len__(self) -> int:
        return len(self._streams)

    def schedule(self, message: Message, cursor: Cursor, now: float) -> OrderStream | None:
        """A transactional message of this stream has its verdict, good or bad.

        Returns a stream that is to be acknowledged at once, for lack of room."""
        key = _key(message)
        stream, early = self._streams.get(key), None
        if stream is None:
            stream, early = OrderStream(message, self._started), self._make_room()
            if self._room.is_full:
                stream.cursor = cursor
                return stream if cursor.number else None
            self._streams[key] = stream
            self._room.used += 1
        stream.cursor = cursor
        if stream.due is None or now - stream.last_sent < LONGEST_DELAY_S:
            stream.due = now + DELAY_S
            self._due.set(key, stream.due)
            self._quiet.pop(key, None)
        return early

    def due(self, now: float) -> Iterator[OrderStream]:
        """The streams to acknowledge now; those not taken stay due. An ack covers all before it."""
        self._forget(now)
        for key in self._due.due(now):
            stream = self._streams[key]
            stream.due, stream.last_sent = None, now
            self._quiet[key] = None
            if stream.cursor.number:  # QB-86: nothing was ever taken, nothing to say
                yield stream

    def next_wakeup(self) -> float | None:
        return self._due.next_wakeup()

    def close(self) -> None:
        self._room.used -= len(self._streams)
        self._streams.clear()
        self._quiet.clear()
        self._due = Deadlines()

    def _forget(self, now: float) -> None:
        """Long quiet: nothing left to remember."""
        while self._quiet:
            key = next(iter(self._quiet))
            if not now - self._streams[key].last_sent > LONGEST_DELAY_S:
                return
            self._remove(key)

    def _make_room(self) -> OrderStream | None:
        if len(self._streams) < MOST_STREAMS and not self._room.is_full:
            return None
        if self._quiet:
            self._remove(next(iter(self._quiet)))
            return None
        first = self._due.first()
        if first is None:
            return None
        stream = self._streams[first]
        self._due.stop(first)
        self._remove(first)
        return stream if stream.cursor.number else None

    def _remove(self, key: _Key) -> None:
        self._quiet.pop(key, None)
        del self._streams[key]
        self._room.used -= 1


def _key(message: Message) -> _Key:
    name = message.destination
    if len(name) <= _LONG:
        return message.source, name
    return message.source, blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def order_ack(
    stream: OrderStream, *, local: Guid, peer: str, ordinal: int, now: int
) -> UserMessage:
    """MS-MQQB 2.2.4"""
    cursor = stream.cursor
    body = OrderAckBody(
        sequence_id=cursor.sequence_id, number=cursor.number, previous_number=cursor.number - 1
    )
    return to_order_queue(
        source=stream.source,
        peer=peer if stream.direct else "",
        local=local,
        ordinal=ordinal,
        now=now,
        message_class=ORDER_ACK_CLASS,
        body=body.pack(),
    )


def to_order_queue(
    *,
    source: Guid,
    peer: str,
    local: Guid,
    ordinal: int,
    now: int,
    message_class: int,
    body: bytes,
    delivery: int = EXPRESS,
) -> UserMessage:
    """An ack to a sender's order queue: at its address `peer`, or by its GUID without one."""
    if peer:
        address = NULL_GUID
        queue = QueueRef(code=7, text=f"TCP:{without_scope(peer)}\\PRIVATE$\\order_queue$")
    else:
        address = source
        queue = QueueRef(code=3, number=ORDER_QUEUE_NUMBER)
    return UserMessage(
        base=BaseHeader(packet_size=0, priority=0, time_to_reach_queue=INFINITE),
        user=UserHeader(
            source=local,
            queue_manager=address,
            sent_time=now,
            message_id=ordinal,
            delivery=delivery,
            destination=queue,
        ),
        properties=PropertiesHeader(label=ORDER_ACK_LABEL, message_class=message_class, body=body),
    )
