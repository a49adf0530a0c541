"""Brings our acks to their queue managers: on a session that is open, else on one we open.

An ack comes here when it is durable in the outbox and leaves when the peer has session-acked it;
what was under way when a session ended waits again, in the order of its ids. MS-MQQB 3.1.7.4
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from bridge.adapters.intake import Intake, ShardPump
from bridge.adapters.net.connection import Connection, now
from bridge.config import MSMQ_PORT, Address, PeerName
from bridge.core.ports import OutboxEntry
from bridge.model.guid import Guid
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.packet import UserMessage

_log = logging.getLogger(__name__)
MAX_BOOK: Final = 100_000  # GUIDs come from outside: bounded
RETRY_S: Final = 5.0  # Session Retry Connect Timer


class Dial(Protocol):
    """Connects; returns once the connection is made. Raises OSError."""

    def __call__(self, address: Address, remote: Guid) -> Awaitable[Connection]: ...


class _Route:
    """What waits for one peer and is not under way on a session."""

    def __init__(self, queue_manager: str, host: str) -> None:
        self.queue_manager, self.host = queue_manager, host
        self.waiting: dict[int, OutboxEntry] = {}
        self.dialing: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.queue_manager, "" if self.queue_manager else self.host.lower())


class _Sessions:
    """The open sessions, found by whom they lead to; of several the oldest."""

    def __init__(self) -> None:
        self._by_name: dict[str | Address, dict[Connection, None]] = {}

    def add(self, connection: Connection) -> None:
        for name in _names(connection):
            self._by_name.setdefault(name, {})[connection] = None

    def remove(self, connection: Connection) -> None:
        for name in _names(connection):
            found = self._by_name.get(name, {})
            found.pop(connection, None)
            if not found:
                self._by_name.pop(name, None)

    def find(self, name: str | Address) -> Connection | None:
        return next(iter(self._by_name.get(name, ())), None)


def _names(connection: Connection) -> list[str | Address]:
    session = connection.session
    names: list[str | Address] = [str(session.remote), session.peer]
    return names if connection.dialed is None else [*names, connection.dialed]


class Courier:
    def __init__(
        self,
        local: Guid,
        peers: Mapping[PeerName, Address],
        book: Mapping[str, str],
        dial: Dial,
        learn: Callable[[str, str], None],
    ) -> None:
        self._local = str(local)
        self._peers = {str(name): address for name, address in peers.items()}  # lower case
        self._book = dict(book)  # GUID -> address it was last seen at
        self._dial = dial
        self._learn = learn
        self._routes: dict[tuple[str, str], _Route] = {}
        self._owners: dict[int, ShardPump] = {}
        self._sessions = _Sessions()
        self._under_way: dict[Connection, dict[int, tuple[_Route, OutboxEntry]]] = {}
        self.intake: Intake | None = None

    @property
    def waiting(self) -> int:
        return len(self._owners)

    # -- what comes from the shards ---------------------------------------------------------

    def take(self, entries: Sequence[OutboxEntry], owner: ShardPump) -> None:
        """These are durable now; one that is known already is not taken twice."""
        touched: dict[_Route, None] = {}
        for entry in entries:
            if entry.ordinal in self._owners:
                continue
            route = _Route(entry.queue_manager, entry.host)
            route = self._routes.setdefault(route.key, route)
            route.host = route.host or entry.host
            route.waiting[entry.ordinal] = entry
            self._owners[entry.ordinal] = owner
            touched[route] = None
        for route in touched:
            self._serve(route)

    # -- what comes from the connections ----------------------------------------------------

    def opened(self, connection: Connection) -> None:
        self._under_way[connection] = {}
        self._sessions.add(connection)
        session = connection.session
        candidates = [
            self._routes.get((str(session.remote), "")),
            self._routes.get(("", session.peer.lower())),
            *(r for r in self._routes.values() if r.dialing is not None and connection.initiated),
        ]
        for route in candidates:
            if route is not None and self._connection_for(route) is connection:
                self._serve(route)

    def heard(self, connection: Connection) -> None:
        """It has sent a message, so it may be owed an ack: remember where it is."""
        guid, host = str(connection.session.remote), connection.session.peer
        known = self._book.get(guid)
        if not connection.initiated and known != host and (known or len(self._book) < MAX_BOOK):
            self._book[guid] = host
            self._learn(guid, host)

    def closed(self, connection: Connection) -> None:
        """What the peer did not take waits again."""
        self._sessions.remove(connection)
        touched: dict[_Route, None] = {}
        for ordinal, (route, entry) in self._under_way.pop(connection, {}).items():
            route = self._routes.setdefault(route.key, route)
            route.waiting[ordinal] = entry
            touched[route] = None
        for route in touched:
            self._serve(route)

    def delivered(self, connection: Connection, ordinals: Sequence[int]) -> None:
        under_way = self._under_way.get(connection, {})
        for ordinal in ordinals:
            under_way.pop(ordinal, None)
        self._finish(ordinals)

    def _finish(self, ordinals: Iterable[int]) -> None:
        done: dict[ShardPump, list[int]] = {}
        for ordinal in ordinals:
            if (owner := self._owners.pop(ordinal, None)) is not None:
                done.setdefault(owner, []).append(ordinal)
        for owner, finished in done.items():
            owner.forget(finished)

    # -- finding the way --------------------------------------------------------------------

    def _serve(self, route: _Route) -> None:
        if not route.waiting:
            return
        if route.queue_manager == self._local:
            self._deliver_here(route)
            return
        connection = self._connection_for(route)
        if connection is not None:
            self._send(route, connection)
        elif route.dialing is None:
            route.dialing = asyncio.create_task(self._reach(route))

    def _send(self, route: _Route, connection: Connection) -> None:
        entries = [entry for _, entry in sorted(route.waiting.items())]
        self._leave(route)
        self._under_way[connection].update((e.ordinal, (route, e)) for e in entries)
        connection.deliver([(UserMessage.unpack(e.packet), e.ordinal) for e in entries])

    def _leave(self, route: _Route) -> None:
        """Nothing waits there any more; routes come from outside, so none is kept for nothing."""
        route.waiting = {}
        if route.dialing is None:
            self._routes.pop(route.key, None)

    def _connection_for(self, route: _Route) -> Connection | None:
        """A session with that queue manager, in either direction (QB-22)."""
        address = self._address(route)
        return self._sessions.find(route.queue_manager or route.host) or (
            self._sessions.find(address) if address is not None else None
        )

    def _address(self, route: _Route) -> Address | None:
        """Configured, learned from a session, or as the format name says."""
        for name in (route.queue_manager, route.host):
            if name and (known := self._peers.get(name.lower())):
                return known
        host = self._book.get(route.queue_manager, "") or route.host
        return Address(host, MSMQ_PORT) if host else None

    async def _reach(self, route: _Route) -> None:
        """Dial until somebody took what waits; the rule's delay between two attempts."""
        try:
            while route.waiting and self._connection_for(route) is None:
                address = self._address(route)
                if address is None:
                    _log.warning(
                        "%d acks wait for %s: add it to `peers`",
                        len(route.waiting),
                        route.queue_manager or route.host,
                    )
                    return
                try:
                    await self._dial(address, _guid(route.queue_manager))
                except OSError as error:
                    _log.info("%s: cannot be reached (%s)", address, error.strerror or error)
                await asyncio.sleep(RETRY_S)
        finally:
            route.dialing = None
            if not route.waiting:
                self._routes.pop(route.key, None)

    def _deliver_here(self, route: _Route) -> None:
        """The administration queue is one of ours: the ack arrives like any other message."""
        assert self.intake is not None
        entries = list(route.waiting.values())
        self._leave(route)
        at = int(now().unix * 1000)
        messages = [message_from_packet(UserMessage.unpack(e.packet), "", at) for e in entries]
        ordinals = [entry.ordinal for entry in entries]
        via = Guid.parse(self._local)
        self.intake.submit(messages, lambda _verdicts: self._finish(ordinals), via)

    def stop(self) -> None:
        for route in list(self._routes.values()):
            if route.dialing is not None:
                route.dialing.cancel()


def _guid(text: str) -> Guid:
    return Guid.parse(text) if text else Guid(16)
