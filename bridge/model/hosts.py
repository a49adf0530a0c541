"""Addresses of hosts in one spelling: what is compared, counted or kept must be the same text."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network

_MAPPED: Final = IPv6Network("::ffff:0:0/96")


def canonical(host: str) -> str:
    """An address in its usual form, without brackets; a name in small letters.

    An IPv4 address that a socket for both families shows as one of IPv6 is the IPv4 address."""
    if ":" not in host:
        return host.lower()
    try:
        return address_text(ip_address(host.strip("[]")))
    except ValueError:
        return host.lower()


def address_text(address: IPv4Address | IPv6Address) -> str:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def without_scope(host: str) -> str:
    """Of a link-local address the interface means something on this machine only."""
    return host.partition("%")[0]


def network(text: str) -> Network:
    """A network in CIDR notation, or one address; ValueError if it is anything else. One of
    IPv4-mapped addresses is the IPv4 network that it stands for."""
    found = ip_network(text)
    if isinstance(found, IPv6Network) and found.subnet_of(_MAPPED):
        mapped = found.network_address.ipv4_mapped
        return IPv4Network((mapped or 0, found.prefixlen - _MAPPED.prefixlen))
    return found


def neighbourhood(host: str) -> str:
    """What a bound counts as one: an IPv4 address, or a /64, which an IPv6 host has to itself."""
    return host if ":" not in host else _neighbourhood(host)


@lru_cache(maxsize=4096)
def _neighbourhood(host: str) -> str:
    try:
        address = IPv6Address(without_scope(host))
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))
