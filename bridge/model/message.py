"""A message as every protocol, Kafka and Spark see it; defaults are MSMQ's own."""

from __future__ import annotations

from typing import Final

import msgspec

from bridge.model.guid import NULL_GUID, Guid, texts

INFINITE: Final = 0xFFFFFFFF  # a time-to-… that never runs out
FOUR_DAYS: Final = 345_600  # TimeToReachQueue when nobody set one
NO_CORRELATION: Final = bytes(20)
DEFAULT_PRIORITY: Final = 3

EXPRESS: Final = 0
RECOVERABLE: Final = 1

# AcknowledgementsRequested. MS-MQMQ 2.2.19.3
ACK_ARRIVAL: Final = 0x01  # PA
ACK_RECEIVE: Final = 0x02  # PR
NACK_ARRIVAL: Final = 0x04  # NA
NACK_RECEIVE: Final = 0x08  # NR

# Source journaling asked for. MS-MQMQ 2.2.19.2
JOURNAL_NEGATIVE: Final = 0x01  # JN
JOURNAL_POSITIVE: Final = 0x02  # JP


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """Where a transactional message stands in its stream. MS-MQMQ 2.2.20.5"""

    sequence_id: int
    number: int
    previous: int = 0
    index: int = 0
    first: bool = False
    last: bool = False
    final_ack: bool = False
    connector_qm: Guid | None = None
    stream: tuple[Guid, str] | None = None  # whose numbers these are, if not (source, destination)


class Onward(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is POSTed to another host for a message that is not for us. SR-15"""

    url: str
    content_type: str
    packet: bytes  # the request as it came, but for the text of `<to>`
    was: bytes  # that text, as it stood in the envelope
    via: tuple[str, ...] = ()  # who has handed it on before us


class Srmp(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a message over HTTP asks of its receiver beyond its properties. MC-MQSRM 2.2.5"""

    to: str  # as sent; the destination may be a redirected one
    stream_id: str = ""  # echoed byte for byte in receipts
    starts: bool = False  # the first of its stream
    receipts_to: str = ""  # URL for the receipts of its stream, in the first one only
    delivery_to: str = ""  # URLs for its own receipts
    commitment_to: str = ""
    positive: bool = False  # which commitments it wants to hear of
    negative: bool = False
    first: bool = False  # of a transaction; a message without a stream may say so too
    last: bool = False
    connector_qm: Guid | None = None
    flaw: str = ""  # why its signature cannot be right
    is_here: bool = True  # its host is one of ours
    is_known: bool = True  # its class and its receipts say together what it is
    onward: Onward | None = None  # it is for another host, and goes there
    peer_names: tuple[str, ...] = ()  # cn:… and san:… of the client's certificate, small letters


class Kind:
    """A mark for messages that have all common properties, source and destination alike.

    What was found out about one of them holds for the others, too. It is not a property: it equals
    any other mark, so that messages are compared by what they are.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind)

    def __hash__(self) -> int:
        return 0


NO_KIND: Final = Kind()  # nobody has compared it with others


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. Field by field: MS-MQDMPR 3.1.1.12; digest data-model.md section 4.

    Write it with keywords; only the hot path (wire/binary/fast.py) relies on the order, because
    a call by position takes a sixth of the time.
    """

    source: Guid
    ordinal: int
    destination: str  # format name as the sender wrote it: half of the stream's key
    transaction: Transaction | None = None
    sent_time: int = 0  # Unix seconds, the sender's clock
    arrived_ms: int = 0  # Unix milliseconds, our clock
    body: bytes = b""
    wire: bytes = b""  # the packet as received, without the body
    label: str = ""
    correlation_id: bytes = NO_CORRELATION
    extension: bytes = b""
    kind: Kind = NO_KIND
    # From here on: the same in most messages of a stream (mapping.py relies on it).
    delivery: int = EXPRESS
    priority: int = DEFAULT_PRIORITY
    time_to_reach_queue: int = FOUR_DAYS
    time_to_be_received: int = INFINITE
    body_type: int = 0
    peer: str = ""  # address of whoever handed it to us
    transport: str = "binary"
    destination_qm: Guid = NULL_GUID
    message_class: int = 0
    app_specific: int = 0
    ack: int = 0
    journal: int = 0
    hops: int = 0
    privacy_level: int = 0
    hash_algorithm: int = 0x8004
    encryption_algorithm: int = 0x6801
    admin_queue: str = ""
    response_queue: str = ""
    destination_multi: str = ""
    admin_multi: str = ""
    response_multi: str = ""
    deadletter_queue: str = ""
    status_queue: str = ""
    lookup_id: int = 0
    sender: str = ""  # SID or queue manager GUID as text: a claim until it is proven
    certificate: bytes = b""
    authenticated: int = 0  # what our own check found, never what the sender says (QB-131)
    signature: bytes = b""
    provider: str = ""
    encrypted: bool = False  # the body is not in the clear
    trace_queue: Guid | None = None
    connector: Guid | None = None
    # From here on: what came as SOAP. Each message has its own.
    soap: str = ""
    soap_compound: bytes = b""  # the whole HTTP request, if the mapping wants it
    expires: int = 0  # Unix seconds, expiresAt of SRMP; 0 is never
    srmp: Srmp | None = None

    @property
    def id(self) -> str:
        return f"{texts.get(self.source) or str(self.source)}\\{self.ordinal}"
