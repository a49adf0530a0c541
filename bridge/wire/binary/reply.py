"""A stored message as the packet that a remote reader gets. MS-MQRR 2.2.5

What a sender wrote is repeated byte for byte, but for the few fields that mean something else
here: TimeToReachQueue is an absolute time, the address of the destination is that of the sender,
and a dead letter has the class of what it died of. The stored packet itself is never changed
(RR-34). A message that has none is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import Final

from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.message import INFINITE, RECOVERABLE, Message
from bridge.wire.binary.base import BaseHeader
from bridge.wire.binary.convert import packet_from_message
from bridge.wire.binary.extension import Extension, Subqueue, overlay
from bridge.wire.binary.packet import UserMessage, body_place
from bridge.wire.binary.soap import SoapHeader
from bridge.wire.binary.srmp import Compound, pack_envelope
from bridge.wire.binary.user import DIRECT
from bridge.wire.cursor import require
from bridge.wire.pieces import Pieces

PACKET_SIZE: Final = 8  # where they lie in a packet
TIME_TO_REACH: Final = 12
QUEUE_MANAGER: Final = slice(32, 48)
_SENT: Final = 52
USER_FLAGS: Final = 60
CAME_BY_HTTP: Final = 0x02000000  # UserHeader.Flags.AH
CLASS: Final = 2  # and these in a MessagePropertiesHeader
BODY_SIZE: Final = 32
ALLOCATION: Final = 36

_U16: Final = Struct("<H")
_U32: Final = Struct("<I")
_BASE: Final = BaseHeader.SIZE


def reply_packet(
    message: Message, subqueue: Subqueue, soap: tuple[str, str] | None = None
) -> Pieces:
    """For RemoteRead. `soap` are the SOAP header and body of a message that came by HTTP: they
    are told if its whole request was not kept."""
    bare = _srmp(message) if message.soap and message.soap_compound else _binary(message, soap)
    head = bytearray(bare.head)
    _U32.pack_into(head, TIME_TO_REACH, expiry(message))
    is_direct = destination_code(head) == DIRECT
    head[QUEUE_MANAGER] = overlay(message.peer) if is_direct else message.source
    chain = Extension(subqueue=subqueue, deadletter=message.deadletter_queue, peer=message.peer)
    return replace(bare, head=bytes(head), tail=bare.tail + chain.pack())


def bare_packet(message: Message, soap: tuple[str, str] | None = None) -> Pieces:
    """For qm2qm: the UserMessage alone, with a relative TimeToReachQueue. MS-MQDMPR 3.1.7.1.30"""
    return _binary(message, soap)


def as_reply(packet: bytes) -> bytes:
    """A packet of qm2qm as RemoteRead would have sent it: TimeToReachQueue is absolute, and no
    address lies over the queue manager of a direct destination. WireError if it is too short."""
    require("UserHeader", USER_FLAGS + 4, 0, len(packet), "MS-MQQP 2.2.2.1")
    head = bytearray(packet[: USER_FLAGS + 4])
    (relative,), (sent,) = _U32.unpack_from(head, TIME_TO_REACH), _U32.unpack_from(head, _SENT)
    absolute = INFINITE if relative == INFINITE else min(sent + relative, INFINITE)
    _U32.pack_into(head, TIME_TO_REACH, absolute)
    if destination_code(head) == DIRECT:
        head[QUEUE_MANAGER] = bytes(16)
    return bytes(head) + packet[USER_FLAGS + 4 :]


def expiry(message: Message) -> int:
    """Absolute, in Unix seconds; a time that does not fit is for ever."""
    if message.time_to_reach_queue == INFINITE:
        return INFINITE
    return min(message.sent_time + message.time_to_reach_queue, INFINITE)


def destination_code(packet: bytes | bytearray) -> int:
    """UserHeader.Flags.DQ"""
    return int(_U32.unpack_from(packet, USER_FLAGS)[0]) >> 10 & 7


def _binary(message: Message, soap: tuple[str, str] | None) -> Pieces:
    wire, properties, gap = _stored(message) or _written(message, soap)
    head = bytearray(wire[:gap])
    _U16.pack_into(head, properties + CLASS, message.message_class)
    pad = -(gap + len(message.body)) & 3
    return Pieces(
        head=bytes(head), part=message.body, pad=wire[gap : gap + pad], tail=wire[gap + pad :]
    )


def _stored(message: Message) -> tuple[bytes, int, int] | None:
    """The packet as it was received, if it was one and is whole."""
    if message.wire:
        with suppress(WireError):
            return message.wire, *body_place(message.wire, len(message.body))
    return None


def _written(message: Message, soap: tuple[str, str] | None) -> tuple[bytes, int, int]:
    """A packet of our own, without the body that it announces."""
    size = len(message.body)
    header = None if soap is None else SoapHeader(header=soap[0], body=soap[1])
    wire = bytearray(_pack(message, header))
    properties, gap = body_place(bytes(wire), 0)
    _U32.pack_into(wire, properties + BODY_SIZE, size)
    _U32.pack_into(wire, properties + ALLOCATION, size)
    before = -gap & 3  # the header was padded for no body
    after = -(gap + size) & 3
    wire[gap : gap + before] = bytes(after)
    _U32.pack_into(wire, PACKET_SIZE, len(wire) + size)
    return bytes(wire), properties, gap


def _pack(message: Message, soap: SoapHeader | None) -> bytes:
    for attempt in _plainer(message):
        with suppress(WireError, ValueError):
            return replace(packet_from_message(attempt), soap=soap).pack()
    packet = packet_from_message(attempt)
    return UserMessage(base=packet.base, user=packet.user, properties=packet.properties).pack()


def _plainer(message: Message) -> Iterator[Message]:
    """Names that have no place in a packet (of multicast groups, say) are left out."""
    delivery = message.delivery if message.transaction is None else RECOVERABLE
    message = replace(message, body=b"", delivery=delivery, hops=message.hops & 0x1F)
    yield message
    message = replace(message, response_queue="", admin_queue="")
    yield message
    yield replace(message, destination="")


def _srmp(message: Message) -> Pieces:
    """The body is in the request, so the MessagePropertiesHeader has none. MS-MQRR 2.2.5.1.2"""
    envelope = pack_envelope(message.soap)
    compound = Compound.of(message.soap_compound, message.body).pack()
    wire = bytearray(_pack(message, None))
    properties, _gap = body_place(bytes(wire), 0)
    _U16.pack_into(wire, properties + CLASS, message.message_class)
    (flags,) = _U32.unpack_from(wire, USER_FLAGS)
    _U32.pack_into(wire, USER_FLAGS, flags | CAME_BY_HTTP)
    pad = bytes(-len(compound) & 3)
    size = len(wire) + len(envelope) + len(compound) + len(pad)
    _U32.pack_into(wire, PACKET_SIZE, size)
    return Pieces(head=bytes(wire) + envelope, part=compound, pad=pad, is_srmp=True)
