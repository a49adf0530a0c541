"""How far the writers are, read from where the truth is: the audit topic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bridge.adapters.kafka.client import consumer
from bridge.core.audit import AuditEntry
from bridge.model.verdict import Outcome

_WAIT_S: Final = 0.5
_decode = msgspec.json.Decoder(list[AuditEntry]).decode


class Progress:
    """Follows the entries of one run in a thread of its own, until it is left.

    A picture only: when Kafka does not answer it stands still, and nothing else depends on it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        starts: Mapping[int, int],
        run: str,
        tell: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._settings, self._topic, self._starts = settings, topic, starts
        self._run, self._tell = run, tell
        self._counts: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="backfill-progress", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5.0)

    def _follow(self) -> None:
        source = consumer(self._settings, group=f"{self._topic}-progress")
        try:
            source.assign([TopicPartition(self._topic, n, at) for n, at in self._starts.items()])
            while not self._stop.is_set():
                for message in source.consume(500, timeout=_WAIT_S):
                    error = message.error()
                    if error is None:
                        self._count(message.value() or b"[]")
                    elif error.code() != KafkaError._PARTITION_EOF:
                        return
        except KafkaException:
            return
        finally:
            source.close()

    def _count(self, value: bytes) -> None:
        try:
            entries = _decode(value)
        except msgspec.DecodeError:  # not written by us
            return
        ours = [e for e in entries if e.verdict == Outcome.BACKFILLED and e.reason == self._run]
        for entry in ours:
            self._counts[entry.queue] = self._counts.get(entry.queue, 0) + 1
        if ours:
            self._tell(dict(self._counts))
