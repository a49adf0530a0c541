"""Where a receipt may go. Its URL comes from the network: without a list of places the appliance
would POST wherever a stranger wants (SR-49).

An operator's own words are trusted: `redirect_out` and `peers` say where a host really is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from bridge.config import MSMQ_PORT, Address
from bridge.core.redirection import Redirects
from bridge.model.errors import BridgeError
from bridge.wire.srmp.head import Endpoint, split_url

SENDER: Final = "sender"
LOOPBACK: Final = "loopback"
ANYWHERE: Final = "*"
RESOLVE_S: Final = 5.0

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class TargetRefused(BridgeError):
    """No receipt goes there."""


class Target(msgspec.Struct, frozen=True, gc=False):
    """What is POSTed to, and the address that is connected for it."""

    endpoint: Endpoint
    address: str
    port: int
    tls_name: str = ""  # over TLS, and whose certificate it must be


class ReceiptTargets:
    def __init__(
        self,
        allowed: Iterable[str],
        peers: Mapping[str, Address] | None = None,
        redirects: Redirects | None = None,
    ) -> None:
        self._peers = dict(peers or {})  # names in small letters
        self._redirects = redirects or Redirects()
        self._words = set[str]()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self._hosts = set[tuple[str, int | None]]()
        for text in allowed:
            self._allow(text)

    def _allow(self, text: str) -> None:
        if text in (SENDER, LOOPBACK, ANYWHERE):
            self._words.add(text)
        elif (network := _network(text)) is not None:
            self._networks.append(network)
        else:
            host, _, port = text.rpartition(":")
            named = (host, int(port)) if host and port.isdigit() else (text, None)
            self._hosts.add((_bare(named[0]), named[1]))

    async def find(self, url: str, peer: str) -> Target:
        """`peer` is the address that asked for the receipt. Raises TargetRefused, OSError, and
        WireError for what is no URL."""
        endpoint = split_url(url)
        if (told := await self._told(url, endpoint)) is not None:
            return told
        for address in await _resolve(endpoint.host, endpoint.port):
            if self._permits(address, endpoint, peer):
                return Target(endpoint, str(address), endpoint.port, _tls_name(endpoint))
        raise TargetRefused(f"{endpoint.authority} is not in srmp.receipt_targets")

    async def reach(self, url: str) -> Target:
        """For a URL of the operator's own, which may lead anywhere; of several addresses the one
        that answers. Raises as `find`."""
        endpoint = split_url(url)
        anywhere = Target(endpoint, _bare(endpoint.host), endpoint.port, _tls_name(endpoint))
        return await self._told(url, endpoint) or anywhere

    async def _told(self, url: str, endpoint: Endpoint) -> Target | None:
        """Where the operator says that it is."""
        if redirected := self._redirects.apply(url):  # SR-18: the host of To, the message as it is
            there = split_url(redirected)
            host = await _first(there.host, there.port)
            return Target(endpoint, host, there.port, _tls_name(there))
        if (known := self._peers.get(_bare(endpoint.host))) is not None:
            port = endpoint.port
            if not endpoint.names_port and known.port != MSMQ_PORT:
                port = known.port
            return Target(endpoint, await _first(known.host, port), port, _tls_name(endpoint))
        return None

    def _permits(self, address: IPAddress, endpoint: Endpoint, peer: str) -> bool:
        host = _bare(endpoint.host)
        return (
            (SENDER in self._words and str(address) == peer)
            or (LOOPBACK in self._words and address.is_loopback)
            or (ANYWHERE in self._words and _is_reachable(address))
            or bool(self._hosts & {(host, None), (host, endpoint.port)})
            or any(address in network for network in self._networks)
        )


def _bare(host: str) -> str:
    return host.lower().strip("[]")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _tls_name(endpoint: Endpoint) -> str:
    return _bare(endpoint.host) if endpoint.scheme == "https" else ""


def _is_reachable(address: IPAddress) -> bool:
    return not (address.is_link_local or address.is_multicast or address.is_unspecified)


async def _resolve(host: str, port: int) -> list[IPAddress]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(_bare(host), port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # an empty or a very long label
        raise TargetRefused(f"{host[:80]} is no name") from error
    addresses = [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in found]
    return [getattr(address, "ipv4_mapped", None) or address for address in addresses]


async def _first(host: str, port: int) -> str:
    return str((await _resolve(host, port))[0])
