"""Where a host serves RemoteRead: what to ask its endpoint mapper. RR-43, RR-44"""

from __future__ import annotations

from typing import Final

from bridge.model.errors import ProtocolError
from bridge.wire.rpc.bind import Syntax
from bridge.wire.rpc.endpoint_mapper import ENDPOINT_MAPPER, NOT_REGISTERED, VERSION, Map, Mapped
from bridge.wire.rpc.remote_read import REMOTE_READ
from bridge.wire.rpc.tower import Tower

MAPPER_PORT: Final = 135
PORTS: Final = (2103, 2114)  # where to look if nobody answers there: 2103, +11 when that is busy
READER: Final = Syntax(REMOTE_READ, 1, 0)
MAPPER: Final = Syntax(ENDPOINT_MAPPER, *VERSION)


class NotServed(ProtocolError):
    """The host has an endpoint mapper, and no remote read."""

    def __init__(self) -> None:
        super().__init__("not-served", "the host does not offer remote read (MS-MQRR)")


def question() -> Map:
    return Map(tower=Tower(REMOTE_READ, (1, 0)).pack())


def port_in(answer: Mapped) -> int:
    """RR-44: a host without RemoteRead would need the old protocol, which we do not speak."""
    towers = (Tower.unpack(tower) for tower in answer.towers.items)
    ports = [tower.port for tower in towers if tower is not None and tower.uuid == REMOTE_READ]
    if answer.status == NOT_REGISTERED or not any(ports):
        raise NotServed
    return next(port for port in ports if port)
