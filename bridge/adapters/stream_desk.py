"""Streams for the operator: which wait for adoption, and the two changes that only a person may
decide. A change is a transaction of the stream's shard, like all that moves a cursor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from bridge.adapters.intake import ShardPump
from bridge.adapters.logs import fields
from bridge.core.shard import Shard, shard_of
from bridge.core.waiting_streams import WaitingStream
from bridge.model.errors import BridgeError, Unavailable
from bridge.model.guid import Guid

_log = logging.getLogger(__name__)
COMMIT_S: Final = 30.0
MOST_SHOWN: Final = 100
_FRAME: Final = 1024  # bytes of an entry of the state topic beside the name of the stream
Row = dict[str, Any]


class NoSuchStream(BridgeError):
    """There is nothing to change."""


class _Change:
    """A `Task`: one change of one stream."""

    def __init__(self, destination: str, work: Callable[[Shard], bool]) -> None:
        self._destination, self._work = destination, work
        self._has_worked = False
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def size(self) -> int:
        return _FRAME + 4 * len(self._destination)

    def fill(self, shard: Shard) -> None:
        self._has_worked = self._work(shard)

    def settled(self) -> None:
        if not self.done.done():
            self.done.set_result(self._has_worked)


class StreamDesk:
    """`pumps` are asked each time: they come with the start."""

    def __init__(
        self, pumps: Callable[[], Sequence[ShardPump]], commit_s: float = COMMIT_S
    ) -> None:
        self._pumps, self._commit_s = pumps, commit_s

    @property
    def count(self) -> int:
        return sum(len(pump.shard.waiting) for pump in self._pumps())

    @property
    def bytes(self) -> int:
        return sum(pump.shard.waiting.bytes for pump in self._pumps())

    def waiting(self, most: int = MOST_SHOWN) -> list[Row]:
        """Streams that wait for adoption."""
        return [_row(stream) for stream in islice(self._waiting(), most)]

    def _waiting(self) -> Iterator[WaitingStream]:
        for pump in self._pumps():
            yield from pump.shard.waiting

    async def adopt(self, source: Guid, destination: str) -> Row:
        """Take a stream up where it was offered. Raises NoSuchStream or Unavailable."""
        pump = self._pump_of(source)
        stream = pump.shard.waiting.get((source, destination))
        if stream is None:
            raise NoSuchStream(
                f"no stream of {source} to {destination} waits for adoption; "
                "'msmq-bridge stream list' shows those that do"
            )
        if not await self._commit(pump, destination, lambda shard: shard.adopt(stream)):
            raise NoSuchStream(
                f"the stream of {source} to {destination} has moved on, or its sender has too many "
                "streams; see 'msmq-bridge stream list'"
            )
        taken_up = stream.taken_up
        told = fields(queue_manager=source, destination=destination, peer=stream.peer)
        _log.warning("stream adopted: message %d is the next one", stream.number, extra=told)
        return {
            "source": str(source),
            "destination": destination,
            "sequence_id": str(taken_up.sequence_id),
            "number": taken_up.number,
            "next": stream.number,
        }

    async def forget(self, source: Guid, destination: str) -> Row:
        """Remove the cursor of a stream. Raises NoSuchStream or Unavailable."""
        pump = self._pump_of(source)
        key = source, destination
        if key not in pump.shard.streams and key not in pump.shard.posted:
            raise NoSuchStream(
                f"there is no stream of {source} to {destination}; "
                "'msmq-bridge stream list' shows those that are known"
            )
        await self._commit(pump, destination, lambda shard: shard.forget_stream(key))
        told = fields(queue_manager=source, destination=destination)
        _log.warning("stream forgotten: its messages may be taken twice", extra=told)
        return {"source": str(source), "destination": destination, "forgotten": True}

    def _pump_of(self, source: Guid) -> ShardPump:
        pumps = self._pumps()
        pump = pumps[shard_of(source, len(pumps))] if pumps else None
        if pump is None or not pump.is_open:
            why = "the appliance is starting" if pump is None else pump.why_closed
            raise Unavailable(f"not now: {why}; see /readyz")
        return pump

    async def _commit(
        self, pump: ShardPump, destination: str, work: Callable[[Shard], bool]
    ) -> bool:
        change = _Change(destination, work)
        pump.add(change)
        try:
            async with asyncio.timeout(self._commit_s):
                return await change.done
        except TimeoutError:
            raise Unavailable(
                f"Kafka has not committed it within {self._commit_s:g} s; it is done as soon as "
                "Kafka answers"
            ) from None


def _row(stream: WaitingStream) -> Row:
    return {
        "source": str(stream.source),
        "destination": stream.destination,
        "peer": stream.peer,
        "have_sequence_id": str(stream.have.sequence_id),  # 64 bits: too many for JavaScript
        "have_number": stream.have.number,
        "offered_sequence_id": str(stream.sequence_id),
        "offered_number": stream.number,
        "offered_previous": stream.previous,
        "since": _time(stream.since),
        "last": _time(stream.last),
    }


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
