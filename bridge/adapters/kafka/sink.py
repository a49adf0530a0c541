"""ShardSink on Kafka: one producer with a fixed transactional id. Design D1 to D3

The producer is trusted only while every call succeeds. After anything else it is thrown away
unasked: a new one with the same id settles what is open, and the state topic says what happened.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from bridge.adapters.kafka.client import (
    CALL_TIMEOUT_S,
    Settings,
    is_fenced,
    is_too_large,
    producer,
    unavailable,
)
from bridge.adapters.kafka.reader import read_to_end
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.kafka.worker import Worker
from bridge.core.ports import Snapshot, Unit
from bridge.model.errors import BridgeError, SinkUnavailable

OWNER_KEY: Final = "owner"
_ANY: Final = -1  # the key picks the partition
SETTLE_S: Final = 3.0  # after being fenced: time for a new owner to say who it is


class OwnershipLost(BridgeError):
    """Another appliance with our identity has taken the shard."""


class KafkaShardSink:
    def __init__(self, settings: Settings, own: OwnTopics, shard: int) -> None:
        self._settings, self._own, self._shard = settings, own, shard
        self._transactional_id = f"{own.prefix}.shard-{shard}"
        self._me = str(uuid.uuid4()).encode()
        self._claimed = False
        self._fenced = False
        self._single = False  # one record per batch: a topic takes less than a batch may have
        self._closed = False
        self._producer: Producer | None = None
        # Every blocking call of this shard runs here, one after the other.
        self._worker = Worker(self._transactional_id)

    async def open(self) -> Snapshot:
        if self._fenced:
            await asyncio.sleep(SETTLE_S)
        return await self._worker.run(self._open)

    async def publish(self, unit: Unit) -> None:
        # Queueing is CPU under the interpreter's lock wherever it runs; here it does not fight
        # with the sessions for it. Only the wait for Kafka goes to the thread.
        if self._producer is None:
            raise SinkUnavailable("Kafka: the shard is not open")
        try:
            self._produce(self._producer, unit)
        except (KafkaException, BufferError) as error:
            raise await self._worker.run(partial(self._failed, "queueing", error)) from error
        await self._worker.run(self._commit)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._worker.run(self._discard)
            self._worker.stop()

    # -- in the shard's thread --------------------------------------------------------------

    def _open(self) -> Snapshot:
        self._discard()
        try:
            if self._fenced:  # ask first: a new owner must not be fenced in turn
                self._stop_if_replaced(self._read_state())
            alone = {"batch.num.messages": 1} if self._single else {}
            self._producer = producer({**self._settings, **alone}, self._transactional_id)
            # One that has no connection yet would ask for its coordinator twice, 0.5 s apart.
            self._producer.list_topics(self._own.state, timeout=CALL_TIMEOUT_S)
            self._producer.init_transactions(CALL_TIMEOUT_S)
            snapshot = Snapshot(self._read_state(), self._read_seen())
            # Also when we were only cut off: another owner's unit numbers are not ours.
            self._stop_if_replaced(snapshot.state)
            self._produce(self._producer, Unit(state={OWNER_KEY: self._me}))
            self._producer.commit_transaction(CALL_TIMEOUT_S)
        except KafkaException as error:
            raise self._failed("taking over the shard", error) from error
        except BridgeError:
            self._discard()
            raise
        self._claimed, self._fenced = True, False
        return snapshot

    def _stop_if_replaced(self, state: Mapping[str, bytes]) -> None:
        owner = state.get(OWNER_KEY)
        if self._claimed and owner not in (None, self._me):
            raise OwnershipLost(
                f"shard {self._shard} of {self._own.prefix} was taken over by another appliance "
                "with the same topic_prefix; run only one, or give each its own prefix"
            )

    def _commit(self) -> None:
        assert self._producer is not None
        try:
            self._producer.commit_transaction(CALL_TIMEOUT_S)
        except KafkaException as error:
            raise self._failed("committing", error) from error

    def _produce(self, transaction: Producer, unit: Unit) -> None:
        """Data first, so that it is under way while the rest is queued."""
        transaction.begin_transaction()
        own, shard, produce = self._own, self._shard, transaction.produce
        for r in unit.records:
            partition = _ANY if r.partition is None else r.partition
            headers: Any = r.headers  # what the client calls a list of headers is invariant in mypy
            produce(r.topic, r.value, r.key, partition, headers=headers, timestamp=r.timestamp_ms)
        for r in unit.rejects:
            headers = r.headers
            produce(own.rejects, r.value, r.key, shard, headers=headers, timestamp=r.timestamp_ms)
        for key, value in unit.state.items():
            produce(own.state, value, key.encode("utf-8", "surrogatepass"), shard)
        for key, seen in unit.seen.items():
            produce(own.seen, seen, key.encode(), shard)
        for entries in unit.audit:
            produce(own.audit, entries, None, shard)

    def _failed(self, doing: str, error: Exception) -> SinkUnavailable:
        if isinstance(error, KafkaException):
            self._fenced = self._fenced or is_fenced(error)  # until it is known who holds the shard
            self._single = self._single or is_too_large(error)
        self._discard()
        return unavailable(f"shard {self._shard}: {doing}", error)

    def _discard(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None  # librdkafka lets go of it here

    def _read_state(self) -> dict[str, bytes]:
        state: dict[str, bytes] = {}
        for message in read_to_end(self._settings, self._own.state, self._shard):
            key = (message.key() or b"").decode("utf-8", "surrogatepass")
            state.pop(key, None)  # in the order they were last written
            if (value := message.value()) is not None:
                state[key] = value
        return state

    def _read_seen(self) -> list[bytes]:
        records = read_to_end(self._settings, self._own.seen, self._shard)
        return [value for message in records if (value := message.value()) is not None]
