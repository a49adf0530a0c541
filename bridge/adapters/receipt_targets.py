"""Where receipts and administration acks may go. Their hosts come from the network: without a list
of places the appliance would connect wherever a stranger wants.

What the operator wrote is trusted: `redirect_out` and `peers` say where a host really is. Listeners
of our own are never a target of what a stranger wrote, whatever the list says. The address that was
checked is the one that is connected: a name is not looked up a second time.

A sender may name a host that only it knows (a NetBIOS name), or one that it may not name. With
`sender` on the list the receipt then goes to the address that the message came from, at the port
and path of the URL, which the sender could have named by its address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from bridge.adapters.own_listeners import IPAddress, OwnListeners, forms
from bridge.config import MSMQ_PORT, Address
from bridge.core.redirection import Redirects
from bridge.model import hosts
from bridge.model.errors import BridgeError
from bridge.wire.srmp.head import Endpoint, split_url

SENDER: Final = "sender"
LOOPBACK: Final = "loopback"
ANYWHERE: Final = "*"
RESOLVE_S: Final = 5.0


class TargetRefused(BridgeError):
    """Nothing goes there that a message asks for."""


class Target(msgspec.Struct, frozen=True, gc=False):
    """What is POSTed to, and the address that is connected for it."""

    endpoint: Endpoint
    address: str
    port: int
    tls_name: str = ""  # over TLS, and whose certificate it must be
    instead: str = ""  # why it is the sender's address and not the host of the URL


class ReceiptTargets:
    def __init__(
        self,
        allowed: Iterable[str],
        peers: Mapping[str, Address] | None = None,
        redirects: Redirects | None = None,
        own: OwnListeners | None = None,
    ) -> None:
        self._own = own or OwnListeners()
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
        host, port = endpoint.host, endpoint.port
        if self._own.are_named(host, port):
            raise TargetRefused(f"{host[:80]}:{port} is a listener of our own")
        try:
            addresses = await _resolve(host, port)
        except (socket.gaierror, TargetRefused) as error:
            if not self._is_listed(host, port) and (home := self._home(peer, port)):
                return Target(endpoint, home, port, _tls_name(endpoint), "its name is unknown")
            raise error
        for address in addresses:
            if self._permits(address, host, port, peer):
                return Target(endpoint, str(address), port, _tls_name(endpoint))
        refused = TargetRefused(f"{endpoint.authority} is not in srmp.receipt_targets")
        if any(self._own.include(address, port) for address in addresses):
            raise refused  # the host is this machine, so the sender's address is not what was meant
        if home := self._home(peer, port):
            why = "it is not in srmp.receipt_targets"
            return Target(endpoint, home, port, _tls_name(endpoint), why)
        raise refused

    def _home(self, peer: str, port: int) -> str:
        """The address that a message came from, if what the message asks for may go there without
        its name; an empty text if not. Loopback may be a proxy before us: only if it is listed."""
        try:
            address = _plain(peer)
        except ValueError:
            return ""
        if SENDER not in self._words or self._own.include(address, port):
            return ""
        may = _is_ordinary(address) or (LOOPBACK in self._words and address.is_loopback)
        return str(address) if may else ""

    def _is_listed(self, host: str, port: int) -> bool:
        return bool(self._hosts & {(_bare(host), None), (_bare(host), port)})

    async def find_host(
        self, host: str, port: int, peers: Collection[str]
    ) -> tuple[str, Collection[str]]:
        """The address of a host that is named in messages of these peers (their addresses), and
        those among them that may name it. Raises TargetRefused if none may, and OSError."""
        addresses = await self._resolve(host, port)
        allowed = {
            peer: address
            for address in reversed(addresses)
            for peer in peers
            if self._permits(address, host, port, peer)
        }
        if not allowed:
            raise TargetRefused(f"{host[:80]} is not in srmp.receipt_targets")
        return str(next(a for a in addresses if a in allowed.values())), list(allowed)

    def is_own(self, address: str, port: int) -> bool:
        """Whether that is a listener of ours; `address` is one, not a name."""
        return self._own.include(_plain(address), port)

    async def reach(self, url: str) -> Target:
        """For a URL of the operator's own, which may lead anywhere; of several addresses the one
        that answers. Raises as `find`."""
        endpoint = split_url(url)
        anywhere = Target(endpoint, _bare(endpoint.host), endpoint.port, _tls_name(endpoint))
        return await self._told(url, endpoint) or anywhere

    async def _resolve(self, host: str, port: int) -> list[IPAddress]:
        if self._own.are_named(host, port):
            raise TargetRefused(f"{host[:80]}:{port} is a listener of our own")
        return await _resolve(host, port)

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
            host = await _first(known.host, port)
            if port != known.port and self.is_own(host, port):  # the port is a stranger's
                raise TargetRefused(f"{endpoint.authority} is a listener of our own")
            return Target(endpoint, host, port, _tls_name(endpoint))
        return None

    def _permits(self, address: IPAddress, host: str, port: int, peer: str) -> bool:
        if self._own.include(address, port):
            return False
        return (
            (SENDER in self._words and _is_at(peer, address))
            or (LOOPBACK in self._words and address.is_loopback)
            or (ANYWHERE in self._words and all(map(_is_ordinary, forms(address))))
            or self._is_listed(host, port)
            or any(_holds(network, address) for network in self._networks)
        )


def _bare(host: str) -> str:
    return host.lower().strip("[]").removesuffix(".")


def _is_at(peer: str, address: IPAddress) -> bool:
    try:
        return _plain(peer) == address
    except ValueError:  # an entry of an earlier version may have none
        return False


def _plain(text: str) -> IPAddress:
    """An IPv4 address that a socket for both families shows as one of IPv6 is itself."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return hosts.network(text)
    except ValueError:
        return None


def _tls_name(endpoint: Endpoint) -> str:
    return _bare(endpoint.host) if endpoint.scheme == "https" else ""


def _is_ordinary(address: IPAddress) -> bool:
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
    )


def _holds(network: ipaddress.IPv4Network | ipaddress.IPv6Network, address: IPAddress) -> bool:
    """A network that is wider than loopback or link-local, as 0.0.0.0/0, does not mean these."""
    if address not in network:
        return False
    return network.is_loopback or network.is_link_local or all(map(_is_ordinary, forms(address)))


async def _resolve(host: str, port: int) -> list[IPAddress]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await loop.getaddrinfo(_bare(host), port, type=socket.SOCK_STREAM)
    except (ValueError, OverflowError) as error:  # NUL, an empty or a very long label
        raise TargetRefused(f"{host[:80]!r} is not a valid host name") from error
    return [_plain(str(info[4][0])) for info in found]


async def _first(host: str, port: int) -> str:
    return str((await _resolve(host, port))[0])
