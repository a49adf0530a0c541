"""Packets for readers, from what is kept of a message and of its place in a queue."""

from __future__ import annotations

from contextlib import suppress

from bridge.core.retained.naming import is_subqueue
from bridge.core.retained.rows import Row
from bridge.model.errors import WireError
from bridge.model.message import Message
from bridge.wire.binary.extension import Subqueue
from bridge.wire.binary.reply import bare_packet, reply_packet
from bridge.wire.pieces import Pieces
from bridge.wire.srmp.reader import soap_texts


def packet_of(message: Message, row: Row) -> Pieces:
    """For RemoteRead. MS-MQRR 2.2.5"""
    name = row.queue.partition(";")[2] if is_subqueue(row.queue) else ""
    subqueue = Subqueue(name=name, aborts=row.aborts, moves=row.moves, moved_at=row.moved_at)
    return reply_packet(message, subqueue, _soap(message))


def old_packet_of(message: Message) -> Pieces:
    """For qm2qm. MS-MQQP 2.2.2.1"""
    return bare_packet(message, _soap(message))


def _soap(message: Message) -> tuple[str, str] | None:
    if not message.soap or message.wire:  # a packet has its own
        return None
    with suppress(WireError):
        return soap_texts(message.soap.encode("utf-8", "surrogatepass"))
    return None
