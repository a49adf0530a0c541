"""Stands in for the queues behind the admin port."""

import asyncio
from typing import Any

from bridge.adapters.queue_desk import Held, QueueInfo
from bridge.core.retained.errors import Refused, Status
from bridge.model.message import Message
from tests.core.messages import plain

ORDERS = "private$\\orders"


def held(number: int, queue: str = ORDERS, **fields: Any) -> Held:
    """A message with that lookup id; what is no field of Held is one of the message."""
    own = {name: fields.pop(name) for name in Held.__struct_fields__ if name in fields}
    message: Message = plain(number, **{"label": f"order {number}", **fields})
    return Held(queue=queue, lookup_id=number, message=message, **own)


class FakeDesk:
    """Queues in memory, and notes of what was asked."""

    def __init__(self, *messages: Held) -> None:
        self.infos = [QueueInfo(name=ORDERS, mode="retain", transactional=False, topic="orders")]
        self.held = {ORDERS: list(messages)}
        self.asked: list[tuple[Any, ...]] = []
        self.fault: Exception | None = None
        self.fails_after = 0  # so many receives work
        self.waiting = asyncio.Event()
        self.gone = asyncio.Event()  # a caller that waited was cancelled

    def queues(self) -> list[QueueInfo]:
        self._note("queues")
        return self.infos

    async def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> list[Held]:
        self._note("peek", queue, limit, after, lookup_id)
        waiting = self._find(queue)
        if lookup_id is not None:
            return [self._one(queue, lookup_id)]
        return [one for one in waiting if after is None or one.lookup_id > after][:limit]

    async def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0
    ) -> Held | None:
        self._note("receive", queue, lookup_id, wait_s)
        waiting = self._find(queue)
        if lookup_id is not None:
            taken = self._one(queue, lookup_id)
            waiting.remove(taken)
            return taken
        if not waiting and wait_s:
            try:
                self.waiting.set()
                await asyncio.Event().wait()
            finally:
                self.gone.set()
        return waiting.pop(0) if waiting else None

    async def purge(self, queue: str) -> int:
        self._note("purge", queue)
        waiting = self._find(queue)
        count = len(waiting)
        waiting.clear()
        return count

    async def move(self, queue: str, lookup_id: int, to: str) -> int:
        self._note("move", queue, lookup_id, to)
        self._find(queue).remove(self._one(queue, lookup_id))
        return lookup_id + 1

    async def create(
        self, queue: str, *, transactional: bool, topic: str | None, journal: str | None
    ) -> None:
        self._note("create", queue, transactional, topic, journal)

    async def delete(self, queue: str) -> int:
        self._note("delete", queue)
        return len(self._find(queue))

    def _note(self, *call: Any) -> None:
        self.asked.append(call)
        if self.fault is not None:
            if not self.fails_after:
                raise self.fault
            self.fails_after -= 1

    def _find(self, queue: str) -> list[Held]:
        if queue not in self.held:
            raise Refused(Status.QUEUE_NOT_FOUND, queue)
        return self.held[queue]

    def _one(self, queue: str, lookup_id: int) -> Held:
        for one in self._find(queue):
            if one.lookup_id == lookup_id:
                return one
        raise Refused(Status.MESSAGE_NOT_FOUND)
