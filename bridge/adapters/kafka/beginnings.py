"""Where partitions begin: what is before that, Kafka's retention (or an operator) has deleted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from bridge.adapters.kafka.client import CALL_TIMEOUT_S, Settings, admin_client
from bridge.adapters.kafka.worker import Worker

Partition = tuple[str, int]
_GRACE_S: Final = 2.0  # the request's own time-out tells more than a bare TimeoutError


class Beginnings:
    """One thread, one client, made with the first question."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings, self._worker = settings, Worker(name)
        self._admin: AdminClient | None = None

    async def ask(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The first offset of each; one that does not tell now is left out."""
        return await self._worker.run(lambda: self._ask(partitions)) if partitions else {}

    def stop(self) -> None:
        self._worker.stop()

    # -- in the thread ----------------------------------------------------------------------

    def _ask(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        try:
            return self._answers(partitions)
        except KafkaException:
            return {}

    def _answers(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        if self._admin is None:
            self._admin = admin_client(self._settings)
        there = self._admin.list_topics(timeout=CALL_TIMEOUT_S).topics
        asked = {
            TopicPartition(topic, number): OffsetSpec.earliest()  # type: ignore[no-untyped-call]
            for topic, number in partitions
            if topic in there and number in there[topic].partitions
        }
        found: dict[Partition, int] = {}
        if not asked:
            return found
        futures = self._admin.list_offsets(asked, request_timeout=CALL_TIMEOUT_S)
        for place, future in futures.items():
            try:
                found[place.topic, place.partition] = future.result(
                    CALL_TIMEOUT_S + _GRACE_S
                ).offset
            except (KafkaException, TimeoutError):
                continue
        return found
