"""The ordered rules that can refuse a message. Digest data-model.md 2.4; the first one decides."""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.core.access import Access
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.outbox import DESTINATIONS, MEMORY
from bridge.model.classes import MessageClass
from bridge.model.guid import NULL_GUID
from bridge.model.message import INFINITE, Message, Srmp

MAX_HOPS: Final = 0x1D


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    clock_skew_s: int = 0
    quota_kb: int = 0xFFFFFFFF  # of the machine
    deadletter_topic: str = ""
    discards_expired: bool = False  # what comes late over HTTP. SR-61
    continues_traces: bool = False  # a record's trace context is ours, which follows the sender's
    adopts_streams: bool = False  # a stream that was never seen may begin in the middle
    outbox_bytes: int = MEMORY  # acks that wait, in one shard
    outbox_destinations: int = DESTINATIONS  # hosts that acks of one shard wait for


class Refusal(msgspec.Struct, frozen=True):
    message_class: int
    reason: str
    detail: str = ""  # of this one case; for who reads the reject
    alone: bool = False  # without a dead letter: Kafka has refused that, too


HOPS: Final = Refusal(MessageClass.NACK_HOP_COUNT_EXCEEDED, "too-many-hops")
FOREIGN: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "other-queue-manager")
UNKNOWN_QUEUE: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "unknown-queue")
NOT_TRANSACTIONAL_QUEUE: Final = Refusal(
    MessageClass.NACK_NOT_TRANSACTIONAL_Q, "transactional-message-to-plain-queue"
)
NOT_TRANSACTIONAL_MESSAGE: Final = Refusal(
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG, "plain-message-to-transactional-queue"
)
ENCRYPTED: Final = Refusal(MessageClass.NACK_BAD_ENCRYPTION, "encrypted-body")
DENIED: Final = Refusal(MessageClass.NACK_ACCESS_DENIED, "sender-not-allowed")
NOT_SIGNED: Final = Refusal(MessageClass.NACK_BAD_SIGNATURE, "queue-wants-signed-messages")
NOT_ENCRYPTED: Final = Refusal(MessageClass.NACK_BAD_ENCRYPTION, "queue-wants-encrypted-messages")
EXPIRED: Final = Refusal(MessageClass.NACK_REACH_QUEUE_TIMEOUT, "time-to-reach-queue-over")
LATE: Final = Refusal(MessageClass.NACK_REACH_QUEUE_TIMEOUT, "time-to-be-received-over")
AT_ONCE: Final = Refusal(MessageClass.NACK_RECEIVE_TIMEOUT, "time-to-be-received-over")
OVER_QUOTA: Final = Refusal(MessageClass.NACK_Q_EXCEED_QUOTA, "over-the-queue-quota")
TOO_LARGE: Final = Refusal(MessageClass.NACK_Q_EXCEED_QUOTA, "larger-than-the-topic-takes")
NO_TOPIC: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "topic-cannot-be-made")
NO_KEY: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "compacted-topic-wants-a-key")
WRONG_TIME: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "time-is-outside-what-the-topic-takes")
REFUSED_BY_KAFKA: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "refused-by-kafka")
NEXT_HOP: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "refused-by-the-next-hop")
UNKNOWN_TYPE: Final = Refusal(MessageClass.NORMAL, "class-and-receipt-do-not-match")
FLAWED_SIGNATURE: Final = Refusal(MessageClass.NACK_BAD_SIGNATURE, "signature-is-wrong")
INTERNAL_ERROR: Final = Refusal(MessageClass.NACK_BAD_DST_Q, "internal-error")


def kept_out(message: Message, queue: Queue | None, catalogue: Catalogue) -> Refusal | None:
    """Rows 2, 3 and, for what the peer proves, 8: decided before any state is looked at.

    Such a message may come from a stranger who uses another's name. It leaves a verdict and a
    reject, and nothing that a later message of the named source depends on.
    """
    if reason := foreign(message, catalogue):
        return reason
    if queue is None:
        return UNKNOWN_QUEUE
    if queue.access is not None and queue.access.judge(message) is Access.PEER_DENIED:
        return DENIED
    return None


def refusal(message: Message, queue: Queue) -> Refusal | None:
    """Rows 4 to 9: for a reason of the message's own. One function: all go through it."""
    if reason := wrong_kind(message, queue):
        return reason
    mapping = queue.mapping
    if message.encrypted:  # row 7: we have no keys, so nobody can have encrypted it for us
        return ENCRYPTED
    if queue.access is not None and queue.access.judge(message) is not Access.GRANTED:  # row 8
        return DENIED
    # Row 9. A signature that nobody checked proves nothing (QB-131).
    if mapping.authenticate == "required" and not message.authenticated:
        return NOT_SIGNED
    return NOT_ENCRYPTED if mapping.encrypt == "required" else None


def wrong_kind(message: Message, queue: Queue) -> Refusal | None:
    """Rows 4 and 5, DM-6, SR-17"""
    is_plain = message.transaction is None
    if queue.mapping.transactional is not is_plain or queue.any_kind:
        return None
    return NOT_TRANSACTIONAL_MESSAGE if is_plain else NOT_TRANSACTIONAL_QUEUE


def foreign(message: Message, catalogue: Catalogue) -> Refusal | None:
    """Row 2: addressed to another queue manager, so it is never delivered here. One that passed
    through too many queue managers is refused (MS-MQQB 3.1.5.8.2), the others stay at their
    senders."""
    if catalogue.is_local(message.destination_qm):
        return None
    return HOPS if message.hops + 1 > MAX_HOPS else FOREIGN


def unroutable(message: Message, srmp: Srmp, queue: Queue | None) -> Refusal | None:
    """Over HTTP, before its stream is looked at: SR-13 to SR-17, 3.3 and SR-40, in this order."""
    if not srmp.is_here:
        return FOREIGN
    if queue is None:
        return UNKNOWN_QUEUE
    if reason := wrong_kind(message, queue):
        return reason
    if not srmp.is_known:
        return UNKNOWN_TYPE
    return FLAWED_SIGNATURE if srmp.flaw else None


def is_identified(message: Message) -> bool:
    """Without Msmq every message has the same id, so it tells nothing. SR-21"""
    return message.source != NULL_GUID or message.ordinal != 1


def deadline_of(message: Message) -> int | None:
    """Of a message over HTTP, in Unix seconds. SR-62: of both times the earlier one counts."""
    lasts = message.time_to_reach_queue
    reach = None if lasts == INFINITE else message.sent_time + lasts
    if message.expires and (reach is None or message.expires < reach):
        return message.expires
    return reach


def is_past(message: Message, policy: Policy) -> bool:
    """Strictly later, judged when it arrived."""
    deadline = deadline_of(message)
    return deadline is not None and message.arrived_ms // 1000 - policy.clock_skew_s > deadline


def expiry(message: Message, policy: Policy) -> Refusal | None:
    """Row 10: strictly later, signed arithmetic, judged when it arrived (MS-MQQB 3.1.7.1.2, MS-MQMQ
    2.2.18.1.6). A time-to-be-received of 0 is not over yet: its timer starts in the queue and
    expires there at once (MS-MQDMPR 3.1.2.4; `AT_ONCE`)."""
    age = message.arrived_ms // 1000 - message.sent_time - policy.clock_skew_s
    reach = message.time_to_reach_queue
    if age > reach and reach != INFINITE:
        return EXPIRED
    receive = message.time_to_be_received
    if receive not in (0, INFINITE) and age > receive:
        return LATE
    return None


def size_on_wire(message: Message) -> int:
    if message.wire:  # has all but the body
        return len(message.wire) + len(message.body)
    return len(message.soap) + len(message.extension) + len(message.body)


def is_over_machine_quota(message: Message, policy: Policy) -> bool:
    """Row 12. Forward queues hold nothing, so it bounds one message."""
    return size_on_wire(message) > policy.quota_kb * 1024


def is_over_quota(message: Message, queue: Queue) -> bool:
    """Row 13. A forward queue holds nothing, so its quota bounds one message (design 3.3)."""
    quota = queue.mapping.quota_kb
    return quota is not None and size_on_wire(message) > quota * 1024


def fits_journal(message: Message, queue: Queue) -> bool:
    """DM-30: over quota the copy is lost and the message is not; it bounds one, as row 13."""
    quota = queue.mapping.journal_quota_kb
    return quota is None or size_on_wire(message) <= quota * 1024
