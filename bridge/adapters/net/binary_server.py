"""MSMQ sessions on TCP 1801, those that peers open and those that we open to them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from bridge.adapters.courier import Courier
from bridge.adapters.intake import Intake
from bridge.adapters.logs import fields
from bridge.adapters.net.connection import CROWDED, REST_S, Connection
from bridge.adapters.net.crowd import Crowd, Hall
from bridge.adapters.net.host_names import resolving
from bridge.adapters.net.listening import listen
from bridge.adapters.telemetry import Telemetry
from bridge.config import Address
from bridge.core.access import AccessList
from bridge.core.identity import Ordinals
from bridge.core.known_senders import KnownSenders
from bridge.model.guid import NULL_GUID, Guid
from bridge.protocol.binary.handshake import AcceptorHandshake, InitiatorHandshake
from bridge.protocol.binary.order_acks import StreamRoom
from bridge.protocol.binary.session import Session, SessionSettings
from bridge.protocol.events import Instant

_log = logging.getLogger(__name__)
CONNECT_S: Final = 10.0
MOST_NAMED: Final = 5  # addresses of a clone in one line
HELD: Final = 256 << 20  # bytes of large packets that have not come to their end
STRANGERS: Final = 10_000  # connections whose handshake is not done; each takes about 6 KB
PER_ADDRESS: Final = 1024  # connections


class BinaryServer:
    def __init__(
        self,
        local: Guid,
        ordinals: Ordinals,
        intake: Intake,
        telemetry: Telemetry,
        settings: SessionSettings | None = None,
        *,
        routers: AccessList | None = None,
        senders: KnownSenders | None = None,
        hall: Hall | None = None,
        per_address: int = PER_ADDRESS,
    ) -> None:
        self._routers, self._known_senders = routers, senders
        self._local = local
        self._ordinals = ordinals
        self._intake = intake
        self._telemetry = telemetry
        self._settings = settings or SessionSettings()
        self._streams = StreamRoom()  # of all sessions
        self.connections: set[Connection] = set()
        self._crowd: Crowd[Connection] = Crowd(hall, per_address=per_address, strangers=STRANGERS)
        self._holders: dict[Connection, int] = {}  # of large unfinished packets, in this order
        self._held = 0
        self._senders: dict[Guid, dict[Connection, str]] = {}  # open sessions and their addresses
        self._resting: list[Connection] = []
        self.courier: Courier | None = None
        self._server: asyncio.Server | None = None
        self._empty = asyncio.Event()  # of connections

    async def start(self, host: str, port: int) -> str:
        """Listen; returns `host:port` as it really is."""
        self._server, address = await listen(
            lambda: Connection(self._accept, self._intake, self._telemetry, self),
            host,
            port,
            "listen.binary",
        )
        return address

    async def dial(self, address: Address, remote: Guid) -> Connection:
        """Open a session of our own; a null `remote` takes whoever answers (QB-24).

        Raises OSError, for every host that a peer can name.
        """

        def initiate(peer: str, now: Instant) -> Session:
            settings = self._settings
            handshake = InitiatorHandshake(
                self._local, remote, settings.window, int(settings.ack_timeout * 1000)
            )
            return self._session(handshake, peer, now)

        loop = asyncio.get_running_loop()
        with resolving(address.host):
            _, connection = await asyncio.wait_for(
                loop.create_connection(
                    lambda: Connection(initiate, self._intake, self._telemetry, self, address),
                    address.host,
                    address.port,
                ),
                CONNECT_S,
            )
        return connection

    def _accept(self, peer: str, now: Instant) -> Session:
        handshake = AcceptorHandshake(self._local, self._settings.window)
        return self._session(handshake, peer, now)

    def _bar(self, remote: Guid, peer: str) -> str:
        """Why it gets no session, or nothing; whoever of the two has opened it."""
        if remote in (NULL_GUID, self._local):
            return "impossible-guid"  # no other queue manager has it
        known = self._known_senders
        if known is None or known.pin == "off":
            return ""
        if why := known.why_barred(str(remote), peer):
            return why
        if not known.is_elsewhere(str(remote), peer):
            return ""
        self._telemetry.refused(
            "moved-guid",
            peer,
            f"it is known at {known.address(str(remote))}; hint: list it under `peers`, and see "
            "queue_manager.pin_senders",
            "binary",
            queue_manager=remote,
        )
        return ""

    def _session(
        self, handshake: AcceptorHandshake | InitiatorHandshake, peer: str, now: Instant
    ) -> Session:
        return Session(
            handshake,
            local=self._local,
            peer=peer,
            ordinals=self._ordinals,
            now=now,
            settings=self._settings,
            bar=self._bar,
            room=self._streams,
        )

    # -- what a connection tells its owner --------------------------------------------------

    def made(self, connection: Connection) -> None:
        self.connections.add(connection)
        if connection.initiated:
            self._crowd.others += 1
        elif not self._crowd.arrive(connection, connection.host):
            connection.hang_up(CROWDED)

    def opened(self, connection: Connection) -> None:
        self._crowd.opened(connection)
        session = connection.session
        connection.is_router = self._routers is not None and self._routers.lists(
            session.remote, session.peer
        )
        if not connection.initiated:
            sessions = self._senders.setdefault(session.remote, {})
            sessions[connection] = session.peer
            if len(addresses := set(sessions.values())) > 1:
                self._telemetry.refusal("cloned-guid")
                found = " and ".join(sorted(addresses)[:MOST_NAMED])
                _log.error(
                    "queue manager %s has sessions from %s at once: a cloned machine; "
                    "give each its own GUID",
                    session.remote,
                    found,
                    extra=fields(
                        reason="cloned-guid", peer=connection.name, queue_manager=session.remote
                    ),
                )
        if self.courier is not None:
            self.courier.opened(connection)

    def heard(self, connection: Connection) -> None:
        """It may be owed acks: remember where it is."""
        session = connection.session
        if self._known_senders is not None and not connection.initiated:
            self._known_senders.heard(str(session.remote), session.peer, time.time())

    def bars(self, connection: Connection) -> str:
        """It may have been known nowhere when its session began."""
        session, known = connection.session, self._known_senders
        return "" if known is None else known.why_barred(str(session.remote), session.peer)

    def claims(self, connection: Connection, batches: int) -> None:
        session = connection.session
        if self._known_senders is not None:
            self._known_senders.claim(str(session.remote), session.peer, batches)

    def used(self, connection: Connection) -> None:
        self._crowd.used(connection)

    def delivered(self, connection: Connection, tokens: Sequence[int]) -> None:
        if self.courier is not None:
            self.courier.delivered(connection, tokens)

    def holds(self, connection: Connection, more: int) -> None:
        """Who has been at it longest is probably not going to finish."""
        self._held += more
        left = self._holders.get(connection, 0) + more
        if left:
            self._holders[connection] = left
        else:
            del self._holders[connection]
        if self._held > HELD and more > 0:
            next(iter(self._holders)).hang_up("unfinished")

    def rests(self, connection: Connection) -> None:
        """One timer for all of them."""
        if not self._resting:
            asyncio.get_running_loop().call_later(REST_S, self._end_rest)
        self._resting.append(connection)

    def _end_rest(self) -> None:
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.go_on()

    def lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()
        self._crowd.leave(connection)
        self._crowd.others -= connection.initiated
        remote = connection.session.remote
        if sessions := self._senders.get(remote):
            sessions.pop(connection, None)
            if not sessions:
                del self._senders[remote]
        if self.courier is not None:
            self.courier.closed(connection)

    def clones(self) -> dict[str, list[str]]:
        """GUIDs that have sessions open from more than one address (design D4)."""
        several = ((g, set(s.values())) for g, s in self._senders.items() if len(s) > 1)
        return {str(guid): sorted(found) for guid, found in several if len(found) > 1}

    def look_at_jam(self) -> None:
        """A shard is jammed, or no longer: those who send to it are concerned."""
        for connection in list(self.connections):
            connection.look_at_jam()

    def stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    def hang_up(self) -> None:
        """Every peer hears what is committed; what is not it sends to whoever comes after us."""
        for connection in list(self.connections):
            connection.finish("shutdown")

    async def gone(self, patience_s: float) -> None:
        """Until all peers have read our last words, or time is up."""
        if self.connections:
            self._empty.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._empty.wait()
