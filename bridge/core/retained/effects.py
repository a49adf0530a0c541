"""What a call asks for: facts that Kafka must commit, and answers for readers.

A message whose fate is not committed yet is in flight: locked, and nobody is told. The owner puts
all effects of one `Commit` in one Kafka transaction and then calls `settle` with its ticket, or
`restore` if the transaction did not happen.
"""

from __future__ import annotations

import msgspec

from bridge.core.retained.errors import Status
from bridge.core.retained.rows import Row
from bridge.model.classes import MessageClass


class Owed(msgspec.Struct, frozen=True, gc=False):
    """What a sender must hear of a removal; its class is the removal's reason."""

    admin: bool = False  # to the administration queue
    final: bool = False  # a final ack or a final stream receipt
    receipt: bool = False  # a commitment receipt


class Copy(msgspec.Struct, frozen=True, gc=False):
    """A record of its own for the same message, in a journal or a dead-letter queue."""

    queue: str
    lookup_id: int
    arrived_ms: int  # in that queue, Unix milliseconds
    message_class: int = MessageClass.NORMAL  # what killed it; NORMAL: its class stays as it was


class Removal(msgspec.Struct, frozen=True, gc=False):
    """A message leaves for good."""

    row: Row
    reason: MessageClass
    owed: Owed = Owed()
    copy: Copy | None = None
    is_lost: bool = False  # Kafka has its record no more: nobody took it

    @property
    def needs_record(self) -> bool:
        """A copy repeats the message, and so does a negative ack. DM-19"""
        if self.is_lost:
            return False
        return self.copy is not None or (self.owed.admin and bool(self.reason & 0x8000))


class Change(msgspec.Struct, frozen=True, gc=False):
    """A message is moved to another queue, or was given back by a transaction once more."""

    row: Row
    to: Row


Effect = Removal | Change


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Together or not at all, in this order."""

    ticket: int
    effects: tuple[Effect, ...]


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A read has its message. A received one is locked until `end`, or its transaction's end."""

    handle: int
    tag: int
    row: Row


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A read that waited has no message and will get none."""

    handle: int
    tag: int
    status: Status


Command = Commit | Delivered | Ended
