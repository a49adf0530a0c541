"""All that speaks HTTP for MSMQ: the listeners, what becomes of a POST, receipts and forwards."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Collection, Sequence

from bridge.adapters.forwarder import Forwarder
from bridge.adapters.intake import Intake
from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.http_server import HttpServer, Limits
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import (
    CertificateReload,
    client_context,
    require_clients,
    server_context,
)
from bridge.adapters.own_hosts import Lookups, OwnHosts
from bridge.adapters.own_listeners import OwnListeners
from bridge.adapters.postman import Postman
from bridge.adapters.receipt_targets import ReceiptTargets
from bridge.adapters.srmp_server import SrmpServer
from bridge.adapters.telemetry import Telemetry
from bridge.config import Config, DefaultPort, Redirect
from bridge.core.catalogue import Catalogue
from bridge.core.known_senders import KnownSenders
from bridge.core.redirection import Redirects, host_of
from bridge.model.errors import ConfigError, WireError
from bridge.model.guid import Guid
from bridge.wire.srmp.head import split_url

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
        senders: KnownSenders | None = None,
        hall: Hall | None = None,
        own_ports: Callable[[], Collection[int]] = frozenset,
    ) -> None:
        """`own_ports`: those of all our listeners, where no receipt goes."""
        self._config, self._names = config, names
        redirects = _table(config.srmp.redirect_in)
        self._lookups = Lookups() if config.queue_manager.looks_up_names else None
        hosts = OwnHosts([*names, *redirects.hosts()], self._lookups)
        _require_reachable(config.srmp.redirect_in, hosts)
        server = SrmpServer(intake, catalogue, hosts, redirects, telemetry, senders=senders)
        self.rejected_hosts = server.rejected_hosts
        limits = Limits(per_peer=config.listen.per_address)
        self._server = HttpServer(server.handle, telemetry, limits, hall)
        self.targets = ReceiptTargets(
            config.srmp.receipt_targets,
            {str(name): address for name, address in config.peers.items()},
            _table(config.srmp.redirect_out),
            OwnListeners(own_ports, names),
        )
        trust = client_context(config.srmp.ca_file, config.srmp.tls)
        self.postman = Postman(local, ordinals, self.targets, telemetry, trust)
        self.forwarder = Forwarder(self.targets, telemetry, trust)
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
        if srmp.client_ca is not None:
            require_clients(context, srmp.client_ca)
        self._reload = asyncio.create_task(CertificateReload(context, certificate, key).run())
        return context

    @property
    def connections(self) -> int:
        return self._server.connections

    def stop_listening(self) -> None:
        """Nothing more comes in or goes on; that something has gone on may still be noted."""
        self._server.stop_listening()
        self.forwarder.stop()

    async def stop(self) -> None:
        self.postman.stop()
        if self._reload is not None:
            self._reload.cancel()
        if self._lookups is not None:
            self._lookups.stop()
        await self._server.hang_up()


def _require_reachable(redirects: Sequence[Redirect], hosts: OwnHosts) -> None:
    """Where nobody can send to, messages would wait for ever (SR-15)."""
    for number, redirect in enumerate(redirects):
        if host_of(redirect.target) in hosts:
            continue
        try:
            split_url(redirect.target).host.encode("idna")
        except (WireError, UnicodeError) as error:
            raise ConfigError(
                f"nothing can be sent to {redirect.target[:80]!r}",
                where=f"srmp.redirect_in[{number}]",
                mend="'to' is a URL like http://host02/msmq/private$/orders",
            ) from error


def _table(redirects: Sequence[Redirect]) -> Redirects:
    return Redirects((redirect.source, redirect.target) for redirect in redirects)
