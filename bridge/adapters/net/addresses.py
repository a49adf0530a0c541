"""The ends of a connection as the rest of the appliance knows them."""

from __future__ import annotations

from typing import Any, Final

from bridge.model.hosts import canonical

UNKNOWN: Final = "?"


def host_of(address: Any) -> str:
    """The host in what a socket calls an address; a peer that has gone already has none."""
    return canonical(str(address[0])) if address else UNKNOWN


def port_of(address: Any) -> int:
    return int(address[1]) if address else 0
