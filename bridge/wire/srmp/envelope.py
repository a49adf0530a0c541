"""A SOAP envelope of SRMP as a value. Digest srmp.md section 2; MC-MQSRM 2.2

Times are Unix seconds. Names are kept as they are written in the envelope (`http://…`,
`MSMQ:…`): convert.py knows what they are elsewhere.
"""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.model.guid import NULL_GUID, Guid
from bridge.wire.srmp.signature import Signature
from bridge.wire.srmp.values import StreamId, parse_id

SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"
RP: Final = "http://schemas.xmlsoap.org/rp/"
SRMP: Final = "http://schemas.xmlsoap.org/srmp/"
MSMQ: Final = "msmq.namespace.xml"

MSMQ_PREFIX: Final = "MSMQ:"
ORDERING_ACK: Final = "MSMQ:QM Ordering Ack"


class Services(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the sender asks for; a URL says that it asks. MC-MQSRM 2.2.5.2"""

    durable: bool = False
    delivery_to: str | None = None
    commitment_to: str | None = None
    positive: bool = False  # positiveOnly; both flags ask for either outcome
    negative: bool = False


class Stream(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a message stands in its stream. MC-MQSRM 2.2.5.3"""

    id: StreamId
    current: int
    previous: int | None = None
    receipts_to: str | None = None  # of <start>, which counts in message 1 only

    @property
    def preceding(self) -> int:
        """`previous`, or what its absence means. MC-MQSRM 3.1.1.2"""
        return max(self.current - 1, 0) if self.previous is None else self.previous


class DeliveryReceipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """MC-MQSRM 2.2.5.4"""

    received_at: int
    id: str


class CommitmentReceipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """MC-MQSRM 2.2.5.5"""

    decided_at: int
    positive: bool
    id: str


class StreamReceipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything up to `last_ordinal` has arrived. MC-MQSRM 2.2.5.6"""

    stream_id: StreamId
    last_ordinal: int


class Provider(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """MC-MQSRM 2.2.6.12"""

    type: int
    name: str


class MsmqBlock(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What only MSMQ knows. MC-MQSRM 2.2.6"""

    source: Guid
    time_to_reach_queue: int  # TTrq: a moment, not a duration
    message_class: int = 0
    priority: int = 3
    body_type: int = 0
    journal: bool = False
    dead_letter: bool = False
    trace: bool = False
    correlation: bytes | None = None
    connector_type: Guid | None = None
    app: int | None = None
    hash_algorithm: int | None = None
    first: bool = False
    last: bool = False
    connector_qm: Guid | None = None
    provider: Provider | None = None
    destination_mqf: tuple[str, ...] = ()
    admin_mqf: tuple[str, ...] = ()
    response_mqf: tuple[str, ...] = ()


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The header of one SRMP message; se:Body is empty and ignored."""

    action: str
    to: str
    id: str
    expires_at: int
    sent_at: int | None = None
    via: str = ""  # the response queue
    services: Services | None = None
    stream: Stream | None = None
    delivery_receipt: DeliveryReceipt | None = None
    stream_receipt: StreamReceipt | None = None
    commitment_receipt: CommitmentReceipt | None = None
    msmq: MsmqBlock | None = None
    signature: Signature | None = None

    @property
    def label(self) -> str | None:
        """None without the prefix. MC-MQSRM 2.2.4.1 <5>"""
        prefixed = self.action.startswith(MSMQ_PREFIX)
        return self.action[len(MSMQ_PREFIX) :] if prefixed else None

    @property
    def identifier(self) -> tuple[Guid, int]:
        """{SourceQmGuid, n}, whatever GUID the id names (SR-23); {NULL, 1} without Msmq."""
        if self.msmq is None:
            return NULL_GUID, 1
        return self.msmq.source, parse_id("id", self.id)[1]

    @property
    def message_class(self) -> int:
        return 0 if self.msmq is None else self.msmq.message_class

    @property
    def durable(self) -> bool:
        """A stream message always is, said or not. MC-MQSRM 3.1.5.1.6.2, 4.4"""
        return self.stream is not None or (self.services is not None and self.services.durable)

    @property
    def is_receipt(self) -> bool:
        receipts = (self.delivery_receipt, self.stream_receipt, self.commitment_receipt)
        return any(receipt is not None for receipt in receipts)
