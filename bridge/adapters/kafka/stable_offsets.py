"""Watches the last stable offset of partitions: what lies behind it, no consumer that reads
committed records sees.

While units are committed it is a little behind the end. Where it stands still for longer than a
transaction may live, a transaction hangs: Kafka has lost its end. Nothing else shows that in a
data partition, because records can still be written and committed behind it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from bridge.adapters.kafka.client import Settings, admin_client
from bridge.adapters.kafka.reader import STUCK_AFTER_S
from bridge.adapters.kafka.worker import Worker

EVERY_S: Final = 10.0
PATIENCE_S: Final = 5.0
AT_ONCE: Final = 2_000  # partitions of one look; of more, each look takes the next ones
MOST_NAMED: Final = 10
Place = tuple[str, int]  # a partition
Ends = tuple[dict[Place, int], dict[Place, int]]  # stable offsets, and ends

_log = logging.getLogger(__name__)


class Offsets(Protocol):
    def look(self, places: Collection[Place]) -> Ends:
        """Of those that answer."""


class KafkaOffsets:
    """Asks with one client; every call blocks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin: AdminClient | None = None

    def look(self, places: Collection[Place]) -> Ends:
        if self._admin is None:
            self._admin = admin_client(self._settings)
        # In this order: what is committed can only move on meanwhile.
        stable = self._ask(self._admin, places, IsolationLevel.READ_COMMITTED)
        return stable, self._ask(self._admin, places, IsolationLevel.READ_UNCOMMITTED)

    def _ask(
        self, admin: AdminClient, places: Collection[Place], isolation: IsolationLevel
    ) -> dict[Place, int]:
        wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
        found: dict[Place, int] = {}
        asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=PATIENCE_S)
        for at, future in asked.items():
            try:
                found[at.topic, at.partition] = int(future.result(PATIENCE_S + 1).offset)
            except (KafkaException, TimeoutError) as error:  # its leader moves, or is gone
                _log.debug("%s-%d: %s", at.topic, at.partition, error)
        return found


class StableOffsets:
    """`topics` tells the number of partitions by topic."""

    def __init__(
        self,
        offsets: Offsets,
        topics: Callable[[], Mapping[str, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._offsets, self._topics, self._clock = offsets, topics, clock
        # Stable offset, records, since when, last seen: what does not answer grows no older.
        self._behind: dict[Place, tuple[int, int, float, float]] = {}
        self._told: set[Place] = set()
        self._next = 0  # of many partitions: where the next look begins
        self._worker = Worker("stable-offsets")

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.look()
            except (KafkaException, OSError, ValueError) as error:
                _log.debug("no look at offsets: %s", error)

    def stop(self) -> None:
        self._worker.stop()

    async def look(self) -> None:
        every = [(name, n) for name, count in sorted(self._topics().items()) for n in range(count)]
        for gone in self._behind.keys() - set(every):
            del self._behind[gone]
        if not every:
            return
        start = self._next % len(every)
        some = (every + every)[start : start + min(AT_ONCE, len(every))]
        self._next = start + len(some)
        stable, ends = await self._worker.run(lambda: self._offsets.look(some))
        self._learn(stable, ends)
        self._tell()

    @property
    def invisible(self) -> int:
        """Records behind the stable offsets."""
        return sum(records for _, records, _, _ in self._behind.values())

    def hanging(self) -> list[tuple[Place, int, float]]:
        """Partitions where a transaction hangs: the first offset that is not seen, for how long."""
        found = (
            (place, offset, seen - since)
            for place, (offset, _, since, seen) in self._behind.items()
        )
        return sorted(one for one in found if one[2] > STUCK_AFTER_S)

    def complaints(self) -> list[str]:
        return [
            f"topic {topic}-{partition}: consumers see nothing behind offset {offset} for "
            f"{seconds:.0f} s: a transaction hangs; see 'Hanging transactions' in the README"
            for (topic, partition), offset, seconds in self.hanging()[:MOST_NAMED]
        ]

    def _learn(self, stable: Mapping[Place, int], ends: Mapping[Place, int]) -> None:
        now = self._clock()
        for place in stable.keys() & ends.keys():
            offset, records = stable[place], ends[place] - stable[place]
            if records <= 0:
                self._behind.pop(place, None)
                continue
            known = self._behind.get(place)
            since = known[2] if known is not None and known[0] == offset else now
            self._behind[place] = offset, records, since, now

    def _tell(self) -> None:
        """One line when it begins to hang, one when it does so no more."""
        hanging = {place: offset for place, offset, _ in self.hanging()}
        for topic, partition in sorted(hanging.keys() - self._told):
            _log.error(
                "%s-%d: a transaction hangs, consumers see nothing behind offset %d; hint: run "
                "'msmq-bridge doctor', and do not abort it before it is known whether it was "
                "committed",
                topic,
                partition,
                hanging[topic, partition],
            )
        for topic, partition in sorted(self._told - hanging.keys()):
            _log.info("%s-%d: the transaction that hung has ended", topic, partition)
        self._told = set(hanging)
