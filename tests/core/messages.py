"""Messages, queues and shards for the tests of the core, and strategies for any of them."""

from itertools import count
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.mapping_rules import QueueMapping, QueuePath, Topic
from bridge.core.receipts import Receipts
from bridge.core.shard import Shard
from bridge.model.guid import Guid
from bridge.model.message import Message, Transaction

LOCAL = Guid.parse("3f8a0c5e-6a0b-4c55-9f0e-0d3c2b1a4f77")
SENDER = Guid.parse("11111111-2222-3333-4444-555555555555")
OTHER = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
ORDERS = "DIRECT=OS:bridge01\\private$\\orders"
PLAIN = "DIRECT=OS:bridge01\\private$\\plain"
NOW = 1_700_000_000  # Unix seconds
SEQUENCE = 0x65000000_00000001  # TimeStamp high, Ordinal low


def queue(
    name: str = "private$\\orders",
    *,
    transactional: bool = True,
    partitions: int = 4,
    max_bytes: int = 5 << 20,
    topic: str = "",
    access: AccessList | None = None,
    journal: str = "",
    journal_partitions: int = 1,
    **settings: Any,
) -> Queue:
    topic = topic or name.removeprefix("private$\\").strip("$").replace("@", "-")
    mapping = QueueMapping(
        queue=QueuePath(name), topic=Topic(topic), transactional=transactional, **settings
    )
    return Queue(
        mapping=mapping,
        name=name,
        topic=topic,
        partitions=partitions,
        max_bytes=max_bytes,
        access=access,
        journal=journal,
        journal_partitions=journal_partitions,
    )


def catalogue(*queues: Queue) -> Catalogue:
    both = queue(), queue("private$\\plain", transactional=False)
    return Catalogue(LOCAL, queues or both)


def shard(*queues: Queue, acks: Receipts | None = None, **policy: Any) -> Shard:
    return Shard(catalogue(*queues), Policy(deadletter_topic="dead", **policy), acks)


def receipts(**settings: Any) -> Receipts:
    """Acks of LOCAL, numbered from 7001."""
    made = Receipts(**settings)
    made.local, made.ordinals = LOCAL, count(7001).__next__
    return made


def plain(ordinal: int = 1, **fields: Any) -> Message:
    known: dict[str, Any] = {
        "source": SENDER,
        "destination": PLAIN,
        "sent_time": NOW,
        "arrived_ms": NOW * 1000,
        "body": b"plain %d" % ordinal,
    }
    return Message(ordinal=ordinal, **{**known, **fields})


def step(
    number: int, previous: int | None = None, *, sequence: int = SEQUENCE, **fields: Any
) -> Message:
    """Message `number` of a stream."""
    known: dict[str, Any] = {
        "source": SENDER,
        "ordinal": number,
        "destination": ORDERS,
        "transaction": Transaction(
            sequence_id=sequence,
            number=number,
            previous=number - 1 if previous is None else previous,
        ),
        "priority": 0,
        "sent_time": NOW,
        "arrived_ms": NOW * 1000,
        "body": b"step %d" % number,
    }
    return Message(**{**known, **fields})


def _number(bits: int) -> st.SearchStrategy[int]:
    top = (1 << bits) - 1
    return st.sampled_from((0, 1, top - 1, top)) | st.integers(0, top)


u8, u16, u32, u64 = _number(8), _number(16), _number(32), _number(64)
guids = st.binary(min_size=16, max_size=16).map(Guid)
# Half a surrogate pair is lawful UTF-16 for MSMQ.
_characters = st.characters() | st.sampled_from("\ud800\udfff")  # in one st.text they drown
texts = st.lists(_characters, max_size=20).map("".join)
transactions = st.builds(
    Transaction,
    sequence_id=u64,
    number=u32,
    previous=u32,
    index=st.integers(0, (1 << 20) - 1),
    first=st.booleans(),
    last=st.booleans(),
    final_ack=st.booleans(),
    connector_qm=st.none() | guids,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "source": guids,
    "ordinal": u32,
    "destination": texts,
    "destination_qm": guids,
    "transaction": st.none() | transactions,
    "delivery": st.integers(0, 1),
    "priority": st.integers(0, 7),
    "sent_time": u32,
    "arrived_ms": st.integers(0, (1 << 53) - 1),
    "time_to_reach_queue": u32,
    "time_to_be_received": u32,
    "message_class": u16,
    "label": texts,
    "body": st.binary(max_size=64),
    "body_type": u32,
    "extension": st.binary(max_size=64),
    "correlation_id": st.just(bytes(20)) | st.binary(min_size=20, max_size=20),
    "app_specific": u32,
    "ack": u8,
    "journal": st.integers(0, 3),
    "admin_queue": texts,
    "response_queue": texts,
    "destination_multi": texts,
    "admin_multi": texts,
    "response_multi": texts,
    "deadletter_queue": texts,
    "status_queue": texts,
    "lookup_id": u64,
    "sender": texts,
    "certificate": st.binary(max_size=64),
    "authenticated": u8,
    "signature": st.binary(max_size=64),
    "hash_algorithm": u32,
    "provider": texts,
    "privacy_level": u32,
    "encrypted": st.booleans(),
    "encryption_algorithm": u32,
    "trace_queue": st.none() | guids,
    "connector": st.none() | guids,
    "soap": texts,
    "soap_compound": st.sampled_from((b"", b"POST\xff")),
    "expires": st.sampled_from((0, NOW, 253_402_300_799)),  # to the end of 9999
    "srmp": st.none(),  # what is asked of the receiver is no property
    "hops": u8,
    "peer": st.just("") | st.ip_addresses().map(str),  # from a socket
    "transport": st.sampled_from(("binary", "srmp", "rpc")),
    "wire": st.binary(max_size=64),
}


def _lawful(message: Message) -> Message:
    """Without an envelope there is nothing else of SOAP."""
    return message if message.soap else replace(message, soap_compound=b"", expires=0)


messages = st.builds(Message, **FIELDS).map(_lawful)
