"""When an order ack is due, per stream. MS-MQQB 3.1.2.7, 3.1.5.8.6; QB-85, QB-86"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import EXPRESS, INFINITE, Message
from bridge.model.verdict import Cursor
from bridge.wire.binary.acks import ORDER_ACK_LABEL, OrderAckBody
from bridge.wire.binary.base import BaseHeader
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.user import QueueRef, UserHeader

DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 10.0
ORDER_ACK_CLASS: Final = 0x00FF
ORDER_QUEUE_NUMBER: Final = 4


class _Stream:
    __slots__ = ("cursor", "direct", "due", "last_sent", "source")

    def __init__(self, message: Message, last_sent: float) -> None:
        self.source = message.source
        self.direct = message.destination.startswith("DIRECT=")
        self.last_sent = last_sent
        self.due: float | None = None
        self.cursor = Cursor()


class OrderAcks:
    """The streams of one session whose senders still wait to hear how far we are."""

    def __init__(self, started: float) -> None:
        self._started = started  # counts as the last send until there is one. MS-MQQB 3.1.3.2
        self._streams: dict[tuple[Guid, str], _Stream] = {}

    def schedule(self, message: Message, cursor: Cursor, now: float) -> None:
        """A transactional message of this stream has its verdict, good or bad."""
        key = message.source, message.destination
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(message, self._started)
        stream.cursor = cursor
        if stream.due is None or now - stream.last_sent < LONGEST_DELAY_S:
            stream.due = now + DELAY_S

    def due(self, now: float) -> Iterator[_Stream]:
        """The streams to acknowledge now. One ack covers all before it."""
        for key, stream in list(self._streams.items()):
            if stream.due is None:
                if now - stream.last_sent > LONGEST_DELAY_S:
                    del self._streams[key]  # long quiet: nothing left to remember
            elif stream.due <= now:
                stream.due, stream.last_sent = None, now
                if stream.cursor.number:  # QB-86: nothing was ever taken, nothing to say
                    yield stream

    def next_wakeup(self) -> float | None:
        return min((s.due for s in self._streams.values() if s.due is not None), default=None)


def order_ack(stream: _Stream, *, local: Guid, peer: str, ordinal: int, now: int) -> UserMessage:
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
        queue = QueueRef(code=7, text=f"TCP:{peer}\\PRIVATE$\\order_queue$")
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
