"""/api/queues of the admin port: look at the queues, and look after them.

    GET  /api/queues
    GET  /api/queues/messages?queue=…&limit=…&after=…&lookup_id=…
    POST /api/queues/receive   {"queue", "lookup_id"?, "wait_s"?}
    POST /api/queues/purge     {"queue"}
    POST /api/queues/move      {"queue", "lookup_id", "to"}
    POST /api/queues/create    {"queue", "transactional"?, "topic"?, "journal"?}
    POST /api/queues/delete    {"queue"}

A message is as in `bridge.core.message_data`, plus `locked`. Who may read the port may look; the
POSTs are for those who may write. Everything has a bound: names, numbers, waits, and how much one
answer holds (`more` says that there is more).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, ClassVar, Final, TypeVar

import msgspec
from aiohttp import web
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from bridge.adapters.net.admin_answers import answer, dumped, failure
from bridge.adapters.net.questions import only
from bridge.adapters.queue_desk import Held, QueueDesk, queue_name, written_name
from bridge.core.message_data import as_json, data_of
from bridge.model.errors import BridgeError, ConfigError, Unavailable

MAX_LIMIT: Final = 1000
DEFAULT_LIMIT: Final = 100
MAX_WAIT_S: Final = 60.0
MAX_ANSWER: Final = 16 * 1024 * 1024  # characters; one message is answered in any case
AT_ONCE: Final = 16  # messages that are read before their size is known
LOOK_S: Final = 0.5  # how often somebody sees whether a waiting client is still there
_ASKED: Final = ("queue", "limit", "after", "lookup_id")
_NUMBER: Final = re.compile("[0-9]{1,20}")
_MAX_NUMBER: Final = (1 << 64) - 1

Text = Annotated[str, Meta(min_length=1, max_length=512)]
Number = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0, le=MAX_WAIT_S)]
Refuse = Callable[[web.Request], web.Response | None]
Result = TypeVar("Result")


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a POST: what is to be done."""

    waits: ClassVar[bool] = False  # it ends when the client goes

    queue: Text

    @property
    def name(self) -> str:
        return queue_name(self.queue)

    async def carry_out(self, desk: QueueDesk) -> dict[str, Any]:
        """What is answered."""
        raise NotImplementedError


class Receive(Order, frozen=True, kw_only=True, forbid_unknown_fields=True):
    waits: ClassVar[bool] = True

    lookup_id: Number | None = None
    wait_s: Seconds = 0.0

    def __post_init__(self) -> None:
        _require_64_bits(self.lookup_id)
        if self.wait_s and self.lookup_id is not None:
            raise ValueError("nobody waits for a lookup_id: leave out wait_s")

    async def carry_out(self, desk: QueueDesk) -> dict[str, Any]:
        held = await desk.receive(self.name, lookup_id=self.lookup_id, wait_s=self.wait_s)
        return {"message": None if held is None else shown(held)}


class Purge(Order, frozen=True, kw_only=True, forbid_unknown_fields=True):
    async def carry_out(self, desk: QueueDesk) -> dict[str, Any]:
        return {"queue": self.name, "purged": await desk.purge(self.name)}


class Move(Order, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lookup_id: Number
    to: Text

    def __post_init__(self) -> None:
        _require_64_bits(self.lookup_id)

    async def carry_out(self, desk: QueueDesk) -> dict[str, Any]:
        to = queue_name(self.to)
        moved = await desk.move(self.name, self.lookup_id, to)
        return {"queue": self.name, "to": to, "lookup_id": moved}


class Create(Order, frozen=True, kw_only=True, forbid_unknown_fields=True):
    transactional: bool = False
    topic: Text | None = None
    journal: Text | None = None

    async def carry_out(self, desk: QueueDesk) -> dict[str, Any]:
        name = written_name(self.queue)
        if ";" in name:
            what = f"'{name}' is part of another queue, or of the machine"
            raise ConfigError(what, where="queue", mend="it is there with the queue itself")
        await desk.create(
            name, transactional=self.transactional, topic=self.topic, journal=self.journal
        )
        return {"created": name}


class Delete(Order, frozen=True, kw_only=True, forbid_unknown_fields=True):
    async def carry_out(self, desk: QueueDesk) -> dict[str, Any]:
        return {"deleted": self.name, "messages": await desk.delete(self.name)}


ORDERS: Final[dict[str, type[Order]]] = {
    "receive": Receive,
    "purge": Purge,
    "move": Move,
    "create": Create,
    "delete": Delete,
}


class QueueRoutes:
    """`desk` gives None until the queues are there; `refused` says who may not write."""

    def __init__(self, desk: Callable[[], QueueDesk | None], refused: Refuse) -> None:
        self._find_desk, self._refused = desk, refused

    def register(self, router: web.UrlDispatcher) -> None:
        router.add_get("/api/queues", self._list)
        router.add_get("/api/queues/messages", self._messages)
        for path, kind in ORDERS.items():
            router.add_post(f"/api/queues/{path}", partial(self._carry_out, kind))

    async def _list(self, request: web.Request) -> web.Response:
        try:
            only(request)
            return answer({"queues": [asdict(queue) for queue in self._desk().queues()]})
        except BridgeError as error:
            return failure(error)

    async def _messages(self, request: web.Request) -> web.Response:
        try:
            asked = only(request, *_ASKED)
            if not asked.get("queue"):
                raise ConfigError("is missing", where="queue", mend="name one of /api/queues")
            name, limit = queue_name(asked["queue"]), _limit(asked)
            after, lookup_id = _number(asked, "after"), _number(asked, "lookup_id")
            if after is not None and lookup_id is not None:
                raise ConfigError("after and lookup_id do not go together", where="lookup_id")
            if lookup_id is not None:
                held = await self._desk().peek(name, limit=1, lookup_id=lookup_id)
                return answer({"messages": [shown(one) for one in held], "more": False})
            texts, more = await _peek(self._desk(), name, limit, after)
        except BridgeError as error:
            return failure(error)
        text = f'{{"messages": [{", ".join(texts)}], "more": {str(more).lower()}}}\n'
        return web.Response(text=text, content_type="application/json")

    async def _carry_out(self, kind: type[Order], request: web.Request) -> web.Response:
        if (refused := self._refused(request)) is not None:
            return refused
        try:
            order = _read(await request.read(), kind)
            work = order.carry_out(self._desk())
            return answer(await (_while_there(request, work) if order.waits else work))
        except BridgeError as error:
            return failure(error)

    def _desk(self) -> QueueDesk:
        desk = self._find_desk()
        if desk is None:
            raise Unavailable("not yet: the queues are not there, see /readyz")
        return desk


def shown(held: Held) -> dict[str, Any]:
    """A message in a queue as JSON has it."""
    data = data_of(replace(held.message, lookup_id=held.lookup_id), held.queue)
    made = as_json(data)
    made["headers"] |= held.counters
    return made | {"locked": held.is_locked}


async def _peek(
    desk: QueueDesk, queue: str, limit: int, after: int | None
) -> tuple[list[str], bool]:
    """Messages as JSON, as many as one answer holds, and whether there are more.

    They are read in small lots: a thousand messages may be 4 GB.
    """
    texts: list[str] = []
    room = MAX_ANSWER
    while True:
        lot = await desk.peek(queue, limit=min(limit - len(texts) + 1, AT_ONCE), after=after)
        for held in lot:
            text = dumped(shown(held)).rstrip()
            room -= len(text)
            if len(texts) == limit or (texts and room < 0):
                return texts, True
            texts.append(text)
        if len(lot) < AT_ONCE:
            return texts, False
        after = lot[-1].lookup_id


async def _while_there(request: web.Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Give it up when the client goes: nobody would get what it takes.

    aiohttp tells a handler of that only by cancelling each and every one of them.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=LOOK_S))[0]:
            if request.transport is None or request.transport.is_closing():
                raise Unavailable("the client is gone")
        return await task
    finally:
        task.cancel()
        await asyncio.wait([task])


def _limit(asked: dict[str, str]) -> int:
    limit = _number(asked, "limit")
    if limit is None:
        return DEFAULT_LIMIT
    if not 1 <= limit <= MAX_LIMIT:
        raise ConfigError(f"is a number from 1 to {MAX_LIMIT}", where="limit")
    return limit


def _number(asked: dict[str, str], name: str) -> int | None:
    text = asked.get(name)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > _MAX_NUMBER:
        raise ConfigError("is a number of 64 bits", where=name)
    return int(text)


def _require_64_bits(number: int | None) -> None:
    if number is not None and number > _MAX_NUMBER:
        raise ValueError("lookup_id has more than 64 bits")


def _read(body: bytes, kind: type[Order]) -> Order:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"the body is not what it takes: {error}") from error
