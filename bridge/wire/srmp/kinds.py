"""What a message is: for the application, or a receipt of which kind. MC-MQSRM 3.1.5.1.5"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from bridge.model.classes import MessageClass
from bridge.wire.srmp.envelope import ORDERING_ACK, Envelope
from bridge.wire.srmp.values import trim

POSITIVE: Final = frozenset({MessageClass.ACK_RECEIVE})
NEGATIVE: Final = frozenset(
    {
        MessageClass.NACK_DELETED,
        MessageClass.NACK_Q_DELETED,
        MessageClass.NACK_Q_PURGED,
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_RECEIVE_REJECTED,  # SR-19: sent by 3.1.7.3.1, forgotten by 3.1.5.1.5
    }
)


class Kind(Enum):
    USER = auto()
    DELIVERY_RECEIPT = auto()
    STREAM_RECEIPT = auto()
    FINAL_STREAM_RECEIPT = auto()
    COMMITMENT_RECEIPT = auto()
    UNKNOWN = auto()  # ignored, with 200 (SR-8)


def kind_of(envelope: Envelope) -> Kind:
    present = (
        envelope.delivery_receipt is not None,
        envelope.stream_receipt is not None,
        envelope.commitment_receipt is not None,
    )
    ordering = trim(envelope.action) == ORDERING_ACK
    match present:
        case (False, False, False) if envelope.message_class == MessageClass.NORMAL:
            return Kind.USER
        case (True, False, False) if envelope.message_class == MessageClass.ACK_REACH_QUEUE:
            return Kind.DELIVERY_RECEIPT
        case (False, True, False) if ordering and envelope.message_class == MessageClass.ORDER_ACK:
            return Kind.STREAM_RECEIPT
        case (False, True, True) if ordering and _is_decided(envelope):
            return Kind.FINAL_STREAM_RECEIPT
        case (False, False, True) if _is_decided(envelope):
            return Kind.COMMITMENT_RECEIPT
        case _:
            return Kind.UNKNOWN


def _is_decided(envelope: Envelope) -> bool:
    receipt = envelope.commitment_receipt
    classes = POSITIVE if receipt is not None and receipt.positive else NEGATIVE
    return envelope.message_class in classes
