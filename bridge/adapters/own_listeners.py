"""Which addresses and ports are listeners of ours: nothing that a message asks for goes there.

An address is judged after the name was resolved, so that the spelling does not count: `localhost.`,
`0`, `127.1`, `0x7f000001`, `[::ffff:127.0.0.1]` and a name that leads to this machine are all one.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ANY_PORT: Final = 9  # nothing is sent there


class OwnListeners:
    """`ports`: those that we listen on now. `names`: of this machine, as others call it; they may
    lead to a load balancer before us."""

    def __init__(
        self, ports: Callable[[], Collection[int]] = frozenset, names: Iterable[str] = ()
    ) -> None:
        self._ports = ports
        self._names = {name.lower().strip("[]").rstrip(".") for name in names}

    def are_named(self, host: str, port: int) -> bool:
        """Whether it is a name of ours, wherever that leads."""
        return host.lower().strip("[]").rstrip(".") in self._names and port in self._ports()

    def include(self, address: IPAddress, port: int) -> bool:
        return port in self._ports() and any(map(is_here, forms(address)))


def forms(address: IPAddress) -> Iterator[IPAddress]:
    """The address, and the IPv4 address that it stands for."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        if (inner := address.ipv4_mapped or address.sixtofour) is not None:
            yield inner
        elif address in _NAT64:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def is_here(address: IPAddress) -> bool:
    """Whether a connection to it ends on this machine. The kernel takes a local address as the
    source of a connection to itself; that something can be bound to it would prove less."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _ANY_PORT))
            source = str(probe.getsockname()[0]).partition("%")[0]
    except OSError:  # no way there, for TCP neither
        return False
    return ipaddress.ip_address(source) == address
