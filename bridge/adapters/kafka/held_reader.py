"""Fetches the records of waiting messages, some ahead: readers mostly take them in order."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bridge.adapters.kafka.client import Settings, consumer
from bridge.adapters.kafka.held_follower import record_of
from bridge.adapters.kafka.worker import Worker
from bridge.core.mapping import size_of
from bridge.core.ports import Record
from bridge.core.retained.rows import RecordAt
from bridge.model.errors import SinkUnavailable

READ_S: Final = 10.0
POLL_S: Final = 0.1
AHEAD: Final = 500  # records
CACHE_BYTES: Final = 32 << 20
_OVERHEAD: Final = 2048  # of a record in memory, headers apart


class RecordLost(SinkUnavailable):
    """Kafka has it no more: retention, compaction, or somebody's hand. It will not come back."""

    def __init__(self, at: RecordAt) -> None:
        self.at = at
        super().__init__(f"Kafka: {at.topic}-{at.partition} has no record {at.offset} any more")


class HeldReader:
    """One thread, one consumer; what it read lately is at hand."""

    def __init__(self, settings: Settings, group: str) -> None:
        self._settings, self._group = settings, group
        self._worker = Worker(group)
        self._source: Consumer | None = None
        self._next: RecordAt | None = None  # what the consumer would give now
        self._cache: OrderedDict[RecordAt, Record] = OrderedDict()
        self._size = 0

    async def read(self, places: Iterable[RecordAt]) -> dict[RecordAt, Record]:
        """All of them. SinkUnavailable if Kafka is away, RecordLost if one is gone for good."""
        wanted = list(places)
        at_hand = {at: record for at in wanted if (record := self._cache.get(at)) is not None}
        if len(at_hand) == len(set(wanted)):
            return at_hand
        return await self._worker.run(lambda: self._read(wanted))

    def stop(self) -> None:
        """Whoever waits for a record gets it, or hears that it was not read."""
        self._worker.stop()

    # -- in the thread ----------------------------------------------------------------------

    def _read(self, wanted: list[RecordAt]) -> dict[RecordAt, Record]:
        found: dict[RecordAt, Record] = {}
        for at in sorted(wanted, key=lambda at: (at.topic, at.partition, at.offset)):
            record = self._cache.get(at)
            found[at] = self._fetch(at) if record is None else record
        return found

    def _fetch(self, at: RecordAt) -> Record:
        """A message is given up only if a consumer of its own does not find it either."""
        record = self._look_for(at)
        if record is None:
            self._close()
            record = self._look_for(at)
        if record is None:
            raise RecordLost(at)
        return record

    def _look_for(self, at: RecordAt) -> Record | None:
        """None: Kafka gives what comes behind it, or the end."""
        deadline = time.monotonic() + READ_S
        try:
            source = self._at(at)
            while time.monotonic() < deadline:
                found = self._consume(source, at)
                if at in found:
                    return found[at]
                if self._next is not None and self._next.offset > at.offset:
                    return None
        except KafkaException as error:
            self._close()
            raise SinkUnavailable(f"Kafka: reading a message: {error.args[0].str()}") from error
        self._close()
        raise SinkUnavailable(f"Kafka: {at.topic}-{at.partition} was not read in {READ_S:g} s")

    def _at(self, at: RecordAt) -> Consumer:
        """A consumer that gives this record next, or soon."""
        if self._source is None:
            self._source = consumer(self._settings, group=self._group)
            self._next = None
        following = self._next
        if (
            following is None
            or (following.topic, following.partition) != (at.topic, at.partition)
            or not 0 <= at.offset - following.offset <= AHEAD
        ):
            self._source.assign([TopicPartition(at.topic, at.partition, at.offset)])
            self._next = at
        return self._source

    def _consume(self, source: Consumer, at: RecordAt) -> dict[RecordAt, Record]:
        """The next one, and what has come with it."""
        found: dict[RecordAt, Record] = {}
        for message in [*source.consume(1, POLL_S), *source.consume(AHEAD, 0)]:
            error, offset = message.error(), message.offset() or 0
            if (message.topic(), message.partition()) != (at.topic, at.partition):
                continue  # of the partition before this one
            if error is None:
                place = RecordAt(at.topic, at.partition, offset)
                found[place] = record_of(message)
                self._next = RecordAt(at.topic, at.partition, offset + 1)
                self._keep(place, found[place])
            elif error.code() == KafkaError._PARTITION_EOF:
                self._next = RecordAt(at.topic, at.partition, offset)
            else:
                raise KafkaException(error)
        return found

    def _keep(self, at: RecordAt, record: Record) -> None:
        if at in self._cache:
            return
        self._cache[at] = record
        self._size += _weight(record)
        while self._size > CACHE_BYTES and len(self._cache) > 1:
            _, old = self._cache.popitem(last=False)
            self._size -= _weight(old)

    def _close(self) -> None:
        self._next = None
        if self._source is not None:
            self._source.close()
            self._source = None


def _weight(record: Record) -> int:
    return size_of(record) + _OVERHEAD
