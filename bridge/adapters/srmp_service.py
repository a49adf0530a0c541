"""All that speaks HTTP for MSMQ: the listeners, what becomes of a POST, and the receipts."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence

from bridge.adapters.intake import Intake
from bridge.adapters.net.http_server import HttpServer
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import CertificateReload, client_context, server_context
from bridge.adapters.own_hosts import OwnHosts
from bridge.adapters.postman import Postman
from bridge.adapters.receipt_targets import ReceiptTargets
from bridge.adapters.srmp_server import SrmpServer
from bridge.adapters.telemetry import Telemetry
from bridge.config import Config, DefaultPort, Redirect
from bridge.core.catalogue import Catalogue
from bridge.core.redirection import Redirects, host_of
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid

_log = logging.getLogger(__name__)


class SrmpService:
    def __init__(
        self,
        config: Config,
        names: Sequence[str],
        local: Guid,
        ordinals: Callable[[], int],
        intake: Intake,
        catalogue: Callable[[], Catalogue],
        telemetry: Telemetry,
    ) -> None:
        self._config, self._names = config, names
        redirects = _table(config.srmp.redirect_in)
        hosts = OwnHosts([*names, *redirects.hosts()])
        _require_own(config.srmp.redirect_in, hosts)
        server = SrmpServer(intake, catalogue, hosts, redirects, telemetry)
        self._server = HttpServer(server.handle, telemetry)
        targets = ReceiptTargets(
            config.srmp.receipt_targets,
            {str(name): address for name, address in config.peers.items()},
            _table(config.srmp.redirect_out),
        )
        trust = client_context(config.srmp.ca_file)
        self.postman = Postman(local, ordinals, targets, telemetry, trust)
        self._reload: asyncio.Task[None] | None = None

    async def start(self) -> dict[str, str]:
        """Listen; returns what is ready and where."""
        listen = self._config.listen
        ready: dict[str, str] = {}
        if listen.srmp is not None:
            try:
                ready["srmp"] = await self._server.start(listen.host, listen.srmp)
            except ConfigError as error:
                if not isinstance(listen.srmp, DefaultPort):
                    raise
                _log.warning("%s; messages over HTTP are off", error)
        if listen.srmp_tls is not None:
            ready["srmp_tls"] = await self._server.start(listen.host, listen.srmp_tls, self._tls())
        return ready

    def _tls(self) -> ssl.SSLContext:
        srmp = self._config.srmp
        certificate, key = srmp.certificate, srmp.key or srmp.certificate
        if certificate is None or key is None:
            certificate, key = self_signed(self._names, self._config.data)
            _log.warning(
                "srmp.certificate is not set: HTTPS uses %s, which we signed ourselves", certificate
            )
        context = server_context(certificate, key, srmp.tls)
        self._reload = asyncio.create_task(CertificateReload(context, certificate, key).run())
        return context

    @property
    def connections(self) -> int:
        return self._server.connections

    def stop_listening(self) -> None:
        self._server.stop_listening()

    async def stop(self) -> None:
        self.postman.stop()
        if self._reload is not None:
            self._reload.cancel()
        await self._server.hang_up()


def _require_own(redirects: Sequence[Redirect], hosts: OwnHosts) -> None:
    """SR-15 would forward to another host. We are no router, so nobody shall count on it."""
    for number, redirect in enumerate(redirects):
        if (host := host_of(redirect.target)) not in hosts:
            raise ConfigError(
                f"'to' leads to {host[:80]!r}, which is not one of queue_manager.names",
                where=f"srmp.redirect_in[{number}]",
                mend="add the name if it is ours; messages are not forwarded to other hosts",
            )


def _table(redirects: Sequence[Redirect]) -> Redirects:
    return Redirects((redirect.source, redirect.target) for redirect in redirects)
