"""What the core needs from the outside, in its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from bridge.core.posted import Due
from bridge.model.errors import SinkUnavailable
from bridge.model.hosts import neighbourhood
from bridge.model.message import Onward

Headers = dict[str, bytes]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One Kafka record; `partition` None leaves the choice to the key."""

    topic: str
    value: bytes
    key: bytes | None = None
    headers: Headers = {}
    partition: int | None = None
    timestamp_ms: int = 0


OUTBOX: Final = "outbox/"
FORWARDS: Final = "forward/"
_FRAME: Final = 1024  # what a message costs beside its bytes


class OutboxEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One packet that waits to be taken, and who should take it."""

    ordinal: int
    queue_manager: str = ""  # GUID of the peer, if it is known by one
    host: str = ""  # else, or when it has no session: name or address
    packet: bytes
    url: str = ""  # over HTTP: the packet is an envelope for this URL, asked for by `host`
    expires: int = 0  # Unix seconds; 0: made by an older version, see Shard.restore
    cause: str = ""  # address of the peer whose message made us owe it, if that is not `host`
    stream: str = ""  # of a final stream receipt: the id of its stream, as it was sent

    @property
    def key(self) -> str:
        return f"{OUTBOX}{self.ordinal}"

    @property
    def address(self) -> str:
        """Of the peer whose message made us owe it."""
        return self.cause or self.host

    @property
    def counted_for(self) -> str:
        """The same, as bounds count it."""
        return neighbourhood(self.address)

    @property
    def destination(self) -> str:
        """Where it goes: a URL, a queue manager or a host."""
        return (self.url or self.queue_manager or self.host).lower()

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


class Forward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message for another host that waits to be handed on. SR-15"""

    ordinal: int
    id: str  # of the message
    onward: Onward
    mark: str = ""  # what its sender may repeat while it waits; none: it is always stored
    expires: int = 0  # Unix seconds; 0 is never
    arrived_ms: int = 0
    peer: str = ""
    transport: str = ""

    @property
    def key(self) -> str:
        return f"{FORWARDS}{self.ordinal}"

    @property
    def size(self) -> int:
        """Of what it takes in memory, and in the state topic."""
        return len(self.onward.packet) + len(self.onward.was) + _FRAME

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


def decode_entry(data: bytes) -> OutboxEntry:
    return msgspec.msgpack.decode(data, type=OutboxEntry)


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A body that stays outside Kafka. It is stored before the record that points to it."""

    name: str  # ab/cd/abcd…, made from its SHA-256: a path below the store's root
    data: bytes
    store: str = ""  # folder or URL as the mapping has it; empty: the default


class Unit(msgspec.Struct, kw_only=True):
    """All that one transaction of one shard carries: everything or nothing. Design D1"""

    records: list[Record] = []
    state: dict[str, bytes | None] = {}  # None removes the key
    seen: dict[str, bytes] = {}
    snapshot_begins: str = ""  # key in `seen` of the first part of a snapshot of all ids
    snapshot_ends: bool = False  # with this unit it is whole
    audit: list[bytes] = []
    rejects: list[Record] = []
    acks: list[OutboxEntry] = []  # they are in `state`; once committed they may leave
    dropped: list[OutboxEntry] = []  # acks that are owed no more: expired, or at a bound
    due: list[Due] = []  # receipts of streams, likewise
    forwards: list[Forward] = []  # messages for other hosts, likewise
    claims: list[Claim] = []

    def __bool__(self) -> bool:
        return bool(self.records or self.state or self.seen or self.audit or self.rejects)


class Snapshot(msgspec.Struct, frozen=True):
    """What a shard's predecessors committed, keys in the order they were last written."""

    state: Mapping[str, bytes]
    seen: Sequence[bytes]


class RefusedRecord(msgspec.Struct, frozen=True):
    """A record of a unit that Kafka does not take, however often it gets it."""

    position: int  # in `Unit.records`
    topic: str
    error: str  # as Kafka names it: INVALID_RECORD
    text: str = ""
    timestamp_ms: int = 0
    of_topic: bool = False  # it is the topic that is gone or closed to us, not this record


class UnitRefused(SinkUnavailable):
    """The unit as it is will never be committed. `refused` tells why, if the unit was traced."""

    def __init__(self, what: str, refused: Sequence[RefusedRecord] = ()) -> None:
        super().__init__(what)
        self.refused = refused


class ShardSink(Protocol):
    """One shard's way into Kafka. Its identity is fixed, so a new owner fences the old one."""

    async def open(self) -> Snapshot:
        """Fence whoever held the shard, settle what it left open, read all it committed.

        Raises SinkUnavailable; call it again then.
        """

    async def publish(self, unit: Unit, *, traced: bool = False) -> None:
        """Return once the whole unit is committed.

        Raises SinkUnavailable when it is not, or when nobody can tell: the sink is closed then,
        and `open` says what happened. Raises UnitRefused when the same unit would fail again.
        A `traced` unit costs more for each record, and UnitRefused names the records.
        """

    def let_go(self) -> None:
        """Wait no longer for the unit that is under way: it cannot be committed."""

    async def close(self) -> None:
        """Give the shard up. What was not committed never happened."""
