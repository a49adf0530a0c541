"""Reads a partition to its end: what every predecessor committed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, admin_client, consumer
from bridge.model.errors import SinkUnavailable

_PER_CALL: Final = 10_000
_WAIT_S: Final = 0.1  # a call that is not filled lasts this long, at the end too
_GRACE_S: Final = 10.0
STUCK_AFTER_S: Final = 90.0  # longer than any transaction of ours may live


def read_to_end(settings: Settings, topic: str, partition: int) -> Iterator[Message]:
    """Every committed record up to the end as it is now.

    A transaction that some producer left open hides what is behind it, so the end is taken from
    the uncommitted view and the committed one has to reach it.
    """
    place = TopicPartition(topic, partition, 0)
    end = _end_of(settings, place)
    if end == 0:
        return
    source = consumer(settings, group=f"{topic}-reader")
    try:
        source.assign([place])
        deadline = time.monotonic() + STUCK_AFTER_S
        while True:
            for message in source.consume(_PER_CALL, timeout=_WAIT_S):
                error = message.error()
                if error is None:
                    deadline = time.monotonic() + STUCK_AFTER_S
                    yield message
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif (message.offset() or 0) >= end:
                    return
            if time.monotonic() > deadline:
                raise SinkUnavailable(
                    f"Kafka: {topic}-{partition} cannot be read to its end ({end}): a transaction "
                    "hangs in it; see 'Hanging transactions' in the README before you abort it"
                )
    finally:
        source.close()


def _end_of(settings: Settings, place: TopicPartition) -> int:
    admin = admin_client(settings)  # must outlive its futures
    futures = admin.list_offsets(
        {place: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=CALL_TIMEOUT_S,
    )
    # Longer than the request: its own time-out tells more than a bare TimeoutError.
    return int(futures[place].result(CALL_TIMEOUT_S + _GRACE_S).offset)
