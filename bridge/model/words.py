"""Message classes for people: what a sender is told, by name and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bridge.model.classes import MessageClass

_WORDS: Final = {
    MessageClass.NORMAL: "a message",
    MessageClass.REPORT: "a report",
    MessageClass.ACK_REACH_QUEUE: "it is in the queue",
    MessageClass.ORDER_ACK: "all up to it came in order",
    MessageClass.ACK_RECEIVE: "it was received",
    MessageClass.NACK_BAD_DST_Q: "there is no such queue",
    MessageClass.NACK_DELETED: "it was deleted on its way",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "it came too late",
    MessageClass.NACK_Q_EXCEED_QUOTA: "the queue's quota or its topic has no room for it",
    MessageClass.NACK_ACCESS_DENIED: "this sender may not write to the queue",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "it took too many hops",
    MessageClass.NACK_BAD_SIGNATURE: "its signature is missing or wrong",
    MessageClass.NACK_BAD_ENCRYPTION: "it cannot be decrypted, or is not encrypted",
    MessageClass.NACK_COULD_NOT_ENCRYPT: "it could not be encrypted",
    MessageClass.NACK_NOT_TRANSACTIONAL_Q: "the queue takes no transactional messages",
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG: "the queue takes transactional messages only",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "its crypto provider is unknown",
    MessageClass.NACK_SOURCE_COMPUTER_GUID_CHANGED: "its sender's GUID has changed",
    MessageClass.NACK_Q_DELETED: "the queue was deleted before it was received",
    MessageClass.NACK_Q_PURGED: "the queue was purged before it was received",
    MessageClass.NACK_RECEIVE_TIMEOUT: "it was not received in time",
    MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER: "it was not received in time, says its sender",
    MessageClass.NACK_RECEIVE_REJECTED: "its reader rejected it",
}


def class_name(number: int) -> str:
    try:
        return MessageClass(number).name
    except ValueError:  # senders may use others too (QB-5)
        return f"{number:#06x}"


def in_words(number: int) -> str:
    """`NACK_BAD_DST_Q (there is no such queue)`."""
    name = class_name(number)
    meaning = meaning_of(name)
    return f"{name} ({meaning})" if meaning else name


def meaning_of(name: str) -> str:
    """`there is no such queue`; empty for what is no class of MSMQ's."""
    known = MessageClass.__members__.get(name)
    return "" if known is None else _WORDS[known]


def is_negative(number: int) -> bool:
    """MS-MQMQ 2.2.18.1.6: the highest bit."""
    return bool(number & 0x8000)


def counted(numbers: Iterable[int]) -> dict[str, int]:
    """How often each class came, by name, in the order of their first coming."""
    counts: dict[str, int] = {}
    for number in numbers:
        name = class_name(number)
        counts[name] = counts.get(name, 0) + 1
    return counts
