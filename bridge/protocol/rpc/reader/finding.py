"""Where a host serves remote read: what to ask its endpoint mapper.

MS-MQRR first; a host that does not know it (Windows XP and earlier) is read over MS-MQQP.
"""

from __future__ import annotations

from typing import Final

from bridge.model.errors import ProtocolError
from bridge.model.guid import Guid
from bridge.wire.rpc.bind import Syntax
from bridge.wire.rpc.endpoint_mapper import ENDPOINT_MAPPER, NOT_REGISTERED, VERSION, Map, Mapped
from bridge.wire.rpc.qm2qm import QM2QM
from bridge.wire.rpc.qmcomm import QMCOMM
from bridge.wire.rpc.remote_read import REMOTE_READ
from bridge.wire.rpc.tower import Tower

MAPPER_PORT: Final = 135
PORTS: Final = (2103, 2114)  # where to look if nobody answers there: 2103, +11 when that is busy
READER: Final = Syntax(REMOTE_READ, 1, 0)
OLD_OPENER: Final = Syntax(QMCOMM, 1, 0)
OLD_READER: Final = Syntax(QM2QM, 1, 0)
MAPPER: Final = Syntax(ENDPOINT_MAPPER, *VERSION)


class NotServed(ProtocolError):
    """The host is there, and has no remote read."""

    def __init__(self) -> None:
        detail = "the host does not offer remote read (neither MS-MQRR nor MS-MQQP)"
        super().__init__("not-served", detail)


def question(interface: Guid = REMOTE_READ) -> Map:
    return Map(tower=Tower(interface, (1, 0)).pack())


def port_in(answer: Mapped, interface: Guid = REMOTE_READ) -> int:
    """NotServed if the host does not have the interface."""
    towers = (Tower.unpack(tower) for tower in answer.towers.items)
    ports = [tower.port for tower in towers if tower is not None and tower.uuid == interface]
    if answer.status == NOT_REGISTERED or not any(ports):
        raise NotServed
    return next(port for port in ports if port)
