"""Where an export's messages come from: any MSMQ host, or a running appliance of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Protocol

from bridge.adapters.net.queue_client import QueueClient, QueueRefused
from bridge.adapters.queue_desk import queue_name
from bridge.adapters.reader.rows import data_of_read
from bridge.core.message_data import MessageData, read_data
from bridge.model.guid import Guid
from bridge.protocol.rpc.reader.steps import Batch

if TYPE_CHECKING:
    from bridge.adapters.reader.sync_reader import RemoteReader

Key = tuple[Guid, int]
PAGE: Final = 100
WINDOW: Final = 256  # each batch is one fsync


class Taken:
    """Messages that are to be removed; `confirm` when they are safe."""

    def __init__(self, messages: list[MessageData]) -> None:
        self.messages, self.is_confirmed = messages, False

    def confirm(self) -> None:
        self.is_confirmed = True


class Source(Protocol):
    """`removed` and `repeated` count as `Drain` does; `elsewhere` are messages that were exported,
    and then somebody else received them; `unreadable` are those that had to stay, with the reason.
    """

    queue: str
    removed: int
    repeated: int
    elsewhere: int
    unreadable: dict[int, str]

    def peek(
        self, *, after: int | None, limit: int | None
    ) -> Generator[list[MessageData], None, None]: ...

    def take(self, *, seen: set[Key], limit: int | None) -> Generator[Taken, None, None]:
        """What is not confirmed when the next is asked for stays in the queue."""


class RemoteSource:
    """By remote read: a message is locked for us until it is confirmed."""

    def __init__(self, reader: RemoteReader, queue: str) -> None:
        self._reader, self._name = reader, queue
        self.queue = reader.target(queue).name
        self.removed = self.repeated = self.elsewhere = 0
        self.unreadable: dict[int, str] = {}

    def peek(
        self, *, after: int | None, limit: int | None
    ) -> Generator[list[MessageData], None, None]:
        job = self._reader.scan_job(self._name, after=after, limit=limit)
        with closing(self._reader.run(job)) as batches:
            for batch in batches:
                yield self._data(batch)
        self.unreadable = job.unreadable

    def take(self, *, seen: set[Key], limit: int | None) -> Generator[Taken, None, None]:
        job = self._reader.drain_job(self._name, seen=seen, limit=limit, window=WINDOW)
        try:
            with closing(self._reader.run(job)) as batches:
                for batch in batches:
                    taken = Taken(self._data(batch))
                    try:
                        yield taken
                    finally:
                        if taken.is_confirmed:
                            batch.confirm()
        finally:
            self.removed, self.repeated = job.removed, job.repeated

    def _data(self, batch: Batch) -> list[MessageData]:
        return [data_of_read(read, self.queue) for read in batch.reads]


class ApplianceSource:
    """By the admin port, which receives at once: so a message is looked at, kept, and then taken
    by its lookup id. If somebody else was faster, both have it: `elsewhere`."""

    def __init__(self, client: QueueClient, queue: str) -> None:
        self._client = client
        self.queue = queue_name(queue)
        self.removed = self.repeated = self.elsewhere = 0
        self.unreadable: dict[int, str] = {}

    def peek(
        self, *, after: int | None, limit: int | None
    ) -> Generator[list[MessageData], None, None]:
        left, more = limit, left_over(limit)
        while more:
            rows, more = self._page(after, left)
            if rows:
                yield [read_data(row) for row in rows]
                after = rows[-1]["lookup_id"]
            if left is not None:
                left -= len(rows)
                more = more and left > 0

    def take(self, *, seen: set[Key], limit: int | None) -> Generator[Taken, None, None]:
        after: int | None = None
        left, more = limit, left_over(limit)
        while more:
            rows, more = self._page(after, left)
            after = rows[-1]["lookup_id"] if rows else after
            free = [read_data(row) for row in rows if not row.get("locked")]
            new = [data for data in free if key_of(data) not in seen]
            taken = Taken(new)
            if new:
                yield taken
            for data in free:
                if key_of(data) in seen:
                    self.repeated += 1
                    self._remove(data)
                elif taken.is_confirmed:
                    self._remove(data)
            if left is not None:
                left -= len(new)
                more = more and left > 0

    def _page(self, after: int | None, left: int | None) -> tuple[list[dict[str, Any]], bool]:
        limit = PAGE if left is None else min(PAGE, left)
        return self._client.peek(self.queue, limit=limit, after=after)

    def _remove(self, data: MessageData) -> None:
        try:
            found = self._client.receive(self.queue, lookup_id=data.lookup_id)
        except QueueRefused:
            found = None
        if found is None:
            self.elsewhere += 1
        else:
            self.removed += 1


def left_over(limit: int | None) -> bool:
    return limit is None or limit > 0


def key_of(data: MessageData) -> Key:
    guid, _, ordinal = data.message_id.partition("\\")
    return Guid.parse(guid), int(ordinal)
