"""Holds a history against what a read_committed consumer sees, and names what is wrong.

| name | what is wrong |
|---|---|
| lost-acked | recoverable or transactional, acked in every way it needs, and not in its topic |
| duplicate | recoverable or transactional, more than once |
| express-twice | express, more than once; that it may be lost at a disconnect is MSMQ's promise |
| reorder | a stream lies in several partitions, or in another order than it was sent |
| altered | other bytes than were sent, a broken checksum inside, or another topic |
| phantom | a record of a message that was never put on the wire |
| ack-before-durable | told to be on disk at a moment at which it was not in Kafka |
| never-acked | all faults are healed, the senders waited long, and its sender still keeps it |

Over HTTP regular messages are the express ones, durable ones the recoverable ones, those of a
stream the transactional ones. Acked is what was answered with 200, and of a stream what a receipt
covers: there 200 also answers a message that came too early and was dropped.

**ack-before-durable** looks for no race between an ack and a reader. Two rules, both without false
alarms, because a moment only ever counts against the bridge when the order of things is certain:

1. *Frozen.* Between the moment the broker was seen stopped (or dead) and the moment it is let go
   again nothing can be written. A message whose first byte was sent in this time and whose ack came
   in this time was acked before it was durable.
2. *Ends.* After a kill of the bridge the ends of all partitions are asked for. What was acked
   before the question lies before the answer. A record behind it was written later: by a resend,
   after an ack had promised that none was needed. (The end of all records, not of the committed
   ones, is compared: a commit returns before its markers are in the partitions. What was there
   and then aborted is caught all the same, since its record is the resent one, or none.)

**reorder**: transactional messages and recoverable ones each in the order of their stream. A
session that ended late can bring an express message after those of the next one, so express ones
are compared within the session that sent them. Who sends over HTTP waits for the answer before it
sends the next one, so all its messages have an order.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from tests.chaos.history import History, Landed, Mode, Op

Found = Mapping[str, Sequence[Landed]]  # by identity, in the order of offsets


class Kind(StrEnum):
    LOST_ACKED = "lost-acked"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    ALTERED = "altered"
    PHANTOM = "phantom"
    ACK_BEFORE_DURABLE = "ack-before-durable"
    NEVER_ACKED = "never-acked"
    EXPRESS_TWICE = "express-twice"
    # Of readers: read_checker.py
    REAPPEARS = "removed-reappears"
    READ_TWICE = "read-twice"
    UNTOLD_LOST = "removed-untold-lost"
    OUT_OF_PLACE = "out-of-place"
    JOURNAL_MISSING = "journal-missing"
    JOURNAL_DOUBLED = "journal-doubled"
    HELD_BY_TWO = "held-by-two"
    OUT_OF_TURN = "out-of-turn"


@dataclass(frozen=True, slots=True)
class Fault:
    kind: Kind
    identity: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.identity} {self.detail}".rstrip()


def check(history: History, landed: Iterable[Landed]) -> list[Fault]:
    """Every fault there is; none for a history that keeps all promises."""
    found: dict[str, list[Landed]] = defaultdict(list)
    for record in sorted(landed, key=lambda record: (record.place, record.offset)):
        found[record.identity].append(record)
    faults: list[Fault] = []
    for rule in (_lost, _twice, _reordered, _altered, _phantom, _frozen, _behind_the_end, _kept):
        faults += rule(history, found)
    return faults


def counts(faults: Iterable[Fault]) -> dict[str, int]:
    return dict(Counter(str(fault.kind) for fault in faults))


def _lost(history: History, found: Found) -> Iterator[Fault]:
    for op in history.ops:
        if op.done_at is not None and op.mode is not Mode.EXPRESS and op.identity not in found:
            yield Fault(Kind.LOST_ACKED, op.identity, f"{op.mode}, {op.stream} {op.number}")


def _twice(history: History, found: Found) -> Iterator[Fault]:
    for op in history.ops:
        records = found.get(op.identity, ())
        if len(records) > 1:
            kind = Kind.EXPRESS_TWICE if op.mode is Mode.EXPRESS else Kind.DUPLICATE
            yield Fault(kind, op.identity, f"{len(records)} times: {_places(records)}")


def _reordered(history: History, found: Found) -> Iterator[Fault]:
    """By first appearance: what is there twice is not out of order for that."""
    rows: dict[tuple[str, Mode, int], list[tuple[Op, Landed]]] = defaultdict(list)
    for op in history.ops:
        if records := found.get(op.identity):
            session = op.session if op.mode is Mode.EXPRESS else 0
            rows[op.stream, op.mode, session].append((op, records[0]))
    for row in rows.values():
        row.sort(key=lambda pair: (pair[1].place, pair[1].offset))
        for (before, first), (after, second) in pairwise(row):
            if first.place != second.place:
                detail = f"its stream is in {first.place} and {second.place}"
                yield Fault(Kind.REORDER, after.identity, detail)
            elif after.number < before.number:
                detail = f"{after.stream}: {after.number} after {before.number}"
                yield Fault(Kind.REORDER, after.identity, detail)


def _altered(history: History, found: Found) -> Iterator[Fault]:
    for op in history.ops:
        for record in found.get(op.identity, ()):
            if record.digest != op.digest or not record.intact or record.topic != op.topic:
                yield Fault(Kind.ALTERED, op.identity, _places([record]))
                break


def _phantom(history: History, found: Found) -> Iterator[Fault]:
    sent = {op.identity for op in history.ops if op.sent_at is not None}
    for identity, records in found.items():
        if identity not in sent:
            yield Fault(Kind.PHANTOM, identity, _places(records))


def _frozen(history: History, found: Found) -> Iterator[Fault]:  # rule 1
    outages = sorted(history.outages, key=lambda outage: outage.start)
    starts = [outage.start for outage in outages]
    for op in _durable(history):
        assert op.sent_at is not None
        acked = op.acked_at
        at = bisect_left(starts, op.sent_at) - 1  # the last that began before it was sent
        if acked is not None and at >= 0 and acked < outages[at].end:
            detail = f"sent and acked while the broker was {outages[at].kind}"
            yield Fault(Kind.ACK_BEFORE_DURABLE, op.identity, detail)


def _behind_the_end(history: History, found: Found) -> Iterator[Fault]:  # rule 2
    probes = sorted(history.probes, key=lambda probe: probe.at)
    moments = [probe.at for probe in probes]
    for op in _durable(history):
        records, acked = found.get(op.identity), op.acked_at
        if not records or acked is None:
            continue
        at = bisect_left(moments, acked)  # the first that was made after the ack
        record = records[0]
        end = probes[at].ends.get(record.place) if at < len(probes) else None
        if end is not None and record.offset >= end:
            detail = f"acked when {record.topic}/{record.partition} ended at {end}, it is at "
            yield Fault(Kind.ACK_BEFORE_DURABLE, op.identity, f"{detail}{record.offset}")


def _kept(history: History, found: Found) -> Iterator[Fault]:
    for op in history.ops:
        if op.done_at is None and not op.dropped:
            where = "landed" if op.identity in found else "not landed"
            yield Fault(Kind.NEVER_ACKED, op.identity, f"{op.mode}, sent {op.sends}x, {where}")


def _durable(history: History) -> Iterator[Op]:
    """Whoever acks an express message promises nothing."""
    for op in history.ops:
        if op.mode is not Mode.EXPRESS and op.sent_at is not None:
            yield op


def _places(records: Iterable[Landed]) -> str:
    return ", ".join(f"{r.topic}/{r.partition}@{r.offset}" for r in records)
