"""What can happen to an outgoing queue of SRMP, and what it asks of its shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from bridge.model.message import JOURNAL_NEGATIVE, JOURNAL_POSITIVE, Message
from bridge.protocol.commands import Close
from bridge.protocol.events import Tick
from bridge.wire.srmp.envelope import Envelope
from bridge.wire.srmp.kinds import Kind, kind_of
from bridge.wire.srmp.values import StreamId

JOURNAL: Final = "Journal$"
DEAD_LETTER: Final = "Deadletter$"
TRANSACTIONAL_DEAD_LETTER: Final = "XactDeadletter"  # MC-MQSRM <26>, <27>, <28>


class Answered(msgspec.Struct, frozen=True, gc=False):
    """The answer to the `Post` with this number."""

    post: int
    status: int


class NoAnswer(msgspec.Struct, frozen=True, gc=False):
    """No connection, or nothing came back on it."""

    post: int
    why: str


class StreamReceipted(msgspec.Struct, frozen=True, gc=False):
    """The receiver has everything of this stream up to this number. MC-MQSRM 3.1.1.3.2"""

    stream_id: StreamId
    last: int


class FinalReceipted(msgspec.Struct, frozen=True, gc=False):
    """How one message of a stream left its queue. MC-MQSRM 3.1.1.3.3"""

    stream_id: StreamId
    number: int
    positive: bool
    message_class: int


class Paused(msgspec.Struct, frozen=True, gc=False):
    pass


class Resumed(msgspec.Struct, frozen=True, gc=False):
    pass


Event = Answered | NoAnswer | StreamReceipted | FinalReceipted | Paused | Resumed | Tick


def receipt_of(envelope: Envelope) -> StreamReceipted | FinalReceipted | None:
    """What an envelope says of a stream; None if it is not about one."""
    receipt = envelope.stream_receipt
    kind = kind_of(envelope)
    if receipt is not None and kind is Kind.STREAM_RECEIPT:
        return StreamReceipted(receipt.stream_id, receipt.last_ordinal)
    decision = envelope.commitment_receipt
    if receipt is not None and decision is not None and kind is Kind.FINAL_STREAM_RECEIPT:
        number, positive = receipt.last_ordinal, decision.positive
        return FinalReceipted(receipt.stream_id, number, positive, envelope.message_class)
    return None


class Fate(StrEnum):
    """How a message left the outgoing queue."""

    REACHED = "reached"  # by 200, one of a stream by the stream receipt
    RECEIVED = "received"  # by a positive final receipt
    REFUSED = "refused"  # by 400
    EXPIRED = "expired"  # before it could be sent
    DIED = "died"  # by a negative final receipt


class Post(msgspec.Struct, frozen=True, gc=False):
    """Send this to the destination; `Answered` or `NoAnswer` with its number comes back."""

    number: int
    content_type: str
    body: bytes


class Settled(msgspec.Struct, frozen=True, gc=False):
    """A message is done with. `message_class` is what its receiver said, 0 if that was a 400;
    `keep_in` is the queue of ours that it moves to, if it asked for that."""

    message: Message
    fate: Fate
    message_class: int
    keep_in: str = ""


Command = Post | Settled | Close


def keep_in(message: Message, fate: Fate) -> str:
    """SR-64, SR-65. Whether the application's own dead-letter queue is fit, the shell knows."""
    if fate in (Fate.REACHED, Fate.RECEIVED):
        return JOURNAL if message.journal & JOURNAL_POSITIVE else ""
    if not message.journal & JOURNAL_NEGATIVE:
        return ""
    return DEAD_LETTER if message.transaction is None else TRANSACTIONAL_DEAD_LETTER
