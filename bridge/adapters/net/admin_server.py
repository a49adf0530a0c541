"""The admin port: the web page, its JSON API, /livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol

from aiohttp import web

from bridge.adapters.net.admin_access import Access
from bridge.adapters.net.admin_answers import answer, failure
from bridge.adapters.net.admin_gate import HEAD_S, AdminGate
from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.page_routes import PageRoutes, is_page
from bridge.adapters.net.questions import flag
from bridge.adapters.net.queue_routes import QueueRoutes
from bridge.adapters.net.stream_routes import StreamRoutes
from bridge.adapters.net.tls import CertificateReload, server_context, trust_clients
from bridge.adapters.net.view_routes import ViewRoutes, Watched, without_senders
from bridge.adapters.queue_desk import QueueDesk
from bridge.adapters.stream_desk import StreamDesk
from bridge.adapters.telemetry import Telemetry
from bridge.config import AdminConfig
from bridge.model.errors import BridgeError, ConfigError
from bridge.model.words import class_name, meaning_of

logger = logging.getLogger(__name__)

TRACED: Final = ("id", "label", "correlation")
MAX_BODY: Final = 64 * 1024
SHUTDOWN_TIMEOUT_S: Final = 2.0

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Server": "msmq-bridge",
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Appliance(Protocol):
    """What the admin port may ask."""

    @property
    def desk(self) -> QueueDesk | None:
        """The queues; None until they are there."""

    @property
    def streams(self) -> StreamDesk:
        """The streams, for changes that an operator decides."""

    @property
    def watch(self) -> Watched:
        """What the web page shows."""

    def status(self) -> dict[str, object]:
        """The answer of /api/status: plain values, ready for JSON."""

    def ready(self) -> tuple[bool, list[str]]:
        """Whether every listener and Kafka are up, and if not what is missing."""

    async def trace(self, kind: str, text: str) -> list[dict[str, Any]]:
        """The verdicts of one message, by id, label or correlation (in hex)."""

    async def reload(self, force: bool) -> dict[str, object]:
        """Read the mapping files again. Raises ConfigError, Unavailable or OrderWouldBreak."""


class AdminServer:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        appliance: Appliance,
        telemetry: Telemetry,
        settings: AdminConfig | None = None,
        names: Iterable[str] = (),
        token_file: Path | None = None,
        hall: Hall | None = None,
        head_s: float = HEAD_S,
    ) -> None:
        """`names` are those of this machine, see AdminConfig.names; `token_file` counts unless
        the settings name one; `hall` has the connections of all listeners."""
        self._appliance, self._telemetry = appliance, telemetry
        self._settings = settings or AdminConfig()
        self._access = Access(self._settings, names, telemetry, token_file)
        refused = self._access.refused_write
        self._queues = QueueRoutes(lambda: appliance.desk, refused)
        self._streams = StreamRoutes(lambda: appliance.streams, refused)
        self._views = ViewRoutes(lambda: appliance.watch, refused, self._access.sees_senders)
        self._page = PageRoutes()
        self._gate = AdminGate(telemetry, hall, head_s)
        self._runner: web.AppRunner | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> str:
        """Listen; returns `host:port` as it really is."""
        context = self._context()
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=self._gate.head_s,
            lingering_time=0,
            max_line_size=4096,
            max_field_size=4096,
            shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        )
        await runner.setup()
        assert runner.server is not None
        try:
            address = await self._gate.start(runner.server, host, port, context)
        except ConfigError:
            await runner.cleanup()
            raise
        self._runner = runner
        return address

    def _context(self) -> ssl.SSLContext | None:
        certificate = self._settings.certificate
        if certificate is None:
            return None
        key = self._settings.key or certificate
        context = server_context(certificate, key)
        if self._settings.client_ca is not None:
            trust_clients(context, self._settings.client_ca)
        self._renewal = asyncio.create_task(CertificateReload(context, certificate, key).run())
        return context

    async def stop(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        self._gate.stop()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_BODY, middlewares=[self._guard])
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/api/status", self._status)
        application.router.add_get("/api/trace", self._trace)
        application.router.add_post("/api/mappings/reload", self._reload)
        application.router.add_get("/api/access", self._access_told)
        self._queues.register(application.router)
        self._views.register(application.router)
        self._streams.register(application.router)
        self._page.register(application.router)
        return application

    async def _livez(self, _: web.Request) -> web.Response:
        return answer({"live": True})

    async def _readyz(self, _: web.Request) -> web.Response:
        ready, reasons = self._appliance.ready()
        return answer({"ready": ready, "reasons": reasons}, status=200 if ready else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = self._telemetry.exposition(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _status(self, request: web.Request) -> web.Response:
        told = self._appliance.status()
        return answer(told if self._access.sees_senders(request) else without_senders(told))

    async def _trace(self, request: web.Request) -> web.Response:
        asked = [(kind, text) for kind, text in request.query.items() if kind in TRACED and text]
        if len(asked) != 1 or len(request.query) != 1:
            return answer({"error": f"ask with one of {', '.join(TRACED)}"}, status=400)
        try:
            verdicts = await self._appliance.trace(*asked[0])
            return answer({"verdicts": [_in_words(verdict) for verdict in verdicts]})
        except BridgeError as error:
            return failure(error)

    async def _reload(self, request: web.Request) -> web.Response:
        if (refused := self._access.refused_write(request)) is not None:
            return refused
        try:
            return answer(await self._appliance.reload(flag(request, "force")))
        except BridgeError as error:
            return failure(error)

    async def _access_told(self, request: web.Request) -> web.Response:
        return self._access.standing(request)

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Every answer, an error's too, carries the same headers; an error is JSON."""
        self._gate.began(request.protocol)
        try:
            refused = self._access.refused(request, is_page=is_page(request.path))
            response = refused if refused is not None else await _handled(request, handler)
        finally:
            self._gate.ended(request.protocol)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response


async def _handled(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        response = answer({"error": error.reason}, status=error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
    except Exception:
        logger.exception("%s failed", request.path)
        response = answer({"error": "internal error, see the log"}, status=500)
    return response


def _in_words(verdict: dict[str, Any]) -> dict[str, Any]:
    if not verdict.get("class"):
        return verdict
    name = class_name(verdict["class"])
    return verdict | {"class_name": name, "words": meaning_of(name)}
