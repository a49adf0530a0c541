"""Queues of any MSMQ host for the commands, as `QueueClient` has them of our own appliance."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Any, Final

from bridge.adapters.reader.rows import row_of
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.model.errors import BridgeError
from bridge.protocol.rpc.reader.results import MESSAGE_NOT_FOUND, Refused

Row = dict[str, Any]
_WINDOW: Final = 64


class RemoteQueues:
    """One job after the other on one connection."""

    def __init__(self, reader: RemoteReader, host: str) -> None:
        self.reader, self._host = reader, host

    def look(self, names: Iterable[str]) -> list[Row]:
        """Remote read lists no queues: which of these open, and the first message of each."""
        return [self._look(name) for name in names]

    def _look(self, name: str) -> Row:
        shown: Row = {"queue": self.reader.target(name).name, "opens": True, "error": None}
        try:
            with closing(self.reader.scan(name, limit=1)) as reads:
                first = next(reads, None)
        except Refused as error:  # of this queue alone; the next may open
            return shown | {"opens": False, "error": str(error), "first": None}
        return shown | {"first": None if first is None else row_of(first, shown["queue"])}

    def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> tuple[list[Row], bool]:
        """The messages, and whether there are more than these."""
        name = self.reader.target(queue).name
        if lookup_id is not None:
            return [row_of(self.reader.peek_at(queue, lookup_id), name)], False
        with closing(self.reader.scan(queue, after=after, limit=limit + 1)) as reads:
            rows = [row_of(read, name) for read in reads]
        return rows[:limit], len(rows) > limit

    def received(
        self, queue: str, *, count: int, wait_s: float = 0, lookup_id: int | None = None
    ) -> Generator[Row, None, None]:
        """Removed when the next one is asked for; none is if there is none, or none comes."""
        name = self.reader.target(queue).name
        job = self.reader.drain_job(
            queue,
            limit=count,
            wait_s=wait_s,
            lookup_id=lookup_id,
            window=min(count, _WINDOW),
        )
        try:
            with closing(self.reader.run(job)) as batches:
                for batch in batches:
                    for read in batch.reads:
                        batch.confirm([read])
                        yield row_of(read, name)
        except Refused as refused:
            if lookup_id is None or refused.status != MESSAGE_NOT_FOUND:
                raise
            raise NoSuchMessage(f"there is no message {lookup_id} in {name}") from refused

    def purge(self, queue: str) -> Row:
        """How many these were it does not tell."""
        self.reader.purge(queue)
        return {"queue": self.reader.target(queue).name, "host": self._host, "purged": True}


class NoSuchMessage(BridgeError):
    """Not in the queue, or somebody else holds it."""
