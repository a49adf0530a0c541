"""The admin port: /livez, /readyz, /metrics and the JSON API, for operators and probes."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Protocol

from aiohttp import web

from bridge.adapters.config_files import read_token
from bridge.adapters.net.admin_answers import answer, failure
from bridge.adapters.net.queue_routes import QueueRoutes
from bridge.adapters.queue_desk import QueueDesk
from bridge.adapters.telemetry import Telemetry
from bridge.model.errors import BridgeError, ConfigError

logger = logging.getLogger(__name__)

TRACED: Final = ("id", "label", "correlation")
MAX_BODY: Final = 64 * 1024
IDLE_TIMEOUT_S: Final = 15.0  # also the time a peer has for the head of its request
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
        self, appliance: Appliance, telemetry: Telemetry, token_file: Path | None = None
    ) -> None:
        self._appliance, self._telemetry = appliance, telemetry
        self._token_file = token_file
        self._queues = QueueRoutes(lambda: appliance.desk, self._refused)
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> str:
        """Listen; returns `host:port` as it really is."""
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=IDLE_TIMEOUT_S,
            lingering_time=0,
            max_line_size=4096,
            max_field_size=4096,
            shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            what = f"cannot listen on {_joined(host, port)} ({error.strerror or error})"
            mend = "choose another port or address, or stop what uses it"
            raise ConfigError(what, where="listen.admin", mend=mend) from error
        self._runner = runner
        bound = runner.addresses[0]
        return _joined(bound[0], bound[1])

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=MAX_BODY, middlewares=[_guard])
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/api/status", self._status)
        application.router.add_get("/api/trace", self._trace)
        application.router.add_post("/api/mappings/reload", self._reload)
        self._queues.register(application.router)
        return application

    async def _livez(self, _: web.Request) -> web.Response:
        return answer({"live": True})

    async def _readyz(self, _: web.Request) -> web.Response:
        ready, reasons = self._appliance.ready()
        return answer({"ready": ready, "reasons": reasons}, status=200 if ready else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = self._telemetry.exposition(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _status(self, _: web.Request) -> web.Response:
        return answer(self._appliance.status())

    async def _trace(self, request: web.Request) -> web.Response:
        asked = [(kind, text) for kind, text in request.query.items() if kind in TRACED and text]
        if len(asked) != 1 or len(request.query) != 1:
            return answer({"error": f"ask with one of {', '.join(TRACED)}"}, status=400)
        try:
            return answer({"verdicts": await self._appliance.trace(*asked[0])})
        except BridgeError as error:
            return failure(error)

    async def _reload(self, request: web.Request) -> web.Response:
        if (refused := self._refused(request)) is not None:
            return refused
        force = request.query.get("force", "0")
        if force not in ("0", "1"):
            return answer({"error": "force is 0 or 1"}, status=400)
        try:
            return answer(await self._appliance.reload(force == "1"))
        except BridgeError as error:
            return failure(error)

    def _refused(self, request: web.Request) -> web.Response | None:
        """Who may write: whoever has the token; without one this machine, but no web page in it."""
        if self._token_file is None:
            if (
                ip_address(request.remote or "0.0.0.0").is_loopback
                and "Origin" not in request.headers
            ):
                return None
            mend = "set admin.token_file to write from elsewhere"
            return answer({"error": f"only this machine may write; {mend}"}, status=403)
        try:
            token = read_token(self._token_file)
        except ConfigError as error:
            logger.error("nobody may write: %s", error)  # the path is not for strangers
            return answer({"error": "admin.token_file cannot be used, see the log"}, status=503)
        given = request.headers.get("Authorization", "")
        if hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode()):
            return None
        return answer({"error": "the admin token is missing or wrong"}, status=401)


@web.middleware
async def _guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Every answer, an error's too, is JSON and carries the same headers."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = answer({"error": error.reason}, status=error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
    except Exception:
        logger.exception("%s failed", request.path)
        response = answer({"error": "internal error, see the log"}, status=500)
    response.headers.update(_HEADERS)
    return response


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
