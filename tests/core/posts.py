"""Messages as they are once they have come over HTTP, for the tests of SRMP's receiving side."""

from collections.abc import Mapping
from typing import Any

from bridge.core.admission import Policy
from bridge.core.catalogue import Queue
from bridge.core.shard import Shard
from bridge.model.guid import Guid
from bridge.model.message import Message, Srmp, Transaction
from tests.core.messages import NOW, SENDER, catalogue, receipts

STREAM = 0x65000000_00000001  # TimeStamp high, Ordinal low
TO = "http://bridge01/msmq/private$/orders"
TO_PLAIN = "http://bridge01/msmq/private$/plain"
RECEIPTS = "http://Sender01/MSMQ/Private$/order_queue$"
PEER = "10.1.2.3"
KEY = SENDER, f"DIRECT={TO}"


def mail(
    ordinal: int = 1, to: str = TO_PLAIN, *, asks: Mapping[str, Any] | None = None, **fields: Any
) -> Message:
    """A regular message; `asks` is what its Srmp has."""
    known: dict[str, Any] = {
        "source": SENDER,
        "destination": f"DIRECT={to}",
        "sent_time": NOW,
        "arrived_ms": NOW * 1000,
        "body": b"mail %d" % ordinal,
        "transport": "http",
        "peer": PEER,
        "soap": "<se:Envelope/>",
        "srmp": Srmp(to=to, **(asks or {})),
    }
    return Message(ordinal=ordinal, **{**known, **fields})


def part(
    number: int,
    previous: int | None = None,
    *,
    stream: int = STREAM,
    to: str = TO,
    qm: Guid = SENDER,
    start: str | None = RECEIPTS,
    asks: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Message:
    """Message `number` of a stream; the first one has `start`, the URL for its receipts."""
    starts = number == 1 and start is not None
    wanted = {
        "stream_id": f"uid:{qm}\\{stream}",
        "starts": starts,
        "receipts_to": start if starts else "",
    }
    known: dict[str, Any] = {
        "transaction": Transaction(
            sequence_id=stream,
            number=number,
            previous=max(number - 1, 0) if previous is None else previous,
            stream=(qm, f"DIRECT={to}"),
        ),
        "body": b"part %d" % number,
        "delivery": 1,
    }
    return mail(number, to, asks={**wanted, **(asks or {})}, **{**known, **fields})


def posting_shard(*queues: Queue, **policy: Any) -> Shard:
    """Its receipts are numbered from 7001."""
    return Shard(catalogue(*queues), Policy(deadletter_topic="dead", **policy), receipts())
