"""Messages for other hosts, from the moment we have taken them until they are taken there. SR-15

We are a hop: the message goes on as it came, its stream, its duplicates and its receipts are a
matter between its sender and the host that has the queue. A row in the state topic holds it from
the transaction of its acceptance to the one that says how it ended. Only a message of a stream
whose very copy still waits here is not stored again: without a receipt its sender repeats it for
days.

What keeps a message from going round for ever: every hop adds itself to the Via of the request
(RFC 9110 7.6.3). One that we have handed on before, or that has 29 hops behind it, is refused with
400, so that the hop before us drops it and says so. Where a hop forgets the Via, as Windows would,
the deadline that the message brings ends it (SR-63); for one that never expires somebody has to
mend the redirections, and each round of it is in the audit.

A message of a stream that the next hop has refused with 400 comes again, because its sender hears
200 from us and no receipt from there. It is then refused with 400 here, too, so that its sender
removes it and bridges the gap (MC-MQSRM 3.1.7.2.5). Which ones these are is kept in memory: after a
restart the next hop is asked once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from bridge.core.admission import Policy, deadline_of, is_past
from bridge.core.ports import Forward
from bridge.model.guid import Guid
from bridge.model.message import FOUR_DAYS, Message, Onward
from bridge.wire.srmp.convert import format_name, message_from_request
from bridge.wire.srmp.readdress import envelope_before
from bridge.wire.srmp.request import read_request

MEMORY: Final = 256 << 20  # what waits is held in memory, whatever the quota says
MAX_BYTES: Final = 7 << 20  # of one: the state topic takes 8 MiB

MOST_REFUSED: Final = 10_000  # messages of one shard, 16 bytes of each

_decode = msgspec.msgpack.Decoder(Forward).decode


class Ending(Enum):
    TAKEN = auto()
    REFUSED = auto()
    EXPIRED = auto()  # SR-63


def make(message: Message, onward: Onward, policy: Policy, local: Guid, ordinal: int) -> Forward:
    """`local` is what the hops after us know us by."""
    return Forward(
        ordinal=ordinal,
        id=message.id,
        onward=replace(onward, via=(*onward.via, f"1.1 {local}")),
        mark=_mark(message, onward.url),
        expires=_expires(message, policy),
        arrived_ms=message.arrived_ms,
        peer=message.peer,
        transport=message.transport,
    )


def _mark(message: Message, url: str) -> str:
    """With `previous`: where it has changed, the one that waits will not do any more (SR-72). And
    with the address it came from: what a stranger sends in the name of the stream is another
    message, or the sender's own would be answered with 200 and not stored."""
    tx = message.transaction
    if tx is None or tx.stream is None:
        return ""
    stream = f"{tx.stream[0]}\\{tx.sequence_id}"
    return f"{stream} {tx.previous} {tx.number} {url.lower()} {message.peer}"


def _expires(message: Message, policy: Policy) -> int:
    """SR-63: who sends it looks at the time. What was over when it came is no time to count on:
    somebody's clock is wrong (SR-61), so it is given the time that Windows gives by default."""
    deadline = deadline_of(message)
    if deadline is None:
        return 0
    if is_past(message, policy):
        return message.arrived_ms // 1000 + FOUR_DAYS
    return max(deadline + policy.clock_skew_s, 1)


def message_of(forward: Forward, at_ms: int) -> Message:
    """The message as it came, for its record among the rejects, dated `at_ms`."""
    onward = forward.onward
    try:
        request = read_request(onward.content_type, onward.packet)
        message = message_from_request(
            replace(request, soap=envelope_before(onward)),
            peer=forward.peer,
            arrived_ms=forward.arrived_ms,
            transport=forward.transport,
            destination=onward.url,
            is_here=False,
        )
    except Exception:  # an earlier version took what we would not; it still leaves a trace
        guid, _, ordinal = forward.id.partition("\\")
        message = Message(
            source=Guid.parse(guid),
            ordinal=int(ordinal),
            destination=format_name(onward.url),
            body=onward.packet,
            peer=forward.peer,
            transport=forward.transport,
        )
    return replace(message, arrived_ms=at_ms)


class Refused:
    """Messages of streams that the next hop has refused; at the bound the oldest is forgotten.

    A message is the same only if it comes from the same address with the same id and body: a
    message with another sender's stream id does not make that sender's message refused.
    """

    def __init__(self, most: int = MOST_REFUSED) -> None:
        self._most = most
        self._known: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, message: Message) -> None:
        if message.transaction is None:
            return  # its sender has forgotten it since the 200
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[_same(message)] = None

    def has(self, message: Message) -> bool:
        return message.transaction is not None and _same(message) in self._known


def _same(message: Message) -> bytes:
    """What a message that is sent again has in common with the first one; not `previous`."""
    tx = message.transaction
    assert tx is not None
    stream = tx.stream and tx.stream[0]  # `<to>` was replaced in the message that waited
    said = stream, tx.sequence_id, tx.number, message.id, message.peer, message.destination
    digest = blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(message.body)
    return digest.digest()


class Room:
    """What may wait in all shards together. SR-6"""

    def __init__(self, limit: int) -> None:
        self.limit = min(limit, MEMORY)
        self.used = 0


class Forwards:
    """What waits in one shard, in the order it came."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.size = 0  # bytes
        self._waiting: dict[int, Forward] = {}
        self._marks = set[str]()

    def __iter__(self) -> Iterator[Forward]:
        return iter(self._waiting.values())

    def __len__(self) -> int:
        return len(self._waiting)

    def knows(self, forward: Forward) -> bool:
        """Whether a copy of it waits."""
        return forward.mark in self._marks

    def has_room(self, forward: Forward) -> bool:
        return self._room.used + forward.size <= self._room.limit

    def add(self, forward: Forward) -> None:
        self._waiting[forward.ordinal] = forward
        self._count(forward.size)
        if forward.mark:
            self._marks.add(forward.mark)

    def pop(self, ordinal: int) -> Forward | None:
        forward = self._waiting.pop(ordinal, None)
        if forward is not None:
            self._count(-forward.size)
            self._marks.discard(forward.mark)
        return forward

    def _count(self, size: int) -> None:
        self.size += size
        self._room.used += size

    def clear(self) -> None:
        for ordinal in list(self._waiting):
            self.pop(ordinal)

    def restore(self, value: bytes) -> None:
        self.add(_decode(value))
