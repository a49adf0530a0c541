"""The packet that a remote reader got, as a message again. RR-52, RR-53

The inverse of `reply`, but for packets of any server: with extension headers or without (Windows
Server 2003), whole or cut short. A packet that was cut comes in two sections: the first ends within
the body, the second has the headers behind it.
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from bridge.model.errors import WireError
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import INFINITE, Message
from bridge.wire.binary.base import DEBUG, MAX_PACKET, SESSION, BaseHeader
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.debug import DebugHeader
from bridge.wire.binary.extension import Extension, is_extension, overlaid
from bridge.wire.binary.multiqueue import MultiQueueHeader
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.properties import PropertiesHeader
from bridge.wire.binary.reply import (
    ALLOCATION,
    BODY_SIZE,
    CAME_BY_HTTP,
    PACKET_SIZE,
    QUEUE_MANAGER,
    TIME_TO_REACH,
    USER_FLAGS,
)
from bridge.wire.binary.security import SecurityHeader
from bridge.wire.binary.session import SessionHeader
from bridge.wire.binary.soap import SoapHeader
from bridge.wire.binary.srmp import Compound, compound_size, unpack_envelope
from bridge.wire.binary.transaction import TransactionHeader
from bridge.wire.binary.user import DIRECT, MULTI_QUEUE, SECURITY, SOAP, TRANSACTION, UserHeader
from bridge.wire.cursor import require

_U32: Final = Struct("<I")
_SECTION: Final = "MS-MQRR 2.2.5"


class Replied(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """`size` is the true length of what may have been cut: of the body, or of the HTTP request (0
    if not even its header came)."""

    message: Message
    size: int
    is_cut: bool
    extension: Extension | None  # None: the server sends none


class _Front(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The headers up to the body, and where what follows it starts."""

    base: BaseHeader
    user: UserHeader
    present: int
    is_srmp: bool
    address: bytes  # what lies over the destination's queue manager
    headers: dict[str, Any]
    body_at: int
    size: int
    unused: int  # bytes behind the body that are allocated for it. MS-MQMQ 2.2.19.3
    after: int


class _Back(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    headers: dict[str, Any]
    end: int  # of the UserMessage, without a SessionHeader
    extension: Extension | None


def read_reply(
    first: bytes,
    second: bytes | None = None,
    *,
    is_cut: bool = False,
    manager: Guid = NULL_GUID,
    arrived_ms: int = 0,
) -> Replied:
    """`manager` is the queue manager that was asked: the packet itself does not name it."""
    data = first if not is_cut else first + bytes(3)  # a body that is cut is not padded
    front, data = _front(data, len(first), is_cut=is_cut)
    srmp: dict[str, Any] = {}
    size, offset = front.size, front.after
    if front.is_srmp:
        offset = _debug(data, front, offset, len(first))
        srmp, size, offset = _http(data, offset, len(first), is_cut=is_cut)
    if is_cut:
        back = _back_of_second(second or b"", front)
        wire = b""
    else:
        back = _back(data, offset, front)
        wire = b"" if front.is_srmp else _wire(data, front, back.end, manager)
    packet = UserMessage(
        base=_relative(front), user=_addressed(front, manager), **(front.headers | back.headers)
    )
    extension = back.extension or Extension()
    peer = extension.peer or (_peer(front) if front.user.destination.code == DIRECT else "")
    message = replace(
        message_from_packet(packet, peer, arrived_ms),
        wire=wire,
        deadletter_queue=extension.deadletter,
        **srmp,
    )
    return Replied(message=message, size=size, is_cut=is_cut, extension=back.extension)


# -- up to the body -------------------------------------------------------------------------


def _front(data: bytes, end: int, *, is_cut: bool) -> tuple[_Front, bytes]:
    """The bytes come back as they can be parsed: without AH, with the body that is there."""
    require("UserHeader", USER_FLAGS + 4, 0, end, _SECTION)
    (flags,) = _U32.unpack_from(data, USER_FLAGS)
    is_srmp = bool(flags & CAME_BY_HTTP)
    address = data[QUEUE_MANAGER]
    if is_srmp:
        data = _put(data, USER_FLAGS, flags & ~CAME_BY_HTTP)
    base = _base(data)
    user, present, offset = UserHeader.unpack_from(data, BaseHeader.SIZE, end)
    headers: dict[str, Any] = {}
    if present & TRANSACTION:
        headers["transaction"], offset = TransactionHeader.unpack_from(data, offset, end)
    if present & SECURITY:
        headers["security"], offset = SecurityHeader.unpack_from(data, offset, end)
    body_at, size = PropertiesHeader.body_gap(data, offset, end)
    (allocated,) = _U32.unpack_from(data, offset + ALLOCATION)
    if is_cut and not is_srmp:
        data = _put(data, offset + BODY_SIZE, min(size, end - body_at))
        end = len(data)
    headers["properties"], body_at, after = PropertiesHeader.unpack_from(data, offset, end)
    front = _Front(
        base=base,
        user=user,
        present=present,
        is_srmp=is_srmp,
        address=address,
        headers=headers,
        body_at=body_at,
        size=size,
        unused=max(allocated - size, 0),
        after=after,
    )
    return front, data


def _base(data: bytes) -> BaseHeader:
    """PacketSize may count the extension headers or not: what is there counts."""
    size = min(max(len(data), BaseHeader.SIZE), MAX_PACKET)
    return BaseHeader.unpack(_put(data[: BaseHeader.SIZE], PACKET_SIZE, size))


def _put(data: bytes, offset: int, number: int) -> bytes:
    return b"".join((data[:offset], _U32.pack(number), data[offset + 4 :]))


def _debug(data: bytes, front: _Front, offset: int, end: int) -> int:
    if front.base.flags & DEBUG:
        front.headers["debug"], offset = DebugHeader.unpack_from(data, offset, end)
    return offset


def _http(data: bytes, offset: int, end: int, *, is_cut: bool) -> tuple[dict[str, Any], int, int]:
    envelope, offset = unpack_envelope(data, offset, end)
    fields: dict[str, Any] = {"transport": "http", "soap": envelope}
    if is_cut:
        return fields, compound_size(data, offset, end), end
    compound, offset = Compound.unpack_from(data, offset, end)
    fields["soap_compound"] = compound.data
    if compound.body_size:
        fields["body"] = compound.body
    return fields, len(compound.data), offset


# -- behind the body ------------------------------------------------------------------------


def _back_of_second(data: bytes, front: _Front) -> _Back:
    """It starts with a header, or with what belongs to no section: the unused bytes of the body's
    allocation, and the padding."""
    places = [*range(front.unused, front.unused + 4), *range(4)] if front.unused else range(4)
    for offset in places:
        with suppress(WireError):
            return _back(data, offset, front)
    raise WireError("SectionBuffer", data[:16], "RR-52: no header begins here")


def _back(data: bytes, offset: int, front: _Front) -> _Back:
    end, headers = len(data), dict[str, Any]()
    if front.base.flags & DEBUG and "debug" not in front.headers:
        headers["debug"], offset = DebugHeader.unpack_from(data, offset, end)
    if front.present & SOAP:
        headers["soap"], offset = SoapHeader.unpack_from(data, offset, end)
    if front.present & MULTI_QUEUE:
        headers["multi"], offset = MultiQueueHeader.unpack_from(data, offset, end)
    user_end = min(offset, end)
    if front.base.flags & SESSION and end - offset >= SessionHeader.SIZE:
        offset += SessionHeader.SIZE
    if is_extension(data, offset):
        return _Back(headers=headers, end=user_end, extension=Extension.unpack(data, offset))
    if end - offset > 3:
        raise WireError("ExtensionHeader", data[offset : offset + 12], _SECTION)
    return _Back(headers=headers, end=user_end, extension=None)


# -- as it was sent -------------------------------------------------------------------------


def _time_to_reach(front: _Front) -> int:
    absolute = front.base.time_to_reach_queue
    return absolute if absolute == INFINITE else max(absolute - front.user.sent_time, 0)


def _relative(front: _Front) -> BaseHeader:
    return replace(front.base, time_to_reach_queue=_time_to_reach(front))


def _addressed(front: _Front, manager: Guid) -> UserHeader:
    is_direct = front.user.destination.code == DIRECT
    return replace(front.user, queue_manager=NULL_GUID if is_direct else manager)


def _peer(front: _Front) -> str:
    return overlaid(front.address)


def _wire(data: bytes, front: _Front, end: int, manager: Guid) -> bytes:
    """The packet as it was received by the server, less its body and less a SessionHeader."""
    stop = front.body_at + front.size
    wire = bytearray(data[: front.body_at] + data[stop:end])
    wire[2] &= ~SESSION & 0xFF
    _U32.pack_into(wire, PACKET_SIZE, len(wire) + front.size)
    _U32.pack_into(wire, TIME_TO_REACH, _time_to_reach(front))
    wire[QUEUE_MANAGER] = _addressed(front, manager).queue_manager
    return bytes(wire)
