"""Writes the messages of one partition of a topic, exactly once. Design D1, D3

A partition has one writer, because its transactional id is made from the partition's name: who
comes later (a repeated run, a task that Spark tries again) fences who came before and settles what
that one left open. Only then is the partition read, from where the plan of the run had seen it,
to its end: what lies there is not written again, whoever wrote it. Records and their audit
entries go in one transaction. Before it is committed, what others have put in front of them
meanwhile is looked at: a message that is there is not written. After any error the producer is
thrown away, and what happened is read back from the partition.

Transactions are short, and shorter-lived than those of live traffic when a writer dies: an open
one hides from consumers what live traffic writes behind it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaException, Message, Producer
from msgspec.structs import replace

from bridge.adapters.claims import ClaimStore
from bridge.adapters.kafka.client import (
    CALL_TIMEOUT_S,
    is_fenced,
    is_too_large,
    producer,
    unavailable,
)
from bridge.adapters.kafka.reader import Tail
from bridge.core import audit
from bridge.core.audit import AuditEntry
from bridge.core.ports import Claim
from bridge.model.errors import SinkUnavailable
from msmq_jobs.arrow import Batches, arrow_schema, batches_of, rows_in
from msmq_jobs.backfill.between import Between
from msmq_jobs.backfill.delivery import Deliveries, deliver
from msmq_jobs.backfill.identity import Key, identity_of
from msmq_jobs.backfill.pace import Pace
from msmq_jobs.backfill.prepare import Prepared, decode_prepared
from msmq_jobs.schemas import WRITTEN as WRITTEN_ROWS

WRITTEN: Final = "written"
PRESENT: Final = "already-there"
DOUBLED: Final = "doubled"  # live traffic has put it behind ours, before we were done
FAILED: Final = "failed"
PER_TRANSACTION: Final = 1000
MAX_BYTES: Final = 8 << 20
ATTEMPTS: Final = 5  # of one batch, each with its own producer
RETRY_S: Final = 1.0
TRANSACTION_MS: Final = 15_000  # a writer that dies hides live records no longer than this
_decode_entries = msgspec.json.Decoder(list[AuditEntry]).decode

_ARROW: Final = arrow_schema(WRITTEN_ROWS)

Row = Mapping[str, Any]


class WriteJob(msgspec.Struct, frozen=True, kw_only=True):
    """What every writer of a run has to know."""

    run: str
    settings: Mapping[str, Any]
    prefix: str
    audit_topic: str
    seen_to: Mapping[str, Mapping[int, int]]  # how far the plan knows each partition
    id_names: tuple[str, ...] = ("msmq.id",)
    queue_names: tuple[str, ...] = ("msmq.queue",)
    homes: Mapping[str, str] = {}  # the queues of topics that have one
    data: str = "."  # where relative claims lie
    rate: float = 0.0  # messages per second of one task; 0: no limit


class _RacedError(Exception):
    """Somebody has brought one of the messages since the partition was read."""


class Item(msgspec.Struct, frozen=True):
    """One message that is to be written."""

    message_id: str
    queue: str
    row: Row
    prepared: Prepared
    size: int

    @property
    def key(self) -> Key:
        return self.message_id.lower(), self.queue.lower()


def write_batches(batches: Batches, job: WriteJob) -> Batches:
    """`write_rows`, for `map_batches`."""
    return batches_of(write_rows(rows_in(batches), job), _ARROW)


def write_rows(rows: Iterable[Row], job: WriteJob) -> Iterator[tuple[Any, ...]]:
    """Rows of ROUTED, sorted; gives rows of WRITTEN, each after its commit."""
    pace = Pace(job.rate, time.monotonic)
    for (topic, partition), some in groupby(rows, key=lambda row: (row["topic"], row["partition"])):
        writer = PartitionWriter(job, topic, partition)
        lost = ""  # why this partition takes no more; the others go on
        try:
            for batch in _batches(map(_item, some), pace.burst(PER_TRANSACTION)):
                try:
                    results = [(item, FAILED) for item in batch] if lost else writer.write(batch)
                except SinkUnavailable as error:
                    lost = str(error)
                    results = [(item, FAILED) for item in batch]
                for item, result in results:
                    yield _result(item, topic, partition, result, lost)
                time.sleep(pace.rest_after(len(batch)))  # between transactions, never inside one
        finally:
            writer.close()


class PartitionWriter:
    def __init__(self, job: WriteJob, topic: str, partition: int) -> None:
        self._job, self._topic, self._partition = job, topic, partition
        self._id = f"{job.prefix}.backfill-{topic}-{partition}"
        self._producer: Producer | None = None
        self._tail: Tail | None = None
        self._there: dict[Key, str] = {}  # message -> the run that wrote it; empty: live traffic
        self._doubled: set[Key] = set()
        self._single = False  # one record per batch: a topic takes less than a batch may have
        self._claims = ClaimStore(Path(job.data))
        self._between = Between(job.settings, topic, partition, f"{job.prefix}.backfill")

    def write(self, batch: Sequence[Item]) -> list[tuple[Item, str]]:
        """What became of each, once that is certain. Raises SinkUnavailable: nobody can tell."""
        missing = list(batch)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._open()
                self._catch_up()
                self._publish([item for item in batch if item.key not in self._there])
                self._catch_up()  # a commit is believed when it can be read
            except _RacedError:
                continue
            except (KafkaException, BufferError, SinkUnavailable) as error:
                self._give_up(error, is_last=attempt == ATTEMPTS)
                time.sleep(RETRY_S)
                continue
            missing = [item for item in batch if item.key not in self._there]
            if not missing:
                return self._results(batch)
        raise SinkUnavailable(
            f"Kafka: {self._where}: nobody can tell what became of {missing[0].message_id}"
        )

    def close(self) -> None:
        self._discard()
        self._between.close()
        if self._tail is not None:
            self._tail.close()

    @property
    def _where(self) -> str:
        return f"{self._topic}-{self._partition}"

    def _results(self, batch: Sequence[Item]) -> list[tuple[Item, str]]:
        """Memory is kept for what others write; our own is certain now."""
        results = []
        for item in batch:
            ours = self._there.pop(item.key) == self._job.run
            result = DOUBLED if item.key in self._doubled else WRITTEN if ours else PRESENT
            results.append((item, result))
        return results

    def _open(self) -> None:
        """Fence, then read: the order that makes a repeated run see all of its predecessor."""
        if self._producer is not None:
            return
        alone = {"batch.num.messages": 1} if self._single else {}
        lifetime = {"transaction.timeout.ms": TRANSACTION_MS}
        self._producer = producer({**self._job.settings, **lifetime, **alone}, self._id)
        self._producer.init_transactions(CALL_TIMEOUT_S)

    def _catch_up(self) -> None:
        if self._tail is None:
            start = self._job.seen_to.get(self._topic, {}).get(self._partition, 0)
            group = f"{self._job.prefix}.backfill"
            self._tail = Tail(self._job.settings, self._topic, self._partition, start, group)
        for message in self._tail.read():
            if found := self._identity(message):
                key, run = found
                if self._there.get(key, run) != run:
                    self._doubled.add(key)
                self._there[key] = run

    def _publish(self, items: Sequence[Item]) -> None:
        if not items:
            return
        assert self._producer is not None
        self._store([claim for item in items for claim in item.prepared.claims])
        now = int(time.time() * 1000)
        told = Deliveries(self._topic, self._partition)
        self._producer.begin_transaction()
        for item in items:
            self._produce(self._producer, item.prepared, now, told)
        for shard, entries in _entries(items, now).items():
            for value in audit.encode(entries):
                self._producer.produce(self._job.audit_topic, value, None, shard, told)
        deliver(self._producer)
        if told.error is not None:
            raise KafkaException(told.error)
        if self._has_rival(items, told.offsets):
            self._producer.abort_transaction(CALL_TIMEOUT_S)
            raise _RacedError
        self._producer.commit_transaction(CALL_TIMEOUT_S)

    def _produce(
        self, transaction: Producer, prepared: Prepared, now: int, told: Deliveries
    ) -> None:
        for r in prepared.records:
            assert r.partition is not None
            stamp = min(r.timestamp_ms, now) if prepared.keeps_time else now
            headers: Any = r.headers
            transaction.produce(
                r.topic, r.value, r.key, r.partition, told, headers=headers, timestamp=stamp
            )

    def _identity(self, message: Message) -> tuple[Key, str] | None:
        home = self._job.homes.get(self._topic, "")
        return identity_of(message, self._job.id_names, self._job.queue_names, home)

    def _has_rival(self, items: Sequence[Item], offsets: Sequence[int]) -> bool:
        """Whether one of the messages lies between what we had read and our own last record."""
        assert self._tail is not None
        seen, last = self._tail.position, max(offsets)
        if last - seen + 1 == len(offsets):  # ours alone
            return False
        ours, keys = frozenset(offsets), {item.key for item in items}
        others = (m for m in self._between.read(seen, last) if m.offset() not in ours)
        found = (self._identity(message) for message in others)
        return any(each is not None and each[0] in keys for each in found)

    def _store(self, claims: Sequence[Claim]) -> None:
        """Before the records that point to them."""
        if claims:
            self._claims.store_now(claims)

    def _give_up(self, error: Exception, *, is_last: bool) -> None:
        """On this producer; on all of it when it makes no sense to go on. What was read may have
        a hole where the error was: it is read anew."""
        self._discard()
        if self._tail is not None:
            self._tail.close()
        self._tail, self._there = None, {}
        if isinstance(error, KafkaException):
            self._single = self._single or is_too_large(error)
            if is_fenced(error):
                what = f"another backfill writes to {self._where}; wait for it, or stop it"
                raise SinkUnavailable(what) from error
        if is_last:
            raise unavailable(f"writing to {self._where}", error) from error

    def _discard(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None  # librdkafka lets go of it here


def _entries(items: Iterable[Item], now: int) -> dict[int, list[AuditEntry]]:
    """Per partition of the audit topic; `at` is where `trace` looks for the record."""
    found: dict[int, list[AuditEntry]] = {}
    for item in items:
        prepared = item.prepared
        (entry,) = _decode_entries(prepared.entry)
        stamp = min(entry.stamp, now) if prepared.keeps_time else 0
        made = replace(entry, at=now, stamp=0 if stamp == now else stamp)
        found.setdefault(prepared.shard, []).append(made)
    return found


def _item(row: Row) -> Item:
    data: bytes = row["unit"]
    return Item(row["message_id"], row["queue"], row, decode_prepared(data), len(data))


def _batches(items: Iterable[Item], most: int) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and (len(batch) >= most or size + item.size > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size
    if batch:
        yield batch


def _result(item: Item, topic: str, partition: int, result: str, why: str) -> tuple[Any, ...]:
    where = item.message_id, item.queue, topic, partition
    held = (item.row[name] for name in ("origin", "held_in", "lookup_id"))
    return (*where, *held, result, why or None)
