"""Reads back what was committed to the topics of retained queues, journals and dead letters.

So a row is on the shelf only when its record is visible to every consumer, and a start is the same
as going on: from the last position, or from the front. A daemon thread; what it finds it hands to
the loop, and it waits when the loop is behind.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, cast

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, consumer
from bridge.core.ports import Record
from bridge.core.retained.keeping import row_in
from bridge.core.retained.rows import RecordAt, Row
from bridge.model.guid import Guid

Partition = tuple[str, int]
RETRY_S: Final = 2.0
_PER_CALL: Final = 1000
_AHEAD: Final = 4  # batches that the loop has not taken yet
_log = logging.getLogger(__name__)


class Batch(msgspec.Struct, frozen=True):
    """`positions` are the offsets that follow; `ended`: nothing more is there right now."""

    rows: Sequence[Row]
    positions: Mapping[Partition, int]
    ended: frozenset[Partition]


class HeldFollower:
    def __init__(
        self,
        settings: Settings,
        group: str,
        local: Guid,
        clock_skew_s: int,
        take: Callable[[Batch], None],
    ) -> None:
        """`take` is called in the loop that makes this."""
        self._settings, self._group = settings, group
        self._local, self._skew, self._take = local, clock_skew_s, take
        self._loop = asyncio.get_running_loop()
        self._wanted: SimpleQueue[Mapping[Partition, int]] = SimpleQueue()
        self._positions: dict[Partition, int] = {}
        self.spare: frozenset[str] = frozenset()  # topics that may be gone: no queue needs them
        self._room = threading.Semaphore(_AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="retained", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def follow(self, places: Mapping[Partition, int]) -> None:
        """From these offsets on; also later."""
        self._wanted.put(places)

    def stop(self) -> None:
        self._stop.set()
        self._room.release()
        self._thread.join(3.0)

    # -- in the thread ----------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._stop.is_set():
            source = consumer(self._settings, group=self._group)
            try:
                self._read(source)
            except KafkaException as error:
                _log.warning("retained queues wait for Kafka: %s", error.args[0].str())
                self._stop.wait(RETRY_S)
            finally:
                source.close()

    def _read(self, source: Consumer) -> None:
        self._drop_missing(source)
        source.assign([TopicPartition(t, p, o) for (t, p), o in self._positions.items()])
        while not self._stop.is_set():
            self._assign_more(source)
            if not self._positions:
                self._stop.wait(0.2)
                continue
            found = source.consume(_PER_CALL, timeout=0.2)
            if found:
                self._hand_over(self._batch(found))

    def _assign_more(self, source: Consumer) -> None:
        with suppress(Empty):
            while True:
                places = self._wanted.get_nowait()
                more = {at: offset for at, offset in places.items() if at not in self._positions}
                self._positions |= more
                missing = self._drop_missing(source)
                there = [TopicPartition(*at, more[at]) for at in more if at not in missing]
                if there:
                    source.incremental_assign(there)

    def _drop_missing(self, source: Consumer) -> set[Partition]:
        """One topic that was deleted must not hold up all the others."""
        doubtful = {at for at in self._positions if at[0] in self.spare}
        if not doubtful:
            return doubtful
        known = source.list_topics(timeout=CALL_TIMEOUT_S).topics
        missing = {at for at in doubtful if at[0] not in known}
        for at in missing:
            del self._positions[at]
            _log.warning("topic %s of a former queue is gone, partition %d too", *at)
        if missing:
            self._hand_over(Batch((), {}, frozenset(missing)))
        return missing

    def _batch(self, found: Sequence[Message]) -> Batch:
        rows: list[Row] = []
        positions: dict[Partition, int] = {}
        ended: set[Partition] = set()
        for message in found:
            error = message.error()
            at = message.topic() or "", message.partition() or 0
            offset = message.offset() or 0
            if error is None:
                ended.discard(at)
                positions[at] = offset + 1
                place = RecordAt(*at, offset)
                if (row := row_in(record_of(message), place, self._local, self._skew)) is not None:
                    rows.append(row)
            elif error.code() == KafkaError._PARTITION_EOF:
                positions[at] = offset
                ended.add(at)
            else:
                raise KafkaException(error)
        return Batch(rows, positions, frozenset(ended))

    def _hand_over(self, batch: Batch) -> None:
        self._room.acquire()
        with suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._taken, batch)
        self._positions |= batch.positions

    # -- in the loop ------------------------------------------------------------------------

    def _taken(self, batch: Batch) -> None:
        self._room.release()
        if not self._stop.is_set():
            self._take(batch)


def record_of(message: Message) -> Record:
    """A record as it was produced."""
    pairs = cast(list[tuple[str, bytes | None]], message.headers() or [])
    headers = {name: value or b"" for name, value in pairs}
    return Record(
        message.topic() or "",
        message.value() or b"",
        message.key(),
        headers,
        message.partition(),
        message.timestamp()[1],
    )
