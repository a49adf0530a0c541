"""What a transactional producer has put into the log, before it commits."""

from __future__ import annotations

import time
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bridge.adapters.kafka.client import CALL_TIMEOUT_S

_POLL_S: Final = 0.05


def deliver(transaction: Producer) -> None:
    """Until all of it is in the log, or is not.

    By `poll`, which stops at once when the client breaks (fenced, say). `flush`, and `commit` while
    something is still under way, go on calling back into Python with that error pending, and the
    interpreter may die of it.
    """
    deadline = time.monotonic() + CALL_TIMEOUT_S
    while len(transaction):
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        transaction.poll(_POLL_S)


class Deliveries:
    """What librdkafka reports of a transaction: where the records of a partition are."""

    def __init__(self, topic: str, partition: int) -> None:
        self._place = topic, partition
        self.offsets: list[int] = []
        self.error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.error = self.error or error
        elif (message.topic(), message.partition()) == self._place:
            self.offsets.append(message.offset() or 0)
