"""What the web page asks again and again, for programs too.

    GET  /api/live?since=…            the figures, and the samples after that moment
    GET  /api/sessions, /api/streams, /api/acks, /api/queues/page, /api/mappings
                                      a page: ?offset=&limit=&search=&sort=&order=asc|desc
    GET  /api/verdicts                how many of each verdict and class, in words
    GET  /api/refusals                the latest messages that were turned away
    GET  /api/doctor                  the last findings; old ones are looked at again meanwhile
    GET  /api/mappings/plan           what `apply` would change
    POST /api/mappings/apply?force=0  change it, and switch to the mapping files

Sessions, streams, acks and refusals need the token (see `admin_access`), and so does what names
senders in the figures and findings: without it that part is left out.

A page is `{"rows", "offset", "found", "total"}`. Everything has a bound.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from bridge.adapters.net.admin_answers import answer, failure
from bridge.adapters.net.questions import flag, number, only
from bridge.adapters.paging import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MAX_OFFSET,
    MAX_SEARCH,
    Page,
    Question,
    Row,
)
from bridge.model.errors import BridgeError, ConfigError

LISTS: Final = {
    "/api/sessions": "sessions",
    "/api/streams": "streams",
    "/api/acks": "acks",
    "/api/queues/page": "queues",
    "/api/mappings": "mappings",
}
_ASKED: Final = ("offset", "limit", "search", "sort", "order")
# Of the status: GUIDs and addresses of senders, their streams, where their messages go.
NAMES_SENDERS: Final = (
    *("sessions", "stream_list", "waiting_stream_list", "acks_by_peer", "forwards", "cloned_guids"),
)
_CLONES: Final = "clones"  # the check of the doctor that names GUIDs and addresses
Refuse = Callable[[web.Request], web.Response | None]


class Watched(Protocol):
    """What the page may ask. Raises Unavailable while something is not there yet."""

    def live(self, since: float) -> dict[str, Any]:
        """The figures, and the samples after that Unix time."""

    async def page(self, name: str, question: Question) -> Page:
        """Of one of LISTS."""

    def verdicts(self) -> list[Row]:
        """How many of each, with its class in words."""

    async def refusals(self) -> list[Row]:
        """The latest, newest first."""

    def findings(self) -> dict[str, Any]:
        """Of the doctor's last visit."""

    async def plan(self) -> dict[str, Any]:
        """What `apply` would change."""

    async def apply(self, force: bool) -> dict[str, Any]:
        """Do it; raises also OrderWouldBreak or ChangesFailed."""


class ViewRoutes:
    """`refused` says who may not write, `sees_senders` who may read what names senders."""

    def __init__(
        self,
        watched: Callable[[], Watched],
        refused: Refuse,
        sees_senders: Callable[[web.Request], bool],
    ) -> None:
        self._watched, self._refused, self._sees_senders = watched, refused, sees_senders

    def register(self, router: web.UrlDispatcher) -> None:
        router.add_get("/api/live", _told(self._live))
        for path, name in LISTS.items():
            router.add_get(path, _told(partial(self._page, name)))
        router.add_get("/api/verdicts", _told(self._verdicts))
        router.add_get("/api/refusals", _told(self._refusals))
        router.add_get("/api/doctor", _told(self._doctor))
        router.add_get("/api/mappings/plan", _told(self._plan))
        router.add_post("/api/mappings/apply", _told(self._apply))

    async def _live(self, request: web.Request) -> object:
        text = only(request, "since").get("since", "0")
        try:
            since = float(text)
        except ValueError:
            since = math.nan
        if not math.isfinite(since):
            raise ConfigError("is a Unix time in seconds", where="since")
        told = self._watched().live(since)
        return told if self._sees_senders(request) else without_senders(told)

    async def _page(self, name: str, request: web.Request) -> object:
        page = await self._watched().page(name, _question(request))
        return msgspec.structs.asdict(page)

    async def _verdicts(self, request: web.Request) -> object:
        only(request)
        return {"verdicts": self._watched().verdicts()}

    async def _refusals(self, request: web.Request) -> object:
        only(request)
        return {"refusals": await self._watched().refusals()}

    async def _doctor(self, request: web.Request) -> object:
        only(request)
        told = self._watched().findings()
        if self._sees_senders(request):
            return told
        return told | {"findings": [_anonymous(finding) for finding in told["findings"]]}

    async def _plan(self, request: web.Request) -> object:
        only(request)
        return await self._watched().plan()

    async def _apply(self, request: web.Request) -> object:
        if (refused := self._refused(request)) is not None:
            return refused
        only(request, "force")
        return await self._watched().apply(flag(request, "force"))


def without_senders(told: dict[str, Any]) -> dict[str, Any]:
    """The figures for a client that has not shown the token; `needs_token` says what is missing."""
    hidden = [name for name in NAMES_SENDERS if name in told]
    shown = {name: value for name, value in told.items() if name not in hidden}
    return shown | {"needs_token": hidden}


def _anonymous(finding: dict[str, Any]) -> dict[str, Any]:
    if finding["id"] != _CLONES or not finding["about"]:
        return finding
    return finding | {"about": "", "found": "two senders share a GUID; the admin token shows which"}


def _told(
    handler: Callable[[web.Request], Awaitable[object]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            told = await handler(request)
        except BridgeError as error:
            return failure(error)
        return told if isinstance(told, web.Response) else answer(told)

    return handle


def _question(request: web.Request) -> Question:
    asked = only(request, *_ASKED)
    search = asked.get("search", "")
    if len(search) > MAX_SEARCH:
        raise ConfigError(f"has more than {MAX_SEARCH} characters", where="search")
    order = asked.get("order", "asc")
    if order not in ("asc", "desc"):
        raise ConfigError("is asc or desc", where="order")
    return Question(
        offset=number(asked, "offset", 0, least=0, most=MAX_OFFSET),
        limit=number(asked, "limit", DEFAULT_LIMIT, least=1, most=MAX_LIMIT),
        search=search,
        sort=asked.get("sort", ""),
        descending=order == "desc",
    )
