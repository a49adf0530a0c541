"""A small world of messages in three ledgers, and what a person would say of each: the oracle.

Nothing here uses the code under test: headers and audit entries are written out by hand (digest
data-model.md 4, design D6), and the verdicts follow the table of design 3.5 with plain loops.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zlib import crc32

from pyspark.sql import DataFrame, SparkSession

from msmq_jobs.schemas import HEADERS, READ

T0 = 1_700_000_000_000  # ms
SENDERS = ("11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555")
SEQUENCE = 2**63 + 5  # more than a signed number holds
ORDERS, PLAIN, LATEST = "private$\\Orders", "private$\\plain", "private$\\latest"
TOPICS = {ORDERS: "orders", PLAIN: "plain", LATEST: "latest"}  # the last is compacted
EXPIRED_CLASSES = (0x8002, 0xC002, 0xC003)
RECORD = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    f"headers {HEADERS.simpleString()}"
)


@dataclass(frozen=True, slots=True)
class Copy:
    """One record. `altered` is body, label, app or nothing."""

    altered: str = ""
    run: str = ""
    behind: int = 0  # places that it comes late
    expires: bool = False  # it has msmq.expires, which records of earlier builds do not have


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the ledgers have of one message."""

    number: int
    queue: str = ORDERS
    sender: str = SENDERS[0]
    is_sent: bool = True
    dead: int = 0  # class of the dead letter
    audit: tuple[str, ...] = ("accepted",)
    copies: tuple[Copy, ...] = (Copy(),)
    delivery: int = 1
    start: int = T0
    step_ms: int = 1000

    @property
    def id(self) -> str:
        return f"{self.sender}\\{self.number}"

    @property
    def sent(self) -> int:
        return (self.start + self.number * self.step_ms) // 1000 * 1000

    @property
    def at(self) -> int:
        return self.sent + 250

    @property
    def body(self) -> bytes:
        return b"body %d" % self.number

    @property
    def label(self) -> str:
        return f"Größe {self.number}"


@dataclass(slots=True)
class Place:
    """A record where it lies."""

    seen: Seen
    copy: Copy
    topic: str
    partition: int
    offset: int


@dataclass
class World:
    messages: Sequence[Seen]
    window_ms: int = 5_000
    places: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.places = list(_laid_out(self.messages))
        times = [seen.at for seen in self.messages if seen.copies or set(seen.audit) & TAKEN]
        self.watermark = max(times, default=max((seen.sent for seen in self.messages), default=0))

    def records(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame([record(p) for p in self.places], RECORD)

    def audit(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame([audit_record(part) for part in _fives(self.messages)], RECORD)

    def read(self, spark: SparkSession) -> DataFrame:
        rows = [row(seen) for seen in self.messages if seen.is_sent or seen.dead]
        return spark.createDataFrame(rows, READ)

    # -- the oracle ---------------------------------------------------------------------------

    def verdicts(self) -> dict[tuple[str, str], str]:
        late = self._out_of_order()
        return {
            (seen.id, seen.queue): found
            for seen in self.messages
            if (found := self._verdict(seen, seen.number in late))
        }

    def _out_of_order(self) -> set[int]:
        highest: dict[tuple[Any, ...], int] = {}
        late = set()
        for p in sorted(self.places, key=lambda p: (p.topic, p.partition, p.offset)):
            stream = (p.topic, p.partition, p.seen.sender, p.copy.run)
            if p.seen.number < highest.get(stream, 0) and p.seen.queue == ORDERS:
                late.add(p.seen.number)
            highest[stream] = max(p.seen.number, highest.get(stream, 0))
        return late

    def _verdict(self, seen: Seen, is_late: bool) -> str:
        told = set(seen.audit) & TOLD
        is_sent = bool(seen.is_sent or seen.dead)
        if not (seen.is_sent or seen.dead or told or seen.copies):
            return ""
        seen_here = bool(seen.copies or told)  # by our clock; else only the sender tells
        moment = seen.at if seen_here else seen.sent
        is_new = moment >= self.watermark - self.window_ms
        if len(seen.copies) > 1:
            return "duplicated"
        if seen.copies:
            refused = told & {"expired", "rejected"}
            if not told & TAKEN and (refused or not is_sent):
                return "in_flight" if is_new else "unexpected"
            if _is_altered(seen):
                return "altered"
            return "out_of_order" if is_late else "delivered_once"
        if told & {"accepted", "backfilled"}:
            if seen.queue == LATEST:  # its commit is in the audit; the topic need not keep it
                return "delivered_once"
            return "in_flight" if is_new else "missing"
        if "expired" in told or seen.dead in EXPIRED_CLASSES:
            return "expired"
        if "rejected" in told:
            return "rejected"
        if seen.dead:
            return "dead_lettered"
        return "in_flight" if is_new else "missing"


TAKEN = {"accepted", "backfilled"}
TOLD = TAKEN | {"expired", "rejected", "out_of_order"}


def _is_altered(seen: Seen) -> bool:
    """Only a ledger that tells the property can say so: the audit has no application tag."""
    (copy,) = seen.copies
    if copy.altered == "app":
        return seen.is_sent or bool(seen.dead)
    in_audit = bool(set(seen.audit) & {"accepted", "backfilled"})
    return bool(copy.altered) and (in_audit or seen.is_sent or bool(seen.dead))


def _laid_out(messages: Iterable[Seen]) -> Iterator[Place]:
    """By stream into partitions; offsets have gaps, as markers and compaction leave them."""
    lines: dict[tuple[str, int], list[tuple[int, int, Seen, Copy]]] = {}
    for turn, seen in enumerate(messages):
        place = TOPICS[seen.queue], SENDERS.index(seen.sender)
        for n, copy in enumerate(seen.copies):
            at = turn * 10 + copy.behind * 10 + n + (5 if copy.behind else 0)
            lines.setdefault(place, []).append((at, turn, seen, copy))
    for (topic, partition), line in lines.items():
        for n, (_, _, seen, copy) in enumerate(sorted(line, key=lambda x: x[:2])):
            yield Place(seen, copy, topic, partition, 3 * n + n // 4)


def record(place: Place) -> tuple[Any, ...]:
    headers = headers_of(place.seen, place.copy)
    value = place.seen.body + (b"!" if place.copy.altered == "body" else b"")
    when = datetime.fromtimestamp(place.seen.at / 1000, UTC)
    pairs = [{"key": k, "value": bytearray(v)} for k, v in headers.items()]
    where = place.topic, place.partition, place.offset
    return (None, bytearray(value), *where, when, pairs)


def headers_of(seen: Seen, copy: Copy) -> dict[str, bytes]:
    made = {
        "msmq.v": "1",
        "msmq.id": seen.id,
        "msmq.source": seen.sender,
        "msmq.dest": f"DIRECT=OS:bridge01\\{seen.queue}",
        "msmq.transport": "binary",
        "msmq.queue": seen.queue,
        "msmq.label": seen.label + ("?" if copy.altered == "label" else ""),
        "msmq.sent": str(seen.sent // 1000),
        "msmq.app": "8" if copy.altered == "app" else "7",
    }
    if seen.delivery:
        made["msmq.delivery"] = "1"
    if seen.queue == ORDERS:
        made |= {"msmq.tx.seqid": str(SEQUENCE), "msmq.tx.seq": str(seen.number)}
        made["msmq.priority"] = "0"
    if copy.expires:
        made |= {"msmq.ttbr": "60", "msmq.expires": str(seen.sent // 1000 * 1000 + 60_000)}
    if copy.run:
        made["msmq.backfill"] = json.dumps({"run": copy.run, "source": "x.jsonl"})
    return {name: text.encode() for name, text in made.items()}


def entry(seen: Seen, verdict: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": seen.id,
        "verdict": verdict,
        "at": seen.at,
        "dest": f"DIRECT=OS:bridge01\\{seen.queue}",
        "label": seen.label,
        "transport": "binary",
        "crc32": crc32(seen.body),
    }
    if verdict != "duplicate":
        made["queue"] = seen.queue
    if verdict in ("accepted", "backfilled"):
        made |= {"topic": TOPICS[seen.queue], "partition": SENDERS.index(seen.sender)}
    if verdict in ("expired", "rejected"):
        made |= {"class": 0x8002 if verdict == "expired" else 0x8003, "reason": "r"}
    if seen.queue == ORDERS:
        made |= {"tx_sequence_id": SEQUENCE, "tx_sequence_number": seen.number}
    return made


def audit_record(messages: Sequence[Seen]) -> tuple[Any, ...]:
    entries = [entry(seen, verdict) for seen in messages for verdict in seen.audit]
    value = json.dumps(entries).encode()
    return (None, bytearray(value), "audit", 0, 0, datetime.fromtimestamp(T0 / 1000, UTC), None)


def row(seen: Seen) -> dict[str, Any]:
    made: dict[str, Any] = dict.fromkeys(READ.names)
    moment = datetime.fromtimestamp(seen.sent // 1000, UTC)
    made |= {
        "message_id": seen.id.upper() if seen.number % 2 else seen.id,  # case does not count
        "queue": f"OLD01\\{seen.queue};journal",
        "label": seen.label,
        "body": bytearray(seen.body),
        "body_type": 0,
        "class": seen.dead,
        "priority": 0 if seen.queue == ORDERS else 3,
        "delivery": seen.delivery,
        "sent_time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app_specific": 7,
        "headers": {"msmq.dest": f"DIRECT=OS:bridge01\\{seen.queue}"},
        "origin": "x.jsonl",
    }
    if seen.queue == ORDERS:
        made |= {"tx_sequence_id": Decimal(SEQUENCE), "tx_sequence_number": seen.number}
    return made


def _fives(messages: Sequence[Seen]) -> Iterator[Sequence[Seen]]:
    for start in range(0, len(messages), 5):
        yield messages[start : start + 5]
