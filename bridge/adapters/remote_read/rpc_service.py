"""Remote read on the network: its ports, the interfaces behind them, who may use them. RR-1"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import Final

from bridge.adapters.accounts import UserFile
from bridge.adapters.kerberos import Kerberos
from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.rpc_server import RpcProcess, RpcServer
from bridge.adapters.own_hosts import OwnHosts
from bridge.adapters.remote_read.doors import Doors
from bridge.adapters.remote_read.endpoint_mapper import Endpoint, EndpointMapper
from bridge.adapters.remote_read.management import Management
from bridge.adapters.remote_read.opening import Opening
from bridge.adapters.remote_read.qm2qm import Qm2Qm
from bridge.adapters.remote_read.qmcomm import QmComm
from bridge.adapters.remote_read.reads import Owner, Reads
from bridge.adapters.remote_read.remote_read import RemoteRead
from bridge.adapters.telemetry import Telemetry
from bridge.config import Config, DefaultPort
from bridge.core.catalogue import Catalogue
from bridge.core.mapping_rules import Mappings
from bridge.core.remote_read.access import ReadAccess
from bridge.model.errors import ConfigError
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Interface
from bridge.protocol.rpc.dialogue import Limits

RPC: Final = "rpc"
RPC_QP: Final = "rpc_qp"
MAPPER: Final = "endpoint_mapper"
STEP: Final = 11  # to the next port, where the usual one is taken. MS-MQRR 2.1
TRIES: Final = 20
_log = logging.getLogger(__name__)


class RpcService:
    """`mappings` and `catalogue` are asked anew each time: mappings may be reloaded."""

    def __init__(
        self,
        config: Config,
        names: Sequence[str],
        local: Guid,
        retained: Owner,
        catalogue: Callable[[], Catalogue],
        mappings: Callable[[], Mappings],
        telemetry: Telemetry,
        hall: Hall | None = None,
    ) -> None:
        self._listen, rpc = config.listen, config.rpc
        self._is_open = rpc.is_open
        self._ports: dict[str, int] = {}
        hosts = (*names, socket.gethostname())
        users = None if rpc.users is None else UserFile(rpc.users, hosts)
        kerberos = None if rpc.keytab is None else Kerberos(rpc.keytab)
        access = ReadAccess(AuthLevel[rpc.minimum_level.upper()], has_users=bool(users or kerberos))
        opening = Opening(
            retained,
            catalogue,
            OwnHosts(names),
            local,
            access,
            lambda: mappings().defaults.allow_read,
        )
        opening.on_refused = lambda call, refused: telemetry.refused(
            f"rpc-open-{refused.status.name.lower().replace('_', '-')}",
            call.peer,
            str(refused),
            "rpc",
            user=call.user,
        )
        reads = Reads(retained)
        doors = Doors(opening, reads, secrets.token_bytes)
        self._remote_read = RemoteRead(opening, reads, lambda: self._port(RPC), secrets.token_bytes)
        self._qmcomm = QmComm(doors, reads, access, self._both_ports, secrets.token_bytes)
        self._qm2qm = Qm2Qm(doors, reads, access, self._both_ports, secrets.token_bytes)
        self._process = RpcProcess(
            telemetry,
            users,
            kerberos=kerberos,
            host=names[0],
            limits=Limits(anonymous=rpc.minimum_level == "none"),
            hall=hall,
            per_address=config.listen.per_address,
            old_ntlm=rpc.old_ntlm,
        )
        self._servers = self._make_servers(f"host/{names[0]}")

    def _make_servers(self, principal: str) -> dict[str, RpcServer]:
        """All interfaces are at both ports: clients ask one interface for the port of another."""
        reading: tuple[Interface, ...] = (self._remote_read, self._qmcomm, self._qm2qm)
        management = Management(lambda: [(one.uuid, one.version) for one in reading], principal)
        mapper = EndpointMapper(self._endpoints)
        return {
            RPC: RpcServer((*reading, management), self._process),
            RPC_QP: RpcServer((*reading, management), self._process),
            MAPPER: RpcServer((mapper, management), self._process),
        }

    # -- ports ------------------------------------------------------------------------------

    def _port(self, name: str) -> int:
        """0: it is not served."""
        return self._ports.get(name, 0)

    def _both_ports(self) -> tuple[int, int]:
        return self._port(RPC), self._port(RPC_QP)

    def _endpoints(self) -> list[Endpoint]:
        """RR-2"""
        found = (
            Endpoint(
                self._remote_read.uuid, (1, 0), self._port(RPC), "Message Queuing - RemoteRead V1"
            ),
            Endpoint(self._qmcomm.uuid, (1, 0), self._port(RPC), "Message Queuing - QMRT V1"),
            Endpoint(self._qm2qm.uuid, (1, 0), self._port(RPC_QP), "Message Queuing - QM2QM V1"),
        )
        return [endpoint for endpoint in found if endpoint.port]

    # -- life -------------------------------------------------------------------------------

    async def start(self) -> dict[str, str]:
        """Listeners that are ready, by name; one that nobody asked for may be missing."""
        ready: dict[str, str] = {}
        if not self._is_open:
            self._warn_closed()
            return ready
        for name, server in self._servers.items():
            address = await self._start(name, server)
            if address is not None:
                ready[name] = address
                self._ports[name] = int(address.rpartition(":")[2])
        return ready

    def _warn_closed(self) -> None:
        wanted = [name for name in self._servers if _is_written(getattr(self._listen, name))]
        if wanted:
            _log.warning(
                "listen.%s: closed, because no client could log on; "
                "set rpc.users or rpc.keytab, or rpc.minimum_level: none",
                ", listen.".join(wanted),
            )

    @property
    def closed(self) -> list[str]:
        """Listeners that would be open if anybody could log on."""
        wanted = (name for name in self._servers if getattr(self._listen, name) is not None)
        return [] if self._is_open else list(wanted)

    async def _start(self, name: str, server: RpcServer) -> str | None:
        port: int | None = getattr(self._listen, name)
        if port is None:
            return None
        where = f"listen.{name}"
        if not isinstance(port, DefaultPort):
            return await server.start(self._listen.host, port, where)
        tries = 1 if name == MAPPER else TRIES
        for attempt in range(tries):
            try:
                return await server.start(self._listen.host, port + STEP * attempt, where)
            except ConfigError as error:
                why = error
        _log.warning("%s; this way to read remotely is off", why)
        return None

    def stop_listening(self) -> None:
        """Nothing more is asked; what was, may still be answered."""
        for server in self._servers.values():
            server.stop_listening()
        self._process.stop_reading()

    async def stop(self) -> None:
        """What readers had not ended is available again."""
        await self._process.stop()


def _is_written(port: int | None) -> bool:
    return port is not None and not isinstance(port, DefaultPort)
