"""Streams on the admin port: which wait for adoption, and the changes that an operator may make.

    GET  /api/streams/waiting
    POST /api/streams/adopt    {"source", "destination"}
    POST /api/streams/forget   {"source", "destination"}

All of it names senders, so all of it needs the token. `/api/streams` (view_routes) lists the
streams that are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from bridge.adapters.net.admin_answers import answer, failure
from bridge.adapters.net.questions import only
from bridge.adapters.stream_desk import NoSuchStream, StreamDesk
from bridge.model.errors import BridgeError, ConfigError
from bridge.model.guid import Guid

MAX_DESTINATION: Final = 40_000  # characters; a DirectQueueFormatName has 65,535 bytes
ACTIONS: Final = ("adopt", "forget")
Refuse = Callable[[web.Request], web.Response | None]


class Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream: its source queue manager, and its destination byte for byte."""

    source: Annotated[str, Meta(min_length=1, max_length=64)]
    destination: Annotated[str, Meta(min_length=1, max_length=MAX_DESTINATION)]


class StreamRoutes:
    """`refused` says who may not write."""

    def __init__(self, desk: Callable[[], StreamDesk], refused: Refuse) -> None:
        self._desk, self._refused = desk, refused

    def register(self, router: web.UrlDispatcher) -> None:
        router.add_get("/api/streams/waiting", self._waiting)
        for action in ACTIONS:
            router.add_post(f"/api/streams/{action}", partial(self._change, action))

    async def _waiting(self, request: web.Request) -> web.Response:
        try:
            only(request)
        except BridgeError as error:
            return failure(error)
        desk = self._desk()
        return answer({"waiting": desk.waiting(), "total": desk.count})

    async def _change(self, action: str, request: web.Request) -> web.Response:
        if (refused := self._refused(request)) is not None:
            return refused
        try:
            only(request)
            named = _read(await request.read())
            desk, source = self._desk(), _guid(named.source)
            change = desk.adopt if action == "adopt" else desk.forget
            done: dict[str, Any] = await change(source, named.destination)
        except NoSuchStream as error:
            return answer({"error": str(error)}, status=HTTPStatus.NOT_FOUND)
        except BridgeError as error:
            return failure(error)
        return answer(done)


def _read(body: bytes) -> Named:
    try:
        # Not msgspec's decoder: half a surrogate pair is legal in a direct name.
        return msgspec.convert(json.loads(body), Named)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is not what it takes: {error}") from error


def _guid(text: str) -> Guid:
    try:
        return Guid.parse(text)
    except ValueError as error:
        raise ConfigError("is not a GUID", where="source") from error
