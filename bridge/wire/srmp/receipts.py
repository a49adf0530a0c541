"""The receipts that a receiver sends, as envelopes in the layout of Windows. Digest srmp.md 3.7"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.model.classes import MessageClass
from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.model.message import DEFAULT_PRIORITY, FOUR_DAYS, NO_CORRELATION
from bridge.wire.srmp.envelope import (
    MSMQ_PREFIX,
    ORDERING_ACK,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    MsmqBlock,
    StreamReceipt,
)
from bridge.wire.srmp.kinds import NEGATIVE, POSITIVE
from bridge.wire.srmp.values import NEVER, StreamId, correlation_of, id_text

_NO_PRIORITY: Final = 0


class Original(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a receipt repeats of the message that it is about. SR-48"""

    to: str
    identifier: tuple[Guid, int]
    label: str = ""

    @classmethod
    def of(cls, envelope: Envelope) -> Original:
        return cls(to=envelope.to, identifier=envelope.identifier, label=envelope.label or "")


class Post(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a receipt goes, who sends it, under which number and when."""

    to: str
    source: Guid
    ordinal: int
    now: int  # Unix seconds


def delivery_receipt(post: Post, original: Original, received_at: int) -> Envelope:
    """SR-42, SR-43"""
    guid, ordinal = original.identifier
    return msgspec.structs.replace(
        _receipt(post, original.to, MSMQ_PREFIX + original.label),
        delivery_receipt=DeliveryReceipt(received_at=received_at, id=id_text(guid, ordinal)),
        msmq=_block(
            post, MessageClass.ACK_REACH_QUEUE, DEFAULT_PRIORITY, correlation_of(guid, ordinal)
        ),
    )


def commitment_receipt(post: Post, original: Original, outcome: int, decided_at: int) -> Envelope:
    """SR-44: `outcome` is the class that says how the message left its queue."""
    guid, ordinal = original.identifier
    return msgspec.structs.replace(
        _receipt(post, original.to, MSMQ_PREFIX + original.label),
        commitment_receipt=_decision(original, outcome, decided_at),
        msmq=_block(post, outcome, DEFAULT_PRIORITY, correlation_of(guid, ordinal)),
    )


def stream_receipt(post: Post, original_to: str, stream_id: StreamId, last: int) -> Envelope:
    """SR-35, SR-36"""
    return msgspec.structs.replace(
        _receipt(post, original_to, ORDERING_ACK),
        stream_receipt=StreamReceipt(stream_id=stream_id, last_ordinal=last),
        msmq=_block(post, MessageClass.ORDER_ACK, _NO_PRIORITY, NO_CORRELATION),
    )


def final_stream_receipt(
    post: Post, original: Original, stream_id: StreamId, current: int, outcome: int, decided_at: int
) -> Envelope:
    """SR-45"""
    return msgspec.structs.replace(
        _receipt(post, original.to, ORDERING_ACK),
        stream_receipt=StreamReceipt(stream_id=stream_id, last_ordinal=current),
        commitment_receipt=_decision(original, outcome, decided_at),
        msmq=_block(post, outcome, _NO_PRIORITY, NO_CORRELATION),
    )


def _receipt(post: Post, original_to: str, action: str) -> Envelope:
    return Envelope(
        action=action,
        to=post.to,
        via=original_to,
        id=id_text(post.source, post.ordinal),
        expires_at=NEVER,
        sent_at=post.now,
    )


def _block(post: Post, message_class: int, priority: int, correlation: bytes) -> MsmqBlock:
    return MsmqBlock(
        source=post.source,
        time_to_reach_queue=post.now + FOUR_DAYS,
        message_class=message_class,
        priority=priority,
        correlation=correlation,
        app=0,
        hash_algorithm=0,
    )


def _decision(original: Original, outcome: int, decided_at: int) -> CommitmentReceipt:
    if outcome not in POSITIVE | NEGATIVE:
        raise WireError("Class", outcome, "SR-44: no commitment receipt for this outcome")
    return CommitmentReceipt(
        decided_at=decided_at, positive=outcome in POSITIVE, id=id_text(*original.identifier)
    )
