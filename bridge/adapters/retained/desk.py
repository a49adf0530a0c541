"""The queues for those who look after them: what the admin port asks. See `queue_desk`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from itertools import count

from msgspec.structs import replace

from bridge.adapters.mapping_editor import yaml_scalar
from bridge.adapters.queue_desk import Held, QueueInfo
from bridge.adapters.retained.service import RetainedService, now
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.retained.effects import Change, Commit, Delivered
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.keeping import message_in
from bridge.core.retained.naming import SYSTEM_QUEUES, journal_of
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
            },
            readers=len(known.handles) if known else 0,
            quota_kb=queue.mapping.quota_kb if queue else None,
        )

    async def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> list[Held]:
        known = self._service.queues.find(queue)
        if lookup_id is None:
            rows = self._service.view.after(known.name, START if after is None else after, limit)
        else:
            row = self._service.queues.row(known, lookup_id)
            if row is None:
                raise Refused(Status.MESSAGE_NOT_FOUND)
            rows = [row]
        return await self._held(rows)

    async def _held(self, rows: Iterable[Row]) -> list[Held]:
        rows = list(rows)
        records = await self._service.reader.read([row.at for row in rows])
        return [
            Held(
                queue=row.queue,
                lookup_id=row.lookup_id,
                message=message_in(records[row.at]),
                is_locked=self._service.queues.is_locked(row),
                aborts=row.aborts,
                moves=row.moves,
                moved_at=row.moved_at,
            )
            for row in rows
        ]

    # -- changing ---------------------------------------------------------------------------

    async def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0
    ) -> Held | None:
        service, queues = self._service, self._service.queues
        handle, tag = queues.handles.open(queue, Access.RECEIVE), next(self._tags)
        try:
            answer = service.expect(handle, tag)
            try:
                if lookup_id is not None:
                    commands = queues.reading.receive_at(
                        handle, tag, now(), Seek.CURRENT, lookup_id
                    )
                else:
                    commands = queues.reading.receive(handle, tag, now(), wait_s=wait_s)
            except Refused as refused:
                answer.cancel()
                if lookup_id is None and refused.status is Status.IO_TIMEOUT:
                    return None
                raise
            service.carry_out(commands)
            given = await answer
            if not isinstance(given, Delivered):
                if given.status is Status.IO_TIMEOUT:
                    return None
                raise Refused(given.status)
            (held,) = await self._held([given.row])
            ended = service.carry_out(queues.answering.end(handle, tag, now(), delete=True))
            await asyncio.shield(asyncio.gather(*ended))
            return replace(held, is_locked=False)
        finally:
            service.carry_out(queues.answering.close(handle, now()))

    async def purge(self, queue: str) -> int:
        queues = self._service.queues
        handle = queues.handles.open(queue, Access.RECEIVE)
        try:
            return await self._sweep(queues.sweeping.purge(handle))
        finally:
            self._service.carry_out(queues.answering.close(handle, now()))

    async def _sweep(self, sweep: Sweep) -> int:
        gone = 0
        while commands := self._service.queues.sweeping.step(sweep, now()):
            ended = self._service.carry_out(commands)
            await asyncio.shield(asyncio.gather(*ended))
            gone += len(ended)
        return gone

    async def move(self, queue: str, lookup_id: int, to: str) -> int:
        service, queues = self._service, self._service.queues
        source = queues.handles.open(queue, Access.RECEIVE)
        try:
            target = queues.handles.open(to, Access.MOVE)
            try:
                commands = queues.moving.move(source, target, lookup_id, now())
                (place,) = [
                    effect.to.lookup_id
                    for command in commands
                    if isinstance(command, Commit)
                    for effect in command.effects
                    if isinstance(effect, Change)
                ]
                await asyncio.shield(asyncio.gather(*service.carry_out(commands)))
                return place
            finally:
                service.carry_out(queues.answering.close(target, now()))
        finally:
            service.carry_out(queues.answering.close(source, now()))

    async def create(
        self, queue: str, *, transactional: bool, topic: str | None, journal: str | None
    ) -> None:
        known = self._catalogue().by_name(queue)
        if known is not None:
            raise Refused(Status.QUEUE_EXISTS, queue)
        entry = {"mode": "retain", "transactional": "true" if transactional else "false"}
        if topic is not None:
            entry["topic"] = yaml_scalar(topic)
        if journal is not None:
            entry["journal"] = yaml_scalar(journal)
        await self._edit(queue, entry)

    async def delete(self, queue: str) -> int:
        queues = self._service.queues
        _ = queues.find(queue)
        await self._edit(queue, None)  # no message comes in any more
        commands, sweep = queues.sweeping.delete(queue)
        self._service.carry_out(commands)
        return await self._sweep(sweep)
