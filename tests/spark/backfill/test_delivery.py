"""Until all is in the log; a broken client stops it at once."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from msmq_jobs.backfill import delivery
from msmq_jobs.backfill.delivery import Deliveries, deliver


class Sent:
    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self.topic, self.partition, self.offset = lambda: topic, lambda: partition, lambda: offset


class Slow:
    """A producer with so many records under way."""

    def __init__(self, left: int, error: KafkaError | None = None) -> None:
        self.left, self.error = left, error

    def __len__(self) -> int:
        return self.left

    def poll(self, _: float) -> int:
        if self.error is not None:
            raise KafkaException(self.error)
        self.left -= 1
        return 1


def test_the_offsets_of_one_partition_and_the_first_error() -> None:
    told = Deliveries("t", 1)
    records: list[Any] = [Sent("t", 1, 5), Sent("t", 0, 6), Sent("audit", 1, 7), Sent("t", 1, 8)]
    for record in records:
        told(None, record)
    assert (told.offsets, told.error) == ([5, 8], None)
    for code in (KafkaError._PURGE_QUEUE, KafkaError._TIMED_OUT):
        told(KafkaError(code), records[0])
    assert told.error is not None
    assert told.error.code() == KafkaError._PURGE_QUEUE
    assert told.offsets == [5, 8]


def test_it_waits_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: Any = Slow(5)
    deliver(slow)
    assert slow.left == 0
    monkeypatch.setattr(delivery, "CALL_TIMEOUT_S", -1.0)
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        deliver(Slow(5))  # type: ignore[arg-type]


def test_a_client_that_breaks() -> None:
    with pytest.raises(KafkaException, match="_FENCED"):
        deliver(Slow(5, KafkaError(KafkaError._FENCED)))  # type: ignore[arg-type]
