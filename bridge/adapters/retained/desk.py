"""The queues for those who look after them: what the admin port asks. See `queue_desk`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count

from msgspec.structs import replace

from bridge.adapters.kafka.held_reader import RecordLost
from bridge.adapters.mapping_editor import yaml_scalar
from bridge.adapters.queue_desk import Held, QueueInfo
from bridge.adapters.retained.service import RetainedService, demand_readable, now
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.retained.effects import Change, Command, Commit, Delivered
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.keeping import message_in
from bridge.core.retained.naming import SYSTEM_QUEUES, is_subqueue, is_system, journal_of
from bridge.core.retained.place import START
from bridge.core.retained.queues import Access
from bridge.core.retained.reading import Seek
from bridge.core.retained.rows import Row
from bridge.core.retained.sweeping import Sweep

Edit = Callable[[str, dict[str, str] | None], Awaitable[None]]  # an entry in YAML; None: without it


class Desk:
    """A `QueueDesk`. `edit` changes the mapping files and reads them again."""

    def __init__(
        self, service: RetainedService, catalogue: Callable[[], Catalogue], edit: Edit
    ) -> None:
        self._service, self._catalogue, self._edit = service, catalogue, edit
        self._tags = count(1)

    # -- looking ----------------------------------------------------------------------------

    def queues(self) -> list[QueueInfo]:
        found = {queue.name.lower(): queue for queue in self._catalogue().known()}
        names = {*found, *self._service.queues.names()}
        listed = [self._info(name, found.get(name)) for name in sorted(names)]
        return listed + [self._info(name, None) for name in SYSTEM_QUEUES]

    def _info(self, name: str, queue: Queue | None) -> QueueInfo:
        view, table = self._service.view, self._service.queues
        totals, known = view.totals(name), table.queue(name)
        is_system = name in SYSTEM_QUEUES
        mode = "system" if is_system else "retain"
        if queue is not None and not queue.retains:
            mode = "forward"
        return QueueInfo(
            name=queue.name if queue is not None else name,
            mode=mode,  # type: ignore[arg-type]
            transactional=known.traits.transactional if known else False,
            topic=queue.topic if queue else "",
            messages=totals.count,
            bytes=totals.bytes,
            journal=queue.journal if queue else "",
            journal_messages=0 if is_system else view.totals(journal_of(name)).count,
            subqueues={
                child.partition(";")[2]: view.totals(child).count
                for child in sorted(known.subqueues if known else ())
                if view.totals(child).count
            },
            readers=len(known.handles) if known else 0,
            quota_kb=queue.mapping.quota_kb if queue else None,
        )

    async def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> list[Held]:
        demand_readable(self._service.queues, self._catalogue(), queue)
        handle = self._service.queues.handles.open(queue, Access.PEEK)
        try:
            return await self._peek(queue, limit, after, lookup_id)
        finally:
            self._service.close(handle)  # a subqueue that is empty is none

    async def _peek(
        self, queue: str, limit: int, after: int | None, lookup_id: int | None
    ) -> list[Held]:
        """Those that Kafka has lost are skipped."""
        known = self._service.queues.find(queue)
        if lookup_id is not None:
            row = self._service.queues.row(known, lookup_id)
            one = None if row is None else await self._held(row)
            if one is None:
                raise Refused(Status.MESSAGE_NOT_FOUND)
            return [one]
        rows = self._service.view.after(known.name, START if after is None else after, limit)
        await self._fetch(rows)
        return [found for row in rows if (found := await self._held(row)) is not None]

    async def _fetch(self, rows: Sequence[Row]) -> None:
        """All at once; afterwards most are at hand."""
        with suppress(RecordLost):
            await self._service.reader.read([row.at for row in rows])

    async def _held(self, row: Row) -> Held | None:
        """None: Kafka has lost it, and now the queue has, too."""
        try:
            records = await self._service.reader.read([row.at])
        except RecordLost:
            self._service.lose(row)
            return None
        return Held(
            queue=row.queue,
            lookup_id=row.lookup_id,
            message=message_in(records[row.at]),
            is_locked=self._service.queues.is_locked(row),
            aborts=row.aborts,
            moves=row.moves,
            moved_at=row.moved_at,
        )

    # -- changing ---------------------------------------------------------------------------

    async def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0
    ) -> Held | None:
        self._service.require_kafka()
        demand_readable(self._service.queues, self._catalogue(), queue)
        deadline = time.monotonic() + wait_s
        handle = self._service.queues.handles.open(queue, Access.RECEIVE)
        try:
            while True:
                left = max(deadline - time.monotonic(), 0.0)
                tag, row = await self._receive(handle, lookup_id, left)
                if row is None:
                    return None
                held = await self._held(row)
                if held is not None:
                    await self._end(handle, tag)
                    return replace(held, is_locked=False)
                if lookup_id is not None:
                    raise Refused(Status.MESSAGE_NOT_FOUND)
        finally:
            self._service.close(handle)

    async def _receive(
        self, handle: int, lookup_id: int | None, wait_s: float
    ) -> tuple[int, Row | None]:
        """The tag of the read, and what it got; None: nothing came in time."""
        service, reading = self._service, self._service.queues.reading
        tag = next(self._tags)
        try:
            if lookup_id is None:
                commands = reading.receive(handle, tag, now(), wait_s=wait_s)
            else:
                commands = reading.receive_at(handle, tag, now(), Seek.CURRENT, lookup_id)
        except Refused as refused:
            if refused.status is Status.IO_TIMEOUT:
                return tag, None
            raise
        answer = service.expect(handle, tag)
        service.carry_out(commands)
        given = await answer
        if isinstance(given, Delivered):
            return tag, given.row
        if given.status is Status.IO_TIMEOUT:
            return tag, None
        raise Refused(given.status)

    async def _end(self, handle: int, tag: int) -> None:
        """It is ours once Kafka has it. Whoever asked may be gone by then: it is too late."""
        self._service.require_kafka()
        ended = self._service.queues.answering.end(handle, tag, now(), delete=True)
        await self._carried_out(ended)

    async def _carried_out(self, commands: Sequence[Command]) -> int:
        futures = self._service.carry_out(commands)
        await asyncio.shield(asyncio.gather(*futures))
        return len(futures)

    async def purge(self, queue: str) -> int:
        self._service.require_kafka()
        queues = self._service.queues
        handle = queues.handles.open(queue, Access.RECEIVE)
        try:
            return await self._sweep(queues.sweeping.purge(handle))
        finally:
            self._service.close(handle)

    async def _sweep(self, sweep: Sweep) -> int:
        gone = 0
        while commands := self._service.queues.sweeping.step(sweep, now()):
            gone += await self._carried_out(commands)
        return gone

    async def move(self, queue: str, lookup_id: int, to: str) -> int:
        self._service.require_kafka()
        handles = self._service.queues.handles
        source = handles.open(queue, Access.RECEIVE)
        try:
            target = handles.open(to, Access.MOVE)
            try:
                return await self._move(source, target, lookup_id)
            finally:
                self._service.close(target)
        finally:
            self._service.close(source)

    async def _move(self, source: int, target: int, lookup_id: int) -> int:
        commands = self._service.queues.moving.move(source, target, lookup_id, now())
        (place,) = [
            effect.to.lookup_id
            for command in commands
            if isinstance(command, Commit)
            for effect in command.effects
            if isinstance(effect, Change)
        ]
        await self._carried_out(commands)
        return place

    async def create(
        self, queue: str, *, transactional: bool, topic: str | None, journal: str | None
    ) -> None:
        self._service.require_kafka()
        if self._catalogue().by_name(queue) is not None:
            raise Refused(Status.QUEUE_EXISTS, queue)
        if self._service.queues.is_ending(queue):
            raise Refused(Status.QUEUE_EXISTS, f"{queue} is still being deleted")
        entry = {"mode": "retain", "transactional": "true" if transactional else "false"}
        if topic is not None:
            entry["topic"] = yaml_scalar(topic)
        if journal is not None:
            entry["journal"] = yaml_scalar(journal)
        await self._edit(queue, entry)

    async def delete(self, queue: str) -> int:
        self._service.require_kafka()
        queues = self._service.queues
        if is_subqueue(queue) or is_system(queue):
            raise Refused(Status.UNSUPPORTED_FORMATNAME_OPERATION, queue)
        known = queues.find(queue)
        await self._edit(queue, None)  # no message comes in any more
        commands, sweep = queues.sweeping.delete(known.name)
        self._service.carry_out(commands)
        return await self._sweep(sweep)
