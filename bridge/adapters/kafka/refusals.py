"""The latest refusals: the end of the rejects topic, for who wants to know what is turned away."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, consumer
from bridge.adapters.kafka.worker import Worker
from bridge.model.errors import SinkUnavailable
from bridge.model.words import class_name, meaning_of

KEPT: Final = 200
SPAN: Final = 400  # offsets of a partition that are looked back; markers take some
FRESH_S: Final = 2.0
READ_S: Final = 5.0
MAX_TEXT: Final = 500  # of one value: labels and names come from outside

Row = dict[str, Any]


class LatestRefusals:
    """Each look goes on where the last one ended. One consumer, made when somebody asks."""

    def __init__(self, settings: Settings, topic: str, partitions: int) -> None:
        self._settings, self._topic = settings, topic
        self._next = dict.fromkeys(range(partitions), 0)
        self._rows: deque[Row] = deque(maxlen=KEPT)
        self._source: Consumer | None = None
        self._worker = Worker("refusals")
        self._at = float("-inf")

    async def rows(self) -> list[Row]:
        """Newest first. Raises SinkUnavailable."""
        return await self._worker.run(self._look)

    def stop(self) -> None:
        self._worker.stop()

    def _look(self) -> list[Row]:
        if time.monotonic() - self._at > FRESH_S:
            try:
                self._read()
            except KafkaException as error:
                self._close()
                what = f"Kafka: reading {self._topic}: {error.args[0].str()}"
                raise SinkUnavailable(what) from error
            self._at = time.monotonic()
        return sorted(self._rows, key=lambda row: -int(row["at"]))

    def _read(self) -> None:
        if self._source is None:
            self._source = consumer(self._settings, group=f"{self._topic}-latest")
        starts = self._starts(self._source)
        if not starts:
            return
        self._source.assign(starts)
        try:
            self._follow(self._source, {start.partition for start in starts})
        finally:
            self._source.unassign()

    def _starts(self, source: Consumer) -> list[TopicPartition]:
        starts = []
        for number, known in self._next.items():
            place = TopicPartition(self._topic, number)
            found = source.get_watermark_offsets(place, timeout=CALL_TIMEOUT_S)
            if found is not None and found[1] > known:
                start = max(known, found[0], found[1] - SPAN)
                starts.append(TopicPartition(self._topic, number, start))
        return starts

    def _follow(self, source: Consumer, open_ends: set[int]) -> None:
        deadline = time.monotonic() + READ_S
        while open_ends and time.monotonic() < deadline:
            message = source.poll(0.5)
            if message is None:
                continue
            error = message.error()
            number, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                self._rows.append(_row(message))
                self._next[number] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._next[number] = max(self._next[number], offset)
                open_ends.discard(number)
            else:
                raise KafkaException(error)

    def _close(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()


def _row(message: Message) -> Row:
    headers = dict(message.headers() or ())

    def text(name: str) -> str:
        value = headers.get(name) or b""
        return (value if isinstance(value, str) else value.decode("utf-8", "replace"))[:MAX_TEXT]

    number = text("msmq.outcome")
    name = class_name(int(number)) if number.isdigit() else number
    return {
        "at": message.timestamp()[1],
        "id": text("msmq.id"),
        "queue": text("msmq.queue") or text("msmq.dest"),
        "class": name,
        "words": meaning_of(name),
        "reason": text("__connect.errors.exception.message"),
        "label": text("msmq.label"),
        "peer": text("msmq.peer"),
        "transport": text("msmq.transport"),
    }
