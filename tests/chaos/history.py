"""What the senders did and saw, in Jepsen's terms: operations, their acks, and what the world did.

An operation is one message. It is invoked when its first byte may be on the wire and completes when
its sender may forget it. All moments are of one monotonic clock in one process. A send is stamped
before the bytes leave and an ack after it came, so "acked before" is never claimed too early.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_HEAD = struct.Struct("<8s16sII")
_MAGIC = b"chaos-01"
_SUM = 32


class Mode(StrEnum):
    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


@dataclass(slots=True, kw_only=True)
class Op:
    """One message of one stream; `number` is its place there."""

    identity: str  # msmq.id: GUID\ordinal
    mode: Mode
    stream: str  # sender and destination
    topic: str
    number: int
    digest: bytes
    session: int = 0  # the one of the first send
    sends: int = 0
    sent_at: float | None = None
    # A session ack says that it is on disk; express: that it came. Over HTTP: the answer is 200,
    # unless it is of a stream, where 200 promises nothing.
    stored_at: float | None = None
    ordered_at: float | None = None  # an order ack, or the receipt of its stream
    final_at: float | None = None
    done_at: float | None = None
    dropped: bool = False  # express, under way when its session ended
    posted: bool = False  # over HTTP

    @property
    def acked_at(self) -> float | None:
        """The first moment at which anybody promised that it is durable."""
        told = [at for at in (self.stored_at, self.ordered_at, self.final_at) if at is not None]
        return min(told, default=None)


@dataclass(frozen=True, slots=True)
class Outage:
    """The broker did nothing in this time: stopped or dead from before it until after it."""

    start: float
    end: float
    kind: str = "stopped"


@dataclass(frozen=True, slots=True)
class Probe:
    """Ends of the partitions (open transactions included), asked for after `at`."""

    at: float
    ends: Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A record that a read_committed consumer sees."""

    topic: str
    partition: int
    offset: int
    identity: str
    digest: bytes
    intact: bool = True  # the checksum inside is right, and it is that message's body

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass(slots=True, kw_only=True)
class Read:
    """One receive from the retained queue: of the admin port, or the End (ACK) of a remote reader.

    It was told if it has a moment; else it was empty, or cut off: then nobody knows whether it took
    a message. With an identity that could only be this one.
    """

    asked_at: float
    told_at: float | None = None
    identity: str = ""
    place: int = 0  # lookup id
    is_cut_off: bool = False
    over_at: float | None = None  # when it was cut off


@dataclass(slots=True, kw_only=True)
class Take:
    """One Start of a remote reader, and what became of the message that it was given. RR-20

    It removes nothing. Without an answer nobody knows whether it held a message for a while.
    """

    asked_at: float
    server: int = 0  # the port that the server says it has: no two bridges have the same
    given_at: float | None = None
    identity: str = ""
    place: int = 0  # lookup id
    is_empty: bool = False  # it was told that there is no message
    left_at: float | None = None  # the End goes out, or the reader hangs up
    over_at: float | None = None  # the End is answered, or nobody will
    is_ended: bool = False  # answered: its connection was there all the time


@dataclass(frozen=True, slots=True)
class Look:
    """All that was in the retained queue: identities and lookup ids, asked for after `at`."""

    at: float
    places: list[tuple[str, int]]
    is_last: bool = True  # nobody sends any more


@dataclass(frozen=True, slots=True)
class Handover:
    """From one leader to the next; the one before was quiet at the latest when this one led."""

    kind: str
    at: float  # it was told to stop, killed or frozen
    leading_at: float
    listening_at: float


@dataclass(frozen=True, slots=True)
class Break:
    """What a sender with MSMQ's retry timer saw: its session broke, and it got in again."""

    at: float
    tries: int  # 1: its first retry found an open door
    in_at: float


@dataclass(slots=True)
class History:
    ops: list[Op] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    handovers: list[Handover] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    # Not about a message: the bridge broke the protocol, or ended by itself.
    surprises: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    done: int = 0

    def complete(self, op: Op, now: float) -> None:
        op.done_at = now
        self.done += 1

    @property
    def resends(self) -> int:
        return sum(max(0, op.sends - 1) for op in self.ops)


def make_body(source: bytes, stream: int, number: int, filler: bytes) -> bytes:
    """Unique, and it shows by itself that it is whole."""
    content = _HEAD.pack(_MAGIC, source, stream, number) + filler
    return content + hashlib.sha256(content).digest()


def is_intact(body: bytes, source: bytes, number: int) -> bool:
    """Its checksum is right and it says whose it is: `number` is the ordinal of the message."""
    content, told = body[:-_SUM], body[-_SUM:]
    if len(content) < _HEAD.size or hashlib.sha256(content).digest() != told:
        return False
    magic, from_, _, ordinal = _HEAD.unpack_from(content)
    return (magic, from_, ordinal) == (_MAGIC, source, number)


def digest_of(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:12]
