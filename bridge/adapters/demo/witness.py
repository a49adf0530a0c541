"""Looks at Kafka as any consumer would: the verdicts as they come, the records afterwards.

Blocking and read_committed; what is not committed never happened.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as KafkaMessage

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, consumer, unavailable
from bridge.core.audit import AuditEntry

POLL_S: Final = 0.2
READ_S: Final = 20.0
_decode = msgspec.json.Decoder(list[AuditEntry]).decode


class FoundRecord(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: dict[str, bytes]


class Watch:
    """A thread that hands on every verdict from now on."""

    def __init__(
        self, settings: Settings, topic: str, tell: Callable[[list[AuditEntry]], None]
    ) -> None:
        self._source = consumer(settings, group=f"{topic}-demo")
        self._topic, self._tell = topic, tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="demo-watch", daemon=True)

    def start(self) -> None:
        """Returns when nothing that comes later can be missed."""
        try:
            places = _partitions(self._source, self._topic)
            for place in places:
                ends = self._source.get_watermark_offsets(place, timeout=CALL_TIMEOUT_S)
                place.offset = ends[1] if ends else 0
            self._source.assign(places)
        except KafkaException as error:
            self._source.close()
            raise unavailable("looking at the audit topic", error) from error
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _follow(self) -> None:
        try:
            while not self._stop.is_set():
                entries = [
                    entry
                    for message in self._source.consume(500, timeout=POLL_S)
                    if message.error() is None
                    for entry in _decode(message.value() or b"[]")
                ]
                if entries and not self._stop.is_set():
                    self._tell(entries)
        finally:
            self._source.close()


def read_back(settings: Settings, rejects: str, entries: Iterable[AuditEntry]) -> list[FoundRecord]:
    """The records of these verdicts, by topic, partition and offset; also what was refused."""
    source = consumer(settings, group=f"{rejects}-demo")
    try:
        search = _Search(entries)
        source.assign(search.places(source, rejects))
        found = list(search.records(source))
    except KafkaException as error:
        raise unavailable("reading the records back", error) from error
    finally:
        source.close()
    return sorted(found, key=lambda record: (record.topic, record.partition, record.offset))


class _Search:
    """By id; where a mapping leaves that header out, by place and timestamp, which the audit has.

    The marker of a commit may reach one partition later than another, so the end of a partition
    does not end the search; that all are found does.
    """

    def __init__(self, entries: Iterable[AuditEntry]) -> None:
        self._missing: dict[str, AuditEntry] = {}
        self._by_time: dict[tuple[str, int, int], list[str]] = {}
        for entry in entries:
            if entry.topic or entry.message_class:
                self._missing[entry.id] = entry
                moment = entry.topic, entry.partition, _stamp(entry)
                self._by_time.setdefault(moment, []).append(entry.id)

    def places(self, source: Consumer, rejects: str) -> list[TopicPartition]:
        """Where to begin: each partition at the time of its first verdict."""
        first: dict[tuple[str, int], int] = {}
        for entry in self._missing.values():
            places = [TopicPartition(entry.topic, entry.partition)]
            for place in places if entry.topic else _partitions(source, rejects):
                key = place.topic, place.partition
                first[key] = min(first.get(key, _stamp(entry)), _stamp(entry))
        asked = [TopicPartition(*place, stamp) for place, stamp in first.items()]
        return source.offsets_for_times(asked, timeout=CALL_TIMEOUT_S) if asked else []

    def records(self, source: Consumer) -> Iterator[FoundRecord]:
        deadline = time.monotonic() + READ_S
        while self._missing and time.monotonic() < deadline:
            for message in source.consume(500, timeout=POLL_S):
                error = message.error()
                if error is None:
                    yield from self._match(message)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)

    def _match(self, message: KafkaMessage) -> Iterator[FoundRecord]:
        topic, partition = str(message.topic()), message.partition() or 0
        stamp = message.timestamp()[1]
        headers = {name: _bytes(value) for name, value in dict(message.headers() or ()).items()}
        named = headers.get("msmq.id")
        at_this_time = self._by_time.get((topic, partition, stamp))
        if named is not None:
            found = named.decode("utf-8", "replace")
        else:
            found = at_this_time.pop(0) if at_this_time else ""
        if self._missing.pop(found, None) is not None:
            yield FoundRecord(
                message_id=found,
                topic=topic,
                partition=partition,
                offset=message.offset() or 0,
                timestamp_ms=stamp,
                key=message.key(),
                value=_bytes(message.value()),
                headers=headers,
            )


def _stamp(entry: AuditEntry) -> int:
    return entry.stamp or entry.at


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def _partitions(source: Consumer, topic: str) -> list[TopicPartition]:
    found = source.list_topics(topic, timeout=CALL_TIMEOUT_S).topics[topic].partitions
    return [TopicPartition(topic, number) for number in sorted(found)]
