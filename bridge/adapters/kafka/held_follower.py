"""Reads back what was committed to the topics of retained queues, journals and dead letters.

So a row is on the shelf only when its record is visible to every consumer, and a start is the same
as going on: from the last position, or from the front. A daemon thread; what it finds it hands to
the loop, and it waits when the loop is behind.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, cast

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, consumer
from bridge.adapters.kafka.lag import Lag
from bridge.core.ports import Record
from bridge.core.retained.keeping import row_in
from bridge.core.retained.rows import RecordAt, Row
from bridge.model.errors import BridgeError
from bridge.model.guid import Guid

Partition = tuple[str, int]
RETRY_S: Final = 2.0
LOOK_AGAIN_S: Final = 30.0  # for a topic that is not there
WAIT_S: Final = 0.2  # for a record, while nothing else is to be done
_PER_CALL: Final = 5000
_AHEAD: Final = 4  # batches that the loop has not taken yet
_NOT_THERE: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
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
        fail: Callable[[Exception], None],
    ) -> None:
        """`take` is called in the loop that makes this; `fail`, too, with a bug of ours."""
        self._settings, self._group = settings, group
        self._local, self._skew, self._take = local, clock_skew_s, take
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._wanted: SimpleQueue[Mapping[Partition, int]] = SimpleQueue()
        self._positions: dict[Partition, int] = {}
        self._absent: dict[Partition, int] = {}
        self.lag = 0  # records that it has not read
        self._look_again = 0.0
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
        try:
            self._reconnect()
        except Exception as error:
            self._call(partial(self._fail, error))

    def _reconnect(self) -> None:
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
        self._find_more(source)  # what librdkafka gets first it looks up at once, not what follows
        source.assign(_places(self._positions))
        lag = Lag(self._positions)
        while not self._stop.is_set():
            if more := self._find_more(source):
                source.incremental_assign(_places(more))
                lag.follow(more)
            if not self._positions:
                self._stop.wait(WAIT_S)
                continue
            self.lag = lag.measure(source)
            found = source.consume(1, timeout=WAIT_S)
            if found:  # more would be waited for: readers want the first one now
                batch = self._batch(found + source.consume(_PER_CALL, timeout=0))
                lag.follow(batch.positions)
                self._hand_over(batch)

    def _find_more(self, source: Consumer) -> dict[Partition, int]:
        """Partitions that nobody has asked for before."""
        more: dict[Partition, int] = {}
        with suppress(Empty):
            while True:
                more |= self._wanted.get_nowait()
        if self._absent and time.monotonic() > self._look_again:
            more, self._absent = self._absent | more, {}
        more = {at: offset for at, offset in more.items() if at not in self._positions}
        there = self._those_there(source, more) if more else {}
        self._positions |= there
        return there

    def _those_there(self, source: Consumer, wanted: dict[Partition, int]) -> dict[Partition, int]:
        """Somebody may have deleted a topic: the others are read; it is looked for now and then."""
        try:
            found = source.list_topics(timeout=CALL_TIMEOUT_S).topics
        except KafkaException:
            self._wanted.put(wanted)
            raise
        there = {at: offset for at, offset in wanted.items() if at[0] in found}
        absent = {at: offset for at, offset in wanted.items() if at[0] not in found}
        if absent:
            for topic in sorted({topic for topic, _ in absent}):
                _log.error("topic %s is not in Kafka any more: its messages cannot be read", topic)
            self._absent |= absent
            self._look_again = time.monotonic() + LOOK_AGAIN_S
            self._hand_over(Batch((), {}, frozenset(absent)))
        return there

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
                rows += self._rows(message, RecordAt(*at, offset))
            elif error.code() == KafkaError._PARTITION_EOF:
                positions[at] = offset
                ended.add(at)
            elif error.code() in _NOT_THERE:  # the others go on; it is asked for again and again
                _log.error("topic %s is not in Kafka any more: its messages cannot be read", at[0])
            else:
                raise KafkaException(error)
        return Batch(rows, positions, frozenset(ended))

    def _rows(self, message: Message, at: RecordAt) -> Iterator[Row]:
        """Anybody may write to a topic, and what he likes."""
        try:
            row = row_in(record_of(message), at, self._local, self._skew)
        except (ValueError, KeyError, BridgeError, msgspec.DecodeError) as error:
            _log.error(
                "%s-%d: record %d is marked as ours, but is no message: %s", *_place(at), error
            )
            return
        if row is not None:
            yield row

    def _hand_over(self, batch: Batch) -> None:
        self._room.acquire()
        self._call(partial(self._taken, batch))
        self._positions |= batch.positions

    def _call(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(what)

    # -- in the loop ------------------------------------------------------------------------

    def _taken(self, batch: Batch) -> None:
        self._room.release()
        if not self._stop.is_set():
            self._take(batch)


def _places(offsets: Mapping[Partition, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number, at) for (topic, number), at in offsets.items()]


def _place(at: RecordAt) -> tuple[str, int, int]:
    return at.topic, at.partition, at.offset


def record_of(message: Message) -> Record:
    """A record as it was produced."""
    headers = dict(cast(list[tuple[str, bytes]], message.headers() or ()))
    if None in headers.values():  # a header may have no value
        headers = {name: value or b"" for name, value in headers.items()}
    return Record(
        message.topic() or "",
        message.value() or b"",
        message.key(),
        headers,
        message.partition(),
        message.timestamp()[1],
    )
