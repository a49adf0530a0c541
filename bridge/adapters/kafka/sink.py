"""ShardSink on Kafka: one producer with a fixed transactional id. Design D1 to D3

The producer is trusted only while every call succeeds. After anything else it is thrown away
unasked: a new one with the same id settles what is open, and the state topic says what happened.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bridge.adapters.kafka.client import (
    CALL_TIMEOUT_S,
    Settings,
    is_fenced,
    is_for_good,
    is_of_topic,
    is_refusal,
    is_too_large,
    producer,
    unavailable,
)
from bridge.adapters.kafka.reader import read_to_end
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.kafka.worker import Worker
from bridge.core.ports import Record, RefusedRecord, Snapshot, Unit, UnitRefused
from bridge.model.errors import BridgeError, SinkUnavailable
from bridge.wire.cursor import well_formed

OWNER_KEY: Final = "owner"
SEEN_START_KEY: Final = "seen-start"  # offset in the seen topic that a start reads from
_ANY: Final = -1  # the key picks the partition
REPORTS_S: Final = 0.2  # for the last delivery reports of a transaction that failed
SETTLE_S: Final = 3.0  # after being fenced: time for a new owner to say who it is


class OwnershipLost(BridgeError):
    """Another appliance with our identity has taken the shard."""


class _Reports:
    """What became of each record of one traced unit."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._failed: dict[int, KafkaError] = {}
        self._local: set[int] = set()  # our client did not even queue them
        self.own: tuple[str, KafkaError] | None = None  # a topic of ours refused a record

    def on_record(self, position: int, error: KafkaError | None, _: Message | None = None) -> None:
        if error is not None and (is_for_good(error) or is_of_topic(error)):
            self._failed[position] = error

    def on_own(self, topic: str, error: KafkaError | None, _: Message | None = None) -> None:
        if error is not None and (is_for_good(error) or is_of_topic(error)):
            self.own = topic, error

    def refused(self, *, alone: bool) -> list[RefusedRecord]:
        """`alone`: each record was a batch. Else a size says nothing about one record."""
        size = KafkaError.MSG_SIZE_TOO_LARGE
        return [
            RefusedRecord(
                position,
                self._records[position].topic,
                error.name(),
                error.str(),
                self._records[position].timestamp_ms,
                is_of_topic(error),
            )
            for position, error in self._failed.items()
            if alone or error.code() != size or position in self._local
        ]

    def on_local(self, position: int, error: KafkaError) -> None:
        self._local.add(position)
        self._failed[position] = error


class _SeenStart:
    """Where the newest whole snapshot of the seen topic begins: a start reads from there on
    (bridge/core/history.py). Kafka tells the offset after the record was sent, and the snapshot
    counts once its last part is committed, so a unit notes the place of an earlier one."""

    def __init__(self) -> None:
        self._key = b""
        self._offset: int | None = None
        self._is_whole = False

    def take(self) -> int | None:
        """The place to note now, once. Before the unit is heard of."""
        if not self._is_whole or self._offset is None:
            return None
        self._is_whole = False
        return self._offset

    def hear(self, unit: Unit) -> None:
        """Of a unit that is sent. (If it is not committed, this object is thrown away.)"""
        if unit.snapshot_begins:
            self._key, self._offset, self._is_whole = unit.snapshot_begins.encode(), None, False
        if unit.snapshot_ends:
            self._is_whole = True

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None and message.key() == self._key:
            self._offset = message.offset()


class KafkaShardSink:
    def __init__(
        self, settings: Settings, own: OwnTopics, shard: int, *, is_of_pair: bool = False
    ) -> None:
        """`is_of_pair`: another appliance may lawfully take over (`standby`)."""
        self._settings, self._own, self._shard = settings, own, shard
        self._is_of_pair = is_of_pair
        self._transactional_id = f"{own.prefix}.shard-{shard}"
        self._me = str(uuid.uuid4()).encode()
        self._claimed = False
        self._fenced = False
        self._single = False  # one record per batch: a topic takes less than a batch may have
        self._closed = False
        self._producer: Producer | None = None
        self._reports: _Reports | None = None  # of the unit under way, if it is traced
        self._seen = _SeenStart()
        # Every blocking call of this shard runs here, one after the other.
        self._worker = Worker(self._transactional_id)

    async def open(self) -> Snapshot:
        if self._fenced:
            await asyncio.sleep(SETTLE_S)
        return await self._worker.run(self._open)

    async def publish(self, unit: Unit, *, traced: bool = False) -> None:
        # Queueing is CPU under the interpreter's lock wherever it runs; here it does not fight
        # with the sessions for it. Only the wait for Kafka goes to the thread.
        if self._producer is None:
            raise SinkUnavailable("Kafka: the shard is not open")
        self._reports = _Reports(unit.records) if traced else None
        try:
            if self._reports is not None:
                self._produce_traced(self._producer, unit, self._reports)
            else:
                self._produce(self._producer, unit)
        except (KafkaException, BufferError) as error:
            raise await self._worker.run(partial(self._failed, "queueing", error)) from error
        await self._worker.run(self._commit)

    def let_go(self) -> None:
        if self._producer is not None:
            self._producer.purge()  # the commit fails at once, for want of these records

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._worker.run(self._discard)
            self._worker.stop()

    # -- in the shard's thread --------------------------------------------------------------

    def _open(self) -> Snapshot:
        self._discard()
        try:
            if self._fenced:  # ask first: a new owner must not be fenced in turn
                self._stop_if_replaced(self._read_state())
            alone = {"batch.num.messages": 1} if self._single else {}
            self._producer = producer({**self._settings, **alone}, self._transactional_id)
            # One that has no connection yet would ask for its coordinator twice, 0.5 s apart.
            self._producer.list_topics(self._own.state, timeout=CALL_TIMEOUT_S)
            self._producer.init_transactions(CALL_TIMEOUT_S)
            state = self._read_state()
            snapshot = Snapshot(state, self._read_seen(int(state.get(SEEN_START_KEY, b"0"))))
            # Also when we were only cut off: another owner's unit numbers are not ours.
            self._stop_if_replaced(snapshot.state)
            self._produce(self._producer, Unit(state={OWNER_KEY: self._me}))
            self._producer.commit_transaction(CALL_TIMEOUT_S)
        except KafkaException as error:
            raise self._failed("taking over the shard", error) from error
        except BridgeError:
            self._discard()
            raise
        self._claimed, self._fenced = True, False
        return snapshot

    def _stop_if_replaced(self, state: Mapping[str, bytes]) -> None:
        owner = state.get(OWNER_KEY)
        if self._claimed and owner not in (None, self._me):
            hint = (
                "it leads now; hint: start this one again, and it waits as the standby"
                if self._is_of_pair
                else "hint: run only one, or give each its own prefix"
            )
            raise OwnershipLost(
                f"shard {self._shard} of {self._own.prefix} was taken over by another appliance "
                f"with the same topic_prefix; {hint}"
            )

    def _commit(self) -> None:
        assert self._producer is not None
        try:
            self._producer.commit_transaction(CALL_TIMEOUT_S)
        except KafkaException as error:
            raise self._failed("committing", error) from error

    def _produce(self, transaction: Producer, unit: Unit) -> None:
        """Data first, so that it is under way while the rest is queued."""
        transaction.begin_transaction()
        own, shard, produce = self._own, self._shard, transaction.produce
        start = self._seen.take()
        self._seen.hear(unit)
        for r in unit.records:
            partition = _ANY if r.partition is None else r.partition
            headers: Any = r.headers  # what the client calls a list of headers is invariant in mypy
            produce(r.topic, r.value, r.key, partition, headers=headers, timestamp=r.timestamp_ms)
        for r in unit.rejects:
            headers = r.headers
            produce(own.rejects, r.value, r.key, shard, headers=headers, timestamp=r.timestamp_ms)
        for key, value in unit.state.items():
            produce(own.state, value, key.encode("utf-8", "surrogatepass"), shard)
        for key, seen in unit.seen.items():
            produce(own.seen, seen, key.encode(), shard, on_delivery=self._seen.on_delivery)
        for entries in unit.audit:
            produce(own.audit, entries, None, shard)
        if start is not None:
            produce(own.state, b"%d" % start, SEEN_START_KEY, shard)

    def _produce_traced(self, transaction: Producer, unit: Unit, reports: _Reports) -> None:
        """The same with a report for each record. Raises the first refusal of our own client, once
        it has been asked for all records."""
        transaction.begin_transaction()
        shard, produce = self._shard, transaction.produce
        refused: KafkaException | None = None
        for position, r in enumerate(unit.records):
            partition = _ANY if r.partition is None else r.partition
            headers: Any = r.headers
            told: Any = partial(reports.on_record, position)
            try:
                produce(
                    r.topic,
                    r.value,
                    r.key,
                    partition,
                    headers=headers,
                    timestamp=r.timestamp_ms,
                    on_delivery=told,
                )
            except KafkaException as error:
                reports.on_local(position, error.args[0])
                refused = refused or error
        if refused is not None:
            raise refused
        self._seen.hear(unit)  # what is ready to be noted is noted by a unit that is not traced
        for topic, value, key, headers, stamp in self._own_records(unit):
            told = partial(self._on_own, reports, topic)
            try:
                produce(
                    topic, value, key, shard, headers=headers, timestamp=stamp, on_delivery=told
                )
            except KafkaException as error:
                reports.on_own(topic, error.args[0])
                raise

    def _on_own(
        self, reports: _Reports, topic: str, error: KafkaError | None, message: Message
    ) -> None:
        reports.on_own(topic, error)
        if topic == self._own.seen:
            self._seen.on_delivery(error, message)

    def _own_records(self, unit: Unit) -> Iterator[tuple[str, Any, Any, Any, int]]:
        own = self._own
        for r in unit.rejects:
            yield own.rejects, r.value, r.key, r.headers, r.timestamp_ms
        for key, value in unit.state.items():
            yield own.state, value, key.encode("utf-8", "surrogatepass"), None, 0
        for key, seen in unit.seen.items():
            yield own.seen, seen, key.encode(), None, 0
        for entries in unit.audit:
            yield own.audit, entries, None, None, 0

    def _failed(self, doing: str, error: Exception) -> SinkUnavailable:
        where = f"shard {self._shard}: {doing}"
        reports, self._reports = self._reports, None
        if not isinstance(error, KafkaException):
            self._discard()
            return unavailable(where, error)
        self._fenced = self._fenced or is_fenced(error)  # until it is known who holds the shard
        alone, self._single = self._single, self._single or is_too_large(error)
        if reports is not None and self._producer is not None:
            self._producer.poll(REPORTS_S)
        self._discard()
        if reports is not None and reports.own is not None:
            topic, cause = reports.own
            return SinkUnavailable(f"Kafka: {where}: our topic {topic}: {cause.str()}")
        told = unavailable(where, error)
        refused = [] if reports is None else reports.refused(alone=alone)
        return UnitRefused(str(told), refused) if refused or is_refusal(error) else told

    def _discard(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None  # librdkafka lets go of it here

    def _read_state(self) -> dict[str, bytes]:
        state: dict[str, bytes] = {}
        for message in read_to_end(self._settings, self._own.state, self._shard):
            # An earlier version kept halves of surrogate pairs in the names of queues.
            key = well_formed((message.key() or b"").decode("utf-8", "surrogatepass"))
            state.pop(key, None)  # in the order they were last written
            if (value := message.value()) is not None:
                state[key] = value
        return state

    def _read_seen(self, start: int) -> list[bytes]:
        found = self._seen_since(start)
        # Nothing behind a place that was noted: the topic was made again, or has grown old.
        return self._seen_since(0) if start and not found else found

    def _seen_since(self, start: int) -> list[bytes]:
        self._seen = _SeenStart()
        read = read_to_end(self._settings, self._own.seen, self._shard, start)
        return [value for message in read if (value := message.value()) is not None]
