"""What was sent against what lies in the topic: lost, duplicate, reordered, altered, unexpected."""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from tests.outside.appliance import Appliance, queue
from tests.outside.rawmsmq import Message, Tx
from tests.outside.records import Record, identity, of_source, read_topic

SEQUENCE = 0x65000000_00000200
PLAIN, ORDERS = "plain", "orders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message of one stream, as it was sent or as it was found."""

    identity: bytes
    digest: str
    owed: bool = False  # acked and recoverable: it must be there


def faults(sent: Sequence[Entry], found: Sequence[Entry]) -> list[str]:
    """What is wrong with one stream; both sides in their order. Unacked or express may lack."""
    place = {entry.identity: number for number, entry in enumerate(sent)}
    digest = {entry.identity: entry.digest for entry in sent}
    times = Counter(entry.identity for entry in found)
    first = [name for name in times if name in place]  # in the order of their first appearance
    return [
        *(
            _fault("lost", entry.identity)
            for entry in sent
            if entry.owed and not times[entry.identity]
        ),
        *(_fault("duplicate", name) for name, count in times.items() if count > 1),
        *(_fault("reordered", b) for a, b in pairwise(first) if place[b] < place[a]),
        *(
            _fault("altered", e.identity)
            for e in found
            if digest.get(e.identity, e.digest) != e.digest
        ),
        *(_fault("unexpected", name) for name in times if name not in place),
    ]


def _fault(kind: str, name: bytes) -> str:
    return f"{kind} {name.decode()}"


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


class Load:
    """The messages of one source: transactional ones to `orders`, the others to `plain`."""

    def __init__(self, source: UUID, rng: random.Random, kinds: Sequence[str] = "ert") -> None:
        self.source = source
        self.messages: list[Message] = []
        self._rng = rng
        self._kinds = kinds  # e(xpress), r(ecoverable), t(ransactional), in turn
        self._numbers = 0

    def make(self, count: int) -> list[Message]:
        return [self._next() for _ in range(count)]

    def _next(self) -> Message:
        number = len(self.messages) + 1
        kind = self._kinds[number % len(self._kinds)]
        message = Message(
            source=self.source,
            message_id=number,
            destination=queue(ORDERS if kind == "t" else PLAIN),
            body=b"%d " % number + self._rng.randbytes(self._rng.randrange(400)),
            recoverable=kind != "e",
            tx=self._step() if kind == "t" else None,
        )
        self.messages.append(message)
        return message

    def _step(self) -> Tx:
        self._numbers += 1
        return Tx(sequence_id=SEQUENCE, number=self._numbers, previous=self._numbers - 1)

    def sent(self, name: str, unacked: Iterable[Message] = ()) -> list[Entry]:
        """The stream to one of the queues; nothing is owed for what is not acked."""
        kept = {message.message_id for message in unacked}
        return [
            Entry(
                identity=identity(self.source, message.message_id),
                digest=digest_of(message.body),
                owed=message.is_recoverable and message.message_id not in kept,
            )
            for message in self.messages
            if (message.tx is not None) == (name == ORDERS)
        ]


def found(records: Sequence[Record], source: UUID) -> list[Entry]:
    return [
        Entry(identity=record.header["msmq.id"], digest=digest_of(record.value))
        for record in of_source(records, source)
    ]


def check(appliance: Appliance, loads: Iterable[Load]) -> None:
    """All of them were acked: the recoverable ones are there once, and all are in order."""
    loads = list(loads)
    for name in (PLAIN, ORDERS):
        records = read_topic(appliance.bootstrap, appliance.topic(name))
        for load in loads:
            wrong = faults(load.sent(name), found(records, load.source))
            assert not wrong, f"{name}: {len(wrong)} faults, {wrong[:5]}"
