"""Where is my message? Follows the audit topic into an index, and answers from both. Design D6"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, consumer
from bridge.adapters.kafka.lag import Lag
from bridge.adapters.store.audit_index import AuditIndex, Place
from bridge.core.audit import AuditEntry
from bridge.model.errors import SinkUnavailable

_log = logging.getLogger(__name__)
MAX_RECORDS: Final = 100  # of the audit topic, for one question
MAX_SCAN: Final = 20_000  # records of a data topic around the moment of arrival
RETRY_S: Final = 2.0
DEFER_S: Final = 10.0
READ_S: Final = 10.0
# The topic was deleted or made anew with fewer partitions.
_GONE: Final = (
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_decode = msgspec.json.Decoder(list[AuditEntry]).decode


class Follower:
    """A daemon thread that keeps the index close to the end of the audit topic."""

    def __init__(
        self,
        settings: Settings,
        topic: str,
        partitions: int,
        index: AuditIndex,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings, self._topic, self._partitions = settings, topic, partitions
        self._index, self._busy = index, busy
        self.lag = 0  # records that it has not read
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="audit-index", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(3.0)

    def _follow(self) -> None:
        while not self._stop.is_set():
            source = consumer(self._settings, group=f"{self._topic}-index")
            try:
                self._read(source)
            except KafkaException as error:
                _log.warning("the audit index waits for Kafka: %s", error.args[0].str())
                self._stop.wait(RETRY_S)
            except sqlite3.Error as error:  # a full disk must not end it for good
                _log.warning("the audit index cannot be written: %s", error)
                self._stop.wait(RETRY_S)
            finally:
                source.close()

    def _read(self, source: Consumer) -> None:
        known = self._index.positions()
        source.assign(
            [TopicPartition(self._topic, n, known.get(n, 0)) for n in range(self._partitions)]
        )
        looked = time.monotonic()
        lag = Lag({(self._topic, n): known.get(n, 0) for n in range(self._partitions)})
        while not self._stop.is_set():
            if self._busy() and time.monotonic() < looked + DEFER_S:
                self.lag = lag.measure(source)
                self._stop.wait(0.2)  # messages first; the index catches up when they pause
                continue
            batch = source.consume(500, timeout=0.5)
            if not batch:
                looked = time.monotonic()
            records = []
            for message in batch:
                error = message.error()
                lag.saw(message)
                if error is None:
                    records.append((_place(message), message.value() or b"[]"))
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
            if records:
                self._index.add(records)
            self.lag = lag.measure(source)


class Tracer:
    """Blocking; call it in a thread. One question at a time, on a connection that is kept."""

    def __init__(self, settings: Settings, audit_topic: str, index: AuditIndex) -> None:
        self._topic, self._index = audit_topic, index
        self._source = consumer(settings, group=f"{audit_topic}-trace")
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._source.close()

    def trace(self, kind: str, text: str) -> list[dict[str, Any]]:
        """The verdicts of a message, oldest first, each with its record if there is one."""
        places = self._index.find(kind, text, MAX_RECORDS)
        if not places:
            return []
        with self._lock:
            try:
                return self._answer(kind, text, places)
            except KafkaException as error:
                raise SinkUnavailable(f"Kafka: reading the trace: {error.args[0].str()}") from error
            finally:
                self._source.unassign()

    def _answer(self, kind: str, text: str, places: Sequence[Place]) -> list[dict[str, Any]]:
        found = [
            entry
            for message in self._records(self._source, places[::-1])
            for entry in _decode(message.value() or b"[]")
            if getattr(entry, kind).lower() == text.lower()
        ]
        found.sort(key=lambda entry: entry.at)
        return [self._story(self._source, entry) for entry in found]

    def _records(self, source: Consumer, places: Sequence[Place]) -> Iterator[Message]:
        for place in places:
            at = TopicPartition(self._topic, place.partition, place.offset)
            for message in _from(source, at):
                if message.offset() == place.offset:
                    yield message
                break

    def _story(self, source: Consumer, entry: AuditEntry) -> dict[str, Any]:
        story: dict[str, Any] = msgspec.to_builtins(entry)
        if entry.topic:
            story["offset"] = self._offset(source, entry)
        return story

    def _offset(self, source: Consumer, entry: AuditEntry) -> int | None:
        """The audit has the record's timestamp, so it is where the time index points."""
        asked = TopicPartition(entry.topic, entry.partition, entry.stamp or entry.at)
        try:
            (start,) = source.offsets_for_times([asked], timeout=CALL_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() in _GONE:
                return None
            raise
        if start.offset < 0:
            return None
        wanted = entry.id.encode()
        for seen, message in enumerate(_from(source, start)):
            if dict(message.headers() or ()).get("msmq.id") == wanted:
                return message.offset()
            if seen >= MAX_SCAN:
                break
        return None


def _from(source: Consumer, start: TopicPartition) -> Iterator[Message]:
    """Records from there to the end of the partition."""
    source.assign([start])
    deadline = time.monotonic() + READ_S
    while time.monotonic() < deadline:
        message = source.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        else:
            raise KafkaException(error)
    raise SinkUnavailable(f"Kafka: {start.topic}-{start.partition} was not read in {READ_S:g} s")


def _place(message: Message) -> Place:
    return Place(message.partition() or 0, message.offset() or 0)
