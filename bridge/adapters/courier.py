"""Brings our acks to their queue managers: on a session that is open, else on one we open.

An ack comes here when it is durable in the outbox and leaves when the peer has session-acked it;
what was under way when a session ended waits again, in the order of its ids. MS-MQQB 3.1.7.4

A host that a message names is dialed only if `targets` permits it to the peer that the message came
from; else its acks are dropped. An address that a peer was seen at, and `peers`, need none. The
outbox bounds how many acks wait and for how long; here, the number of hosts that are dialed at a
time is bounded, in all and by the address that named them, and a host that does not answer is
dialed less and less often. Acks for it lose their bodies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from bridge.adapters.intake import Intake, ShardPump
from bridge.adapters.logs import fields
from bridge.adapters.net.connection import Connection, now
from bridge.adapters.receipt_targets import ReceiptTargets, TargetRefused
from bridge.adapters.slots import FairSlots
from bridge.config import MSMQ_PORT, Address, PeerName
from bridge.core.known_senders import KnownSenders
from bridge.core.ports import OutboxEntry
from bridge.core.receipts import bare
from bridge.core.shard import BODY
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.hosts import canonical
from bridge.model.verdict import Outcome, Verdict
from bridge.wire.binary.convert import message_from_packet
from bridge.wire.binary.packet import UserMessage
from bridge.wire.binary.user import PUBLIC

_log = logging.getLogger(__name__)
MAX_FOUND: Final = 10_000  # hosts that messages name; one that gives way is looked up again
MAX_LOGGED: Final = 1_000  # refused hosts that are remembered, so that each is logged once
RETRY_S: Final = 5.0  # Session Retry Connect Timer; doubled after every failure
LONGEST_RETRY: Final = 12  # times RETRY_S
DIALS: Final = 64  # at a time
DIALS_BY_ADDRESS: Final = 8  # that caused them
UNDER_WAY: Final = 256  # acks that are handed to a session at a time
UNDER_WAY_BYTES: Final = 4 << 20
LIGHTENED: Final = 256  # acks that lose their bodies at a time: each is parsed and packed again


class Dial(Protocol):
    """Connects; returns once the connection is made. Raises OSError."""

    def __call__(self, address: Address, remote: Guid) -> Awaitable[Connection]: ...


class _Route:
    """What waits for one peer and is not under way on a session."""

    def __init__(self, queue_manager: str, host: str) -> None:
        self.queue_manager, self.host = queue_manager, host
        self.cause = ""  # address that made us owe the last ack
        self.waiting: dict[int, OutboxEntry] = {}
        self.dialing: asyncio.Task[None] | None = None
        self.failures = 0  # in a row

    @property
    def key(self) -> tuple[str, str]:
        return self.queue_manager, canonical(self.host)


class _Sessions:
    """The open sessions, found by whom they lead to."""

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

    def of(self, name: str | Address) -> Iterable[Connection]:
        return self._by_name.get(name, ())


def _names(connection: Connection) -> list[str | Address]:
    session = connection.session
    names: list[str | Address] = [str(session.remote), session.peer]
    return names if connection.dialed is None else [*names, connection.dialed]


class Courier:
    def __init__(
        self,
        local: Guid,
        peers: Mapping[PeerName, Address],
        senders: KnownSenders,
        dial: Dial,
        *,
        targets: ReceiptTargets,
        refusal: Callable[[str, int], None],
    ) -> None:
        """`refusal` counts acks that go nowhere, with their reason."""
        self._local = str(local)
        self._peers = {str(name): address for name, address in peers.items()}  # lower case
        self._senders = senders
        self._dial = dial
        self._targets, self._refusal = targets, refusal
        self._found: dict[str, Address] = {}  # hosts that messages name, looked up and permitted
        self._refused: dict[str, None] = {}
        self._routes: dict[tuple[str, str], _Route] = {}
        self._of_manager: dict[str, dict[_Route, None]] = {}
        self._owners: dict[int, ShardPump] = {}
        self._sessions = _Sessions()
        self._under_way: dict[Connection, dict[int, tuple[_Route, OutboxEntry]]] = {}
        self._queued: dict[Connection, dict[_Route, None]] = {}  # that have more for a session
        self._dials = FairSlots(DIALS, DIALS_BY_ADDRESS)
        self._under_way_here = 0  # acks to queues of ours that are not decided yet
        self.intake: Intake | None = None

    @property
    def waiting(self) -> int:
        return len(self._owners)

    @property
    def known_peers(self) -> int:
        """Queue managers whose address is known."""
        return len(self._senders)

    @property
    def routes(self) -> int:
        """Peers that acks wait for."""
        return len(self._routes)

    @property
    def dials(self) -> int:
        """Connections that are being opened."""
        return self._dials.in_use

    # -- what comes from the shards ---------------------------------------------------------

    def take(self, entries: Sequence[OutboxEntry], owner: ShardPump) -> None:
        """These are durable now; one that is known already is not taken twice."""
        touched: dict[_Route, None] = {}
        for entry in entries:
            if entry.ordinal in self._owners:
                continue
            route = self._put(_Route(entry.queue_manager, entry.host))
            route.cause = entry.address
            route.waiting[entry.ordinal] = entry
            self._owners[entry.ordinal] = owner
            touched[route] = None
        for route in touched:
            self._serve(route)

    def drop(self, entries: Sequence[OutboxEntry]) -> None:
        """These are owed no more. One that is under way is not sent again."""
        for entry in entries:
            if self._owners.pop(entry.ordinal, None) is None:
                continue
            route = self._routes.get(_Route(entry.queue_manager, entry.host).key)
            if route is not None and route.waiting.pop(entry.ordinal, None) is not None:
                self._leave_if_empty(route)

    def undeliverable(self, queue: str, peer: str, why: str) -> None:
        """An ack for this administration queue is not made; each queue is named once."""
        self._refusal("ack-undeliverable", 1)
        if self._is_new(queue):
            _log.warning(
                "acks for the administration queue %s are not sent: %s",
                queue[:200],
                why,
                extra=fields(reason="ack-undeliverable", peer=peer),
            )

    def _is_new(self, name: str) -> bool:
        """Whether it is not among the last ones that were logged."""
        if name in self._refused:
            return False
        self._refused[name] = None
        if len(self._refused) > MAX_LOGGED:
            del self._refused[next(iter(self._refused))]
        return True

    # -- what comes from the connections ----------------------------------------------------

    def opened(self, connection: Connection) -> None:
        self._under_way[connection] = {}
        self._queued[connection] = {}
        self._sessions.add(connection)
        session = connection.session
        candidates = [
            *self._of_manager.get(str(session.remote), ()),
            self._routes.get(("", session.peer.lower())),
        ]
        if connection.initiated:
            candidates += [r for r in self._routes.values() if r.dialing is not None]
        for route in candidates:
            if route is not None and self._connection_for(route) is connection:
                self._serve(route)

    def _put(self, route: _Route) -> _Route:
        route = self._routes.setdefault(route.key, route)
        self._of_manager.setdefault(route.queue_manager, {})[route] = None
        return route

    def _remove(self, route: _Route) -> None:
        self._routes.pop(route.key, None)
        of_manager = self._of_manager.get(route.queue_manager, {})
        of_manager.pop(route, None)
        if not of_manager:
            self._of_manager.pop(route.queue_manager, None)

    def closed(self, connection: Connection) -> None:
        """What the peer did not take waits again."""
        self._sessions.remove(connection)
        if connection.dialed is not None and not self._sessions.of(connection.dialed):
            at = connection.dialed
            self._found = {host: there for host, there in self._found.items() if there != at}
        touched = self._queued.pop(connection, {})
        for ordinal, (route, entry) in self._under_way.pop(connection, {}).items():
            if ordinal not in self._owners:
                continue  # it was dropped
            route = self._put(route)
            route.waiting[ordinal] = entry
            touched[route] = None
        for route in touched:
            self._serve(route)

    def delivered(self, connection: Connection, ordinals: Sequence[int]) -> None:
        under_way = self._under_way.get(connection, {})
        for ordinal in ordinals:
            under_way.pop(ordinal, None)
        self._finish(ordinals)
        queued = self._queued.get(connection)
        if queued and 2 * len(under_way) <= UNDER_WAY:
            self._queued[connection] = {}
            for route in queued:
                self._serve(route)

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
        """As many as a session should hold: the rest follows when the peer has taken some."""
        under_way = self._under_way[connection]
        room, size = UNDER_WAY - len(under_way), UNDER_WAY_BYTES
        entries: list[OutboxEntry] = []
        for ordinal in sorted(route.waiting):
            if len(entries) >= room or (entries and size <= 0):
                self._queued[connection][route] = None
                break
            entries.append(route.waiting.pop(ordinal))
            size -= len(entries[-1].packet)
        route.failures = 0
        self._leave_if_empty(route)
        under_way.update((e.ordinal, (route, e)) for e in entries)
        remote = connection.session.remote
        connection.deliver([(_addressed(e.packet, remote), e.ordinal) for e in entries])

    def _leave_if_empty(self, route: _Route) -> None:
        """Routes come from outside, so none is kept for nothing."""
        if not route.waiting and route.dialing is None:
            self._remove(route)

    def _connection_for(self, route: _Route) -> Connection | None:
        """A session with that queue manager, in either direction; of several the one that was
        heard last, because an older one may be half-open: its peer was gone without a word."""
        address = self._address(route)
        places: list[str | Address] = [route.queue_manager or canonical(route.host)]
        if address is not None:
            places.append(address)
        for place in places:
            homes = [c for c in self._sessions.of(place) if self._is_home(route, c)]
            if homes:
                return max(homes, key=lambda connection: connection.heard_at)
        return None

    def _is_home(self, route: _Route, connection: Connection) -> bool:
        """What is owed to a GUID goes where the GUID is known, and where its message came from:
        who takes the GUID at another address gets nothing of it."""
        if not route.queue_manager:
            if route.host != str(connection.session.remote):
                return True
            # A public queue that has the GUID of this session's queue manager.
            where = self._address(route)
            return where is not None and (
                connection.dialed == where or connection.session.peer == where.host
            )
        if connection.dialed is not None and connection.dialed == self._address(route):
            return True
        homes = {route.host, self._senders.address(route.queue_manager)} - {""}
        if not homes:
            return not connection.initiated
        return connection.session.peer in homes

    def _address(self, route: _Route) -> Address | None:
        """Configured, learned from a session, or as a format name says that was looked up."""
        for name in (route.queue_manager, route.host):
            if name and (known := self._peers.get(canonical(name))):
                return known
        if not route.queue_manager:
            return self._found.get(route.host.lower())
        host = self._senders.address(route.queue_manager) or route.host
        if not host or self._targets.is_own(host, MSMQ_PORT):
            return None
        return Address(host, MSMQ_PORT)

    async def _look_up(self, route: _Route) -> Address | None:
        """Where a host is that messages name; what may not go there is dropped. Raises OSError."""
        if route.queue_manager:
            return None
        peers = {entry.address for entry in route.waiting.values()}
        try:
            found, allowed = await self._targets.find_host(route.host, MSMQ_PORT, peers)
        except TargetRefused:
            self._drop_for(route, peers)
            return None
        self._drop_for(route, peers.difference(allowed))
        if len(self._found) >= MAX_FOUND:
            del self._found[next(iter(self._found))]
        address = self._found[route.host.lower()] = Address(found, MSMQ_PORT)
        return address

    def _drop_for(self, route: _Route, peers: Collection[str]) -> None:
        """Acks that these peers asked for are not brought to the host of the route."""
        dropped = [n for n, entry in route.waiting.items() if entry.address in peers]
        if not dropped:
            return
        for ordinal in dropped:
            del route.waiting[ordinal]
        self._refusal("ack-target", len(dropped))
        if self._is_new(route.host):
            _log.warning(
                "acks for the administration queue at %s are dropped: it is not in `peers` or "
                "srmp.receipt_targets, and not where the message came from",
                route.host[:80],
                extra=fields(reason="ack-target", peer=min(peers)),
            )
        self._finish(dropped)

    async def _reach(self, route: _Route) -> None:
        """Dial until a session took what waits, with growing delays between two attempts."""
        try:
            while route.waiting and self._connection_for(route) is None:
                try:
                    async with self._dials.one_for(route.cause):
                        if not await self._attempt(route):
                            return
                except (OSError, ValueError) as error:  # ValueError: not a name to look up
                    where = self._address(route) or route.host
                    self._found.pop(route.host.lower(), None)  # it may be elsewhere the next time
                    why = getattr(error, "strerror", None) or error
                    _log.info("%s: cannot be reached (%s)", where, why)
                    self._lighten(route)
                await asyncio.sleep(RETRY_S * min(1 << route.failures, LONGEST_RETRY))
                route.failures += 1
        finally:
            route.dialing = None
            self._leave_if_empty(route)

    async def _attempt(self, route: _Route) -> bool:
        """Dial once; False: there is nothing to dial for. Raises OSError and ValueError."""
        address = self._address(route) or await self._look_up(route)
        if address is None:
            if route.waiting:
                name = route.queue_manager or route.host
                _log.warning("%d acks wait for %s: add it to `peers`", len(route.waiting), name)
                self._lighten(route)
            return False
        if self._connection_for(route) is None:
            await self._dial(address, _guid(route.queue_manager))
        elif route.waiting:  # another name of a host that has a session
            self._serve(route)
            return False
        return bool(route.waiting)

    def _lighten(self, route: _Route) -> None:
        """The peer cannot be reached: its acks are kept without the bodies of their messages."""
        large = [entry for entry in route.waiting.values() if len(entry.packet) > BODY]
        changed: dict[ShardPump, list[OutboxEntry]] = {}
        for entry in large[:LIGHTENED]:
            light = bare(entry)
            if light is not entry:
                route.waiting[entry.ordinal] = light
                changed.setdefault(self._owners[entry.ordinal], []).append(light)
        for owner, entries in changed.items():
            owner.lighten(entries)

    def _deliver_here(self, route: _Route) -> None:
        """The administration queue is one of ours: the ack arrives like any other message, so many
        at a time, and not while our own shard is jammed."""
        intake, via = self.intake, Guid.parse(self._local)
        assert intake is not None
        if route.dialing is not None or self._under_way_here:
            return  # tried again later; the rest follows
        if intake.is_jammed((intake.shard_of(via),)):
            self._try_later(route)
            return
        entries: list[OutboxEntry] = []
        size = 0
        for ordinal in sorted(route.waiting)[:UNDER_WAY]:
            if size >= UNDER_WAY_BYTES:
                break
            entries.append(route.waiting.pop(ordinal))
            size += len(entries[-1].packet)
        self._under_way_here = len(entries)
        at = int(now().unix * 1000)
        messages = [message_from_packet(UserMessage.unpack(e.packet), "", at) for e in entries]
        intake.submit(messages, lambda verdicts: self._decided_here(route, entries, verdicts), via)

    def _decided_here(
        self, route: _Route, entries: Sequence[OutboxEntry], verdicts: Sequence[Verdict]
    ) -> None:
        """What met BUSY (a full machine, a topic that is away) waits again."""
        self._under_way_here = 0
        pairs = list(zip(entries, verdicts, strict=True))
        self._finish(e.ordinal for e, verdict in pairs if verdict.outcome is not Outcome.BUSY)
        busy = [e for e, verdict in pairs if verdict.outcome is Outcome.BUSY]
        route = self._put(route)
        for entry in busy:
            if entry.ordinal in self._owners:  # else it was dropped
                route.waiting[entry.ordinal] = entry
        if not busy:
            route.failures = 0
            self._serve(route)
        elif route.waiting:
            _log.info("%d acks for queues of ours wait: %s", len(busy), _reasons(verdicts))
            self._try_later(route)
        self._leave_if_empty(route)

    def _try_later(self, route: _Route) -> None:
        if route.dialing is None:
            route.dialing = asyncio.create_task(self._serve_later(route))

    async def _serve_later(self, route: _Route) -> None:
        try:
            await asyncio.sleep(RETRY_S * min(1 << route.failures, LONGEST_RETRY))
            route.failures += 1
        finally:
            route.dialing = None
        self._serve(route)
        self._leave_if_empty(route)

    def stop(self) -> None:
        for route in list(self._routes.values()):
            if route.dialing is not None:
                route.dialing.cancel()


def _addressed(raw: bytes, remote: Guid) -> UserMessage:
    """To a public queue, QueueManagerAddress is the GUID of the queue manager that has it (MS-MQMQ
    2.2.19.2). Only the handshake with the host that `peers` names tells which one that is."""
    packet = UserMessage.unpack(raw)
    if packet.user.destination.code != PUBLIC or packet.user.queue_manager != NULL_GUID:
        return packet
    user = msgspec.structs.replace(packet.user, queue_manager=remote)
    return msgspec.structs.replace(packet, user=user)


def _reasons(verdicts: Iterable[Verdict]) -> str:
    busy = {verdict.reason for verdict in verdicts if verdict.outcome is Outcome.BUSY}
    return ", ".join(sorted(busy))


def _guid(text: str) -> Guid:
    return Guid.parse(text) if text else Guid(16)
