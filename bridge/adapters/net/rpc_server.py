"""RPC on TCP: one `RpcServer` per port, one `RpcProcess` for all of them.

Association groups, and with them context handles, belong to the process: a group that was opened
on one port can be joined on another. A group is run down when its last connection is gone and the
last of its calls has ended, so that no call can take something for a client that is no more.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from itertools import count
from typing import Final

from bridge.adapters.kerberos import Kerberos
from bridge.adapters.net.connection import now
from bridge.adapters.net.crowd import Crowd, Hall
from bridge.adapters.net.listening import listen
from bridge.adapters.net.rpc_connection import CROWDED, RpcConnection
from bridge.adapters.telemetry import Telemetry
from bridge.model.hosts import neighbourhood
from bridge.protocol.rpc.association import Association
from bridge.protocol.rpc.calls import AuthLevel, Interface
from bridge.protocol.rpc.dialogue import Limits, Runtime
from bridge.protocol.rpc.fragments import Stub
from bridge.protocol.rpc.groups import AssociationGroups
from bridge.protocol.rpc.guesses import Guesses
from bridge.protocol.rpc.negotiate import NegotiateAcceptor, NegotiateChooser
from bridge.protocol.rpc.ntlm import Acceptor, Accounts, HostNames, NtlmAcceptor
from bridge.protocol.rpc.security import AuthType
from bridge.wire.rpc.bind import Syntax

_log = logging.getLogger(__name__)
HELD: Final = 256 << 20  # bytes of requests and answers, of all connections
STRANGERS: Final = 1_000  # connections that are not bound, or have not proved a name that they need
MOST: Final = 10_000  # connections
PER_ADDRESS: Final = 1024  # of them
MOST_OLD: Final = 10_000  # users that are named in the log


class RpcProcess:
    """What all RPC ports share. Without `accounts` and `kerberos` nobody can authenticate."""

    def __init__(
        self,
        telemetry: Telemetry,
        accounts: Accounts | None = None,
        *,
        kerberos: Kerberos | None = None,
        host: str = "localhost",
        limits: Limits | None = None,
        hall: Hall | None = None,
        per_address: int = PER_ADDRESS,
        old_ntlm: bool = False,
    ) -> None:
        self.telemetry = telemetry
        self._on_old = self._log_old if old_ntlm else None
        self._old: set[str] = set()  # users that have been named in the log
        self.limits = limits or Limits()
        self._crowd: Crowd[RpcConnection] = Crowd(
            hall, per_address=per_address, strangers=STRANGERS, most=MOST
        )
        self._accounts, self._kerberos, self._names = accounts, kerberos, HostNames.of(host)
        self._guesses = Guesses()
        self.groups = AssociationGroups(self._random_group)
        self.numbers = count(1)  # of connections
        self.interfaces: list[Interface] = []
        self.connections: set[RpcConnection] = set()
        self._holders: dict[RpcConnection, int] = {}  # of many bytes, in this order
        self._held = 0
        self._calls: dict[int, set[asyncio.Task[Stub]]] = {}  # by group
        self._leaving: set[int] = set()  # groups that wait for their last call

    def serve(self, interfaces: Sequence[Interface]) -> None:
        """They hear of every rundown."""
        self.interfaces += [one for one in interfaces if one not in self.interfaces]

    def acceptor(self, auth_type: int, level: AuthLevel, peer: str) -> Acceptor | None:
        if auth_type == AuthType.NTLM:
            return self._ntlm(level, peer)
        if auth_type == AuthType.NEGOTIATE:
            return self._negotiate(level, peer)
        if auth_type == AuthType.KERBEROS and self._kerberos is not None:
            return self._kerberos.acceptor(spnego=False)
        return None

    def _ntlm(self, level: AuthLevel, peer: str) -> NtlmAcceptor | None:
        if self._accounts is None:
            return None
        return NtlmAcceptor(
            self._accounts,
            self._names,
            secrets.token_bytes(8),
            guesses=self._guesses,
            peer=neighbourhood(peer),
            strong=level >= AuthLevel.INTEGRITY,
            on_old=self._on_old,
        )

    def _log_old(self, peer: str, user: str) -> None:
        """Once for each user; only users with the right password come here."""
        if user not in self._old and len(self._old) < MOST_OLD:
            self._old.add(user)
            _log.warning(
                "rpc.old_ntlm: %s at %s logs on with an NTLM2-session response, "
                "from which its password hash can be found; let it send NTLMv2",
                user,
                peer,
            )

    def _negotiate(self, level: AuthLevel, peer: str) -> Acceptor | None:
        ntlm = self._ntlm(level, peer)
        wrapped = None if ntlm is None else NegotiateAcceptor(ntlm)
        if self._kerberos is None:
            return wrapped
        return NegotiateChooser(self._kerberos.acceptor(spnego=True), wrapped)

    def _random_group(self) -> int:
        while (group := secrets.randbits(32)) in self._leaving:
            pass
        return group

    # -- connections ------------------------------------------------------------------------

    def made(self, connection: RpcConnection) -> None:
        self.connections.add(connection)
        self.telemetry.rpc_connections.inc()
        if not self._crowd.arrive(connection, connection.host):
            connection.hang_up(CROWDED)

    def heard(self, connection: RpcConnection) -> None:
        if connection.association.is_known:
            self._crowd.opened(connection)
            self._crowd.used(connection)

    def lost(self, connection: RpcConnection) -> None:
        self.connections.discard(connection)
        self._crowd.leave(connection)
        self.telemetry.rpc_connections.dec()

    def holds(self, connection: RpcConnection, more: int) -> None:
        """Who has been at it longest is probably not going to finish."""
        self._held += more
        left = self._holders.get(connection, 0) + more
        if left:
            self._holders[connection] = left
        else:
            del self._holders[connection]
        if self._held > HELD and more > 0:
            next(iter(self._holders)).hang_up("rpc-unfinished")

    # -- calls and rundown ------------------------------------------------------------------

    def started(self, task: asyncio.Task[Stub], group: int) -> None:
        self._calls.setdefault(group, set()).add(task)
        task.add_done_callback(lambda task: self._ended(task, group))

    def _ended(self, task: asyncio.Task[Stub], group: int) -> None:
        calls = self._calls[group]
        calls.discard(task)
        if not calls:
            del self._calls[group]
            if group in self._leaving:
                self._leaving.discard(group)
                self._run_down(group)

    def run_down(self, group: int) -> None:
        if group in self._calls:
            self._leaving.add(group)
        else:
            self._run_down(group)

    def _run_down(self, group: int) -> None:
        for interface in self.interfaces:
            try:
                interface.rundown(group)
            except Exception:  # the others must hear of it all the same
                _log.exception("rundown of group %d failed", group)

    def stop_reading(self) -> None:
        """A reader that goes on and on must not keep us from coming to an end."""
        for connection in self.connections:
            connection.stop_reading()

    async def stop(self) -> None:
        """Hang up everybody; returns when every call has ended and every group is run down."""
        for connection in list(self.connections):
            connection.hang_up("shutdown")
        while self._calls:
            await asyncio.wait([task for calls in self._calls.values() for task in calls])
            await asyncio.sleep(0)  # their callbacks


class RpcServer:
    """Serves these interfaces on one port."""

    def __init__(self, interfaces: Sequence[Interface], process: RpcProcess) -> None:
        self._interfaces, self._process = interfaces, process
        self._server: asyncio.Server | None = None
        process.serve(interfaces)
        served = [Syntax(one.uuid, *one.version) for one in interfaces]
        self._runtime = Runtime(served, process.groups, process.acceptor, process.limits)

    async def start(self, host: str, port: int, where: str = "listen.rpc") -> str:
        """Listen; returns `host:port` as it really is."""
        self._server, address = await listen(self._connection, host, port, where)
        return address

    def _connection(self) -> RpcConnection:
        return RpcConnection(self._interfaces, self._associate, self._process)

    def _associate(self, peer: str, local: tuple[str, int]) -> Association:
        return Association(
            self._runtime,
            connection=next(self._process.numbers),
            peer=peer,
            local=local,
            now=now(),
        )

    def stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
