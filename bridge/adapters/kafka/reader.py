"""Reads a partition to its end: what every predecessor committed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Final

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from bridge.adapters.kafka.client import (
    ATTEMPT_S,
    CALL_TIMEOUT_S,
    Settings,
    admin_client,
    consumer,
)
from bridge.model.errors import SinkUnavailable

_log = logging.getLogger(__name__)
_PER_CALL: Final = 10_000
_FIRST_CALL: Final = 100  # until it is known how large records are
_CALL_BYTES: Final = 8 << 20  # a call has about so many at most: records may have megabytes
_WAIT_S: Final = 0.1  # a call that is not filled lasts this long, at the end too
_GRACE_S: Final = 10.0
_QUIET_S: Final = 3.0  # without a record, before the log says what it waits for
STUCK_AFTER_S: Final = 90.0  # longer than any transaction of ours may live


def read_to_end(
    settings: Settings, topic: str, partition: int, start: int = 0
) -> Iterator[Message]:
    """Every committed record from `start` up to the end as it is now."""
    tail = Tail(settings, topic, partition, start)
    try:
        yield from tail.read()
    finally:
        tail.close()


class Tail:
    """Reads a partition from a place on, as far as it goes, and later what came since.

    A transaction that some producer left open hides what is behind it, so the end is taken from
    the uncommitted view and the committed one has to reach it.
    """

    def __init__(
        self, settings: Settings, topic: str, partition: int, start: int = 0, group: str = ""
    ) -> None:
        """`group` where the ACLs ask for another one than the topic's name begins."""
        self._settings, self._group = settings, group or f"{topic}-reader"
        self._place = TopicPartition(topic, partition, start)
        self._read_to = start
        self._admin: AdminClient | None = None
        self._source: Consumer | None = None

    def read(self) -> Iterator[Message]:
        """Every committed record up to the end as it is now, none of them twice."""
        end = self._end()
        if end <= self._read_to:
            return
        source = self._open()
        deadline = time.monotonic() + STUCK_AFTER_S
        per_call, is_told = _FIRST_CALL, False
        while self._read_to < end:
            # A call that is filled does not wait. A transaction's records and the news of the end
            # are as many as its offsets, because its marker has one.
            most = min(per_call, end - self._read_to)
            batch = source.consume(most, timeout=_WAIT_S)
            per_call = _next_call(batch) or per_call
            # To the end of the list: what a call gave is not given again.
            for message in batch:
                error = message.error()
                if error is None:
                    deadline = time.monotonic() + STUCK_AFTER_S
                    yield message
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                else:
                    self._read_to = max(self._read_to, message.offset() or 0)
            where = f"{self._place.topic}-{self._place.partition}"
            left_s = deadline - time.monotonic()
            if self._read_to < end and left_s < STUCK_AFTER_S - _QUIET_S and not is_told:
                is_told = True
                _log.warning(
                    "%s cannot be read beyond offset %d of %d: a transaction is open there, or its "
                    "broker is away; waiting for %.0f s",
                    where,
                    self._read_to,
                    end,
                    left_s,
                )
            if self._read_to < end and left_s < 0:
                raise SinkUnavailable(
                    f"Kafka: {where} cannot be read to its end ({end}): a transaction "
                    "hangs in it; see 'Hanging transactions' in the README before you abort it"
                )

    @property
    def position(self) -> int:
        """The offset that comes next."""
        return self._read_to

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def _open(self) -> Consumer:
        if self._source is None:
            self._source = consumer(self._settings, group=self._group)
            self._source.assign([self._place])
        return self._source

    def _end(self) -> int:
        if self._admin is None:
            admin = admin_client(self._settings)
            # A client that is asked for offsets before it knows where the partition is may think
            # for 3 s about it.
            admin.list_topics(self._place.topic, timeout=CALL_TIMEOUT_S)
            self._admin = admin
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while True:
            futures = self._admin.list_offsets(
                {self._place: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=ATTEMPT_S,
            )
            try:
                # Longer than the request: its own time-out tells more than a bare TimeoutError.
                return int(futures[self._place].result(ATTEMPT_S + _GRACE_S).offset)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                self._admin.list_topics(self._place.topic, timeout=CALL_TIMEOUT_S)


def _next_call(batch: Sequence[Message]) -> int:
    """How many to ask for, if the next records are like these; 0: there were none."""
    size = sum(len(message.value() or b"") for message in batch if message.error() is None)
    return max(1, min(_PER_CALL, _CALL_BYTES * len(batch) // max(size, 1))) if batch else 0
