"""Who may do what on the admin port.

Writes need the token or a client certificate, from this machine too: whatever can make a process
of this machine connect to the port must not be able to write. Reads that name senders (their GUIDs,
addresses, streams and messages) need the same. The other reads are open to every client that
reaches the port, unless `admin.protect_reads` is on. A browser is let in only by a name that is
ours (an attacker's name can be made to lead here: DNS rebinding), and no page of another site may
write.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from bridge.adapters.config_files import read_token
from bridge.adapters.net.admin_answers import answer
from bridge.adapters.telemetry import Telemetry
from bridge.config import AdminConfig
from bridge.model.errors import ConfigError
from bridge.model.hosts import neighbourhood

logger = logging.getLogger(__name__)

MOST_WRONG: Final = 5  # tokens of one address, within:
WINDOW_S: Final = 60.0
MAX_ADDRESSES: Final = 1024
PROBES: Final = ("/livez", "/readyz")
_OPEN: Final = (*PROBES, "/api/access")
_ANY_NAME: Final = PROBES  # asked by load balancers under names that are not in the configuration
# They name senders: GUIDs, addresses, streams, messages. With these a stranger could pass for one.
OF_SENDERS: Final = frozenset(
    (
        "/api/streams",
        "/api/streams/waiting",
        "/api/sessions",
        "/api/acks",
        "/api/refusals",
        "/api/trace",
        "/api/queues/messages",
    )
)
_LOCAL: Final = "localhost"

Refusal = web.Response | None


class Access:
    """`names`: what browsers may call us beside our addresses. `token_file`: the generated token,
    which counts unless the settings name another."""

    def __init__(
        self,
        settings: AdminConfig,
        names: Iterable[str],
        telemetry: Telemetry,
        token_file: Path | None = None,
    ) -> None:
        self._settings, self._telemetry = settings, telemetry
        self._token_file = settings.token_file or token_file
        self._names = {name.lower().rstrip(".") for name in (*settings.names, *names)}
        self._wrong = WrongTokens()

    def refused(self, request: web.Request, *, is_page: bool) -> Refusal:
        """Whether it may look; the page itself holds nothing that is secret."""
        if request.path not in _ANY_NAME and not self._is_our_name(request):
            host = request.headers["Host"][:80]
            error = f"'{host}' is no name of this appliance; add it to admin.names"
            return answer({"error": error}, status=HTTPStatus.MISDIRECTED_REQUEST)
        if is_page or request.path in _OPEN:
            return None
        if self._settings.protect_reads or _resource(request) in OF_SENDERS:
            return self._unproven(request)
        return None

    def refused_write(self, request: web.Request) -> Refusal:
        """The token is proof by itself: a page of another site cannot send it. A certificate is
        not: a browser shows it for every page."""
        if not _has_certificate(request):
            return self._unproven(request)
        origin = request.headers.get("Origin")
        if origin is None or urlsplit(origin).netloc == request.headers.get("Host"):
            return None
        error = "a page of another site may not write"
        return answer({"error": error}, status=HTTPStatus.FORBIDDEN)

    def sees_senders(self, request: web.Request) -> bool:
        """Whether an answer may hold what names senders. A wrong token counts as a guess."""
        if not (_has_certificate(request) or _has_token(request)):
            return False
        return self._unproven(request) is None

    def standing(self, request: web.Request) -> web.Response:
        """What needs the token here, and whether who asks has it; `error` if he has a wrong one.

        Always 200, so that a page can ask without an error in its console."""
        settings = self._settings
        is_known = _has_certificate(request)
        error = None
        if not is_known and _has_token(request):
            refused = self._unproven(request)
            is_known, error = refused is None, refused and json.loads(refused.text or "")["error"]
        return answer(
            {
                "protect_reads": settings.protect_reads,
                "token": self._token_file is not None,
                "may_read": is_known or not settings.protect_reads,
                "may_see_senders": is_known,
                "may_write": is_known,
                "error": error,
            }
        )

    def _unproven(self, request: web.Request) -> Refusal:
        """None for who has a certificate or the token."""
        if _has_certificate(request):
            return None
        wait_s = self._wrong.wait_s(request.remote)
        if wait_s:
            error = f"too many wrong tokens; try again in {wait_s} s"
            refusal = answer({"error": error}, status=HTTPStatus.TOO_MANY_REQUESTS)
            refusal.headers["Retry-After"] = str(wait_s)
            return refusal
        return self._wrong_token(request)

    def _wrong_token(self, request: web.Request) -> Refusal:
        path = self._token_file
        if path is not None:
            try:
                token = read_token(path)
            except ConfigError as error:
                logger.error("writes are refused: %s", error)  # the path is not for strangers
                text = "the admin token cannot be used, see the log"
                return answer({"error": text}, status=HTTPStatus.SERVICE_UNAVAILABLE)
            given = request.headers.get("Authorization", "")
            if hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {token}".encode()):
                return None
        if _has_token(request):
            self._wrong.note(request.remote)
            self._telemetry.refusal("admin-token")
            logger.warning("wrong admin token from %s", request.remote)
        refusal = answer(
            {"error": "the admin token is missing or wrong"}, status=HTTPStatus.UNAUTHORIZED
        )
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    def _is_our_name(self, request: web.Request) -> bool:
        """An address cannot be rebound; who sends no Host is no browser."""
        host = request.headers.get("Host")
        if not host:
            return True
        name = _name_in(host)
        if name == _LOCAL or name.endswith(f".{_LOCAL}") or name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


class WrongTokens:
    """Guessing is slow: an address that gave several wrong tokens waits, whatever it says next."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, list[float]] = OrderedDict()

    def note(self, remote: str | None) -> None:
        who, now = neighbourhood(remote or ""), time.monotonic()
        seen = [at for at in self._seen.pop(who, []) if at > now - WINDOW_S]
        self._seen[who] = [*seen, now][-MOST_WRONG:]
        if len(self._seen) > MAX_ADDRESSES:
            self._seen.popitem(last=False)

    def wait_s(self, remote: str | None) -> int:
        """0: it may try."""
        seen = self._seen.get(neighbourhood(remote or ""), [])
        left = seen[0] + WINDOW_S - time.monotonic() if len(seen) == MOST_WRONG else 0.0
        return int(left) + 1 if left > 0 else 0


def _name_in(host: str) -> str:
    """The Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().rstrip(".")


def _resource(request: web.Request) -> str:
    """The path of the route that serves the request, however the URL spells it."""
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical


def _has_token(request: web.Request) -> bool:
    return "Authorization" in request.headers


def _has_certificate(request: web.Request) -> bool:
    """One of `admin.client_ca`: the handshake would have failed with another."""
    transport: Any = request.transport
    return transport is not None and bool(transport.get_extra_info("peercert"))
