"""The ordered rules that can refuse a message. Digest data-model.md 2.4; the first one decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from bridge.core.catalogue import Catalogue, Queue
from bridge.model.classes import MessageClass
from bridge.model.message import INFINITE, Message


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    clock_skew_s: int = 0


class Refusal(msgspec.Struct, frozen=True):
    message_class: int
    reason: str


def _unknown_queue(_message: Message, queue: Queue | None) -> Refusal | None:
    return UNKNOWN_QUEUE if queue is None else None


def _wrong_kind(message: Message, queue: Queue | None) -> Refusal | None:
    """Transactional message <-> transactional queue only. DM-6"""
    assert queue is not None
    if message.transaction is not None:
        return None if queue.mapping.transactional else NOT_TRANSACTIONAL_QUEUE
    return NOT_TRANSACTIONAL_MESSAGE if queue.mapping.transactional else None


FOREIGN: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "other-queue-manager")
UNKNOWN_QUEUE: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "unknown-queue")
NOT_TRANSACTIONAL_QUEUE: Final = Refusal(
    MessageClass.NACK_NOT_TRANSACTIONAL_Q, "transactional-message-to-plain-queue"
)
NOT_TRANSACTIONAL_MESSAGE: Final = Refusal(
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG, "plain-message-to-transactional-queue"
)
EXPIRED: Final = Refusal(MessageClass.NACK_REACH_QUEUE_TIMEOUT, "time-to-reach-queue-over")
OVER_QUOTA: Final = Refusal(MessageClass.NACK_Q_EXCEED_QUOTA, "over-the-queue-quota")
TOO_LARGE: Final = Refusal(MessageClass.NACK_Q_EXCEED_QUOTA, "larger-than-the-topic-takes")

Rule = Callable[[Message, Queue | None], Refusal | None]
RULES: Final[tuple[Rule, ...]] = (_unknown_queue, _wrong_kind)  # rows 3 to 5


def refusal(message: Message, queue: Queue | None) -> Refusal | None:
    for rule in RULES:
        if reason := rule(message, queue):
            return reason
    return None


def is_foreign(message: Message, catalogue: Catalogue) -> bool:
    """Addressed to another queue manager: we are no router (row 2)."""
    return not catalogue.is_local(message.destination_qm)


def is_over_quota(message: Message, queue: Queue) -> bool:
    """Row 13. A forward queue holds nothing, so its quota bounds one message (design 3.3)."""
    quota = queue.mapping.quota_kb
    return quota is not None and len(message.wire) + len(message.body) > quota * 1024


def is_expired(message: Message, policy: Policy) -> bool:
    """Row 10, QB-100: strictly later, signed arithmetic, judged when it arrived."""
    if message.time_to_reach_queue == INFINITE:
        return False
    age = message.arrived_ms // 1000 - message.sent_time
    return age > message.time_to_reach_queue + policy.clock_skew_s
