"""What others have put into a partition since it was last read to its end, committed or not.

A writer looks here after its records are in the log and before it commits. What lies in front of
them is final: nobody can put anything there any more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, consumer
from bridge.model.errors import SinkUnavailable

_PER_CALL: Final = 1000
_WAIT_S: Final = 0.1


class Between:
    """Opened when it is first needed: without live traffic never."""

    def __init__(self, settings: Settings, topic: str, partition: int, group: str) -> None:
        self._settings, self._group = settings, group
        self._topic, self._partition = topic, partition
        self._source: Consumer | None = None

    def read(self, start: int, end: int) -> Iterator[Message]:
        """Every record from `start` to before `end`, which has one itself."""
        if self._source is None:
            self._source = consumer(self._settings, self._group, isolation="read_uncommitted")
        self._source.assign([TopicPartition(self._topic, self._partition, start)])
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while True:
            for message in self._source.consume(_PER_CALL, timeout=_WAIT_S):
                error = message.error()
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    continue
                offset = message.offset()
                if offset is None or offset >= end:
                    return
                yield message
            if time.monotonic() > deadline:
                where = f"{self._topic}-{self._partition}"
                raise SinkUnavailable(f"Kafka: {where}: what we have written cannot be read")

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
