"""The answer of a Start as the message that it carries. RR-52, RR-53, RR-55"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.wire.binary.extension import Subqueue
from bridge.wire.binary.replied import read_reply
from bridge.wire.rpc.remote_read import Started
from bridge.wire.rpc.sections import SectionType, check

_BITS: Final = 56
LOW: Final = (1 << _BITS) - 1
_HIGHEST: Final = 7
_CUT: Final = (SectionType.BINARY_FIRST, SectionType.SRMP_FIRST)


Key: TypeAlias = tuple[Guid, int]  # RR-48: (SourceQueueManager, MessageID)


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was peeked at or received. `message.lookup_id` is its place in the queue."""

    message: Message
    request_id: int = 0
    size: int = 0  # of the whole packet
    is_cut: bool = False  # the body is not whole
    subqueue: Subqueue = Subqueue()

    @property
    def lookup_id(self) -> int:
        return self.message.lookup_id

    @property
    def counters(self) -> dict[str, str]:
        """Those that are not 0, by their names in the header table."""
        sub = self.subqueue
        counted = {"aborts": sub.aborts, "moves": sub.moves, "moved": sub.moved_at}
        return {f"msmq.sub.{name}": str(count) for name, count in counted.items() if count}


def key_of(read: Read) -> Key:
    return read.message.source, read.message.ordinal


def read_of(started: Started, request_id: int, manager: Guid) -> Read:
    """WireError if it is no message."""
    sections = started.sections
    check(sections)
    second = sections[1].data if len(sections) > 1 else None
    is_cut = sections[0].kind in _CUT
    replied = read_reply(
        sections[0].data,
        second,
        is_cut=is_cut,
        manager=manager,
        arrived_ms=started.arrived * 1000,
    )
    place = place_of(replied.message, started.sequence_id)
    return Read(
        message=replace(replied.message, lookup_id=place),
        request_id=request_id,
        size=size_of(started),
        is_cut=is_cut,
        subqueue=replied.extension.subqueue if replied.extension else Subqueue(),
    )


def size_of(started: Started) -> int:
    """Of the packet as it would be if nothing had been cut."""
    return sum(section.alloc for section in started.sections)


def place_of(message: Message, sequence_id: int) -> int:
    """The whole lookup identifier: the top byte is ours to rebuild. RR-55"""
    priority = 0 if message.transaction is not None else message.priority
    return (_HIGHEST - priority) << _BITS | sequence_id & LOW
