"""Brings receipts to the URLs that senders named. Digest srmp.md 3.7, 3.11

An outgoing queue for every URL; 400 ends a receipt. Receipts for single messages lie in the outbox
until then; those of a stream need not: its row says what its sender has not heard, and the newest
one speaks for all before it (SR-36). These are counted in bytes, by the peer that asked for them:
at the bound one more is not kept, and its sender hears of it when it sends its message again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from bridge.adapters.intake import ShardPump
from bridge.adapters.net.http_client import HttpFault
from bridge.adapters.outgoing import RETRANSMISSION_S, Carrier, OutgoingQueue
from bridge.adapters.receipt_targets import ReceiptTargets, Target, TargetRefused
from bridge.adapters.telemetry import Telemetry
from bridge.core.ports import OutboxEntry
from bridge.core.posted import Due
from bridge.core.receipt_timers import ReceiptTimers
from bridge.core.shares import Shares
from bridge.core.streams import StreamKey
from bridge.model.cache import Cache, text_size
from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.model.hosts import neighbourhood
from bridge.model.message import FOUR_DAYS
from bridge.wire.srmp.convert import envelope_name
from bridge.wire.srmp.head import XML
from bridge.wire.srmp.receipts import Post, stream_receipt
from bridge.wire.srmp.values import StreamId
from bridge.wire.srmp.writer import write_envelope

MAX_ROUTES: Final = 2_000  # URLs come from outside: bounded
MAX_ROUTES_BY_PEER: Final = 500  # that asked for receipts there
MAX_WAITING: Final = 50_000  # for one of them
MOST_BYTES: Final = 64 << 20  # of the receipts of streams; see Shares
MOST_OF_PEER: Final = 16 << 20
RECEIPT_BYTES: Final = 1_500  # that one takes beside its URL and names
AT_ONCE: Final = 64
UNKNOWN_HOSTS: Final = 1_000  # that were logged once
UNKNOWN_HOSTS_BYTES: Final = 1 << 20

_BAD_REQUEST: Final = 400
_log = logging.getLogger(__name__)
_Key = int | tuple[StreamKey, int]  # the ordinal of an entry, or a stream


class _Receipt:
    """Something to POST; `done` is told whether it was taken."""

    def __init__(
        self,
        url: str,
        peer: str,
        pack: Callable[[], bytes],
        done: Callable[[bool], None],
        expires: int = 0,
        due: Due | None = None,
    ) -> None:
        self.url, self.peer, self.pack, self.done = url, peer, pack, done
        self.expires = expires  # Unix seconds; 0 is never
        self.due = due  # of a stream


_Route = OutgoingQueue[_Key, _Receipt]


class Postman:
    def __init__(
        self,
        local: Guid,
        ordinals: Callable[[], int],
        targets: ReceiptTargets,
        telemetry: Telemetry,
        tls: ssl.SSLContext | None = None,
        retransmission_s: float = RETRANSMISSION_S,
    ) -> None:
        self._local, self._ordinals = local, ordinals
        self._targets, self._telemetry, self._tls = targets, telemetry, tls
        self._retransmission_s = retransmission_s
        self._routes: dict[str, _Route] = {}
        self._peers: dict[str, str] = {}  # by URL: the peer that named it first
        self._timers = ReceiptTimers()
        self._owners: dict[StreamKey, ShardPump] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._taken = set[int]()
        self._held: dict[tuple[StreamKey, int], tuple[str, int]] = {}  # peer, bytes: of streams
        self._shares = Shares(MOST_BYTES, MOST_OF_PEER)
        # Final stream receipts by the id of their stream: they go behind the stream receipt that
        # is due, because it is what tells the sender that its message has arrived.
        self._finals: dict[str, dict[int, tuple[OutboxEntry, ShardPump]]] = {}
        self._unknown_hosts: Cache[str, None] = Cache(UNKNOWN_HOSTS, UNKNOWN_HOSTS_BYTES)

    @property
    def stream_receipts(self) -> int:
        """Receipts of streams that wait for their time or their URL."""
        return len(self._held)

    @property
    def stream_receipt_bytes(self) -> int:
        return self._shares.total

    @property
    def waiting(self) -> dict[str, int]:
        """How many receipts wait, by URL."""
        return {url: len(route.waiting) for url, route in self._routes.items() if route.waiting}

    # -- what comes from the shards ---------------------------------------------------------

    def take(self, entries: Sequence[OutboxEntry], owner: ShardPump) -> None:
        """These are durable now; one that is known already is not taken twice."""
        for entry in entries:
            if entry.ordinal in self._taken:
                continue
            self._taken.add(entry.ordinal)
            if entry.stream and self._timers.has_text(entry.stream):
                self._finals.setdefault(entry.stream, {})[entry.ordinal] = entry, owner
            else:
                self._post(entry, owner)

    def _post(self, entry: OutboxEntry, owner: ShardPump) -> None:
        packet, done = _same(entry.packet), self._end(entry, owner)
        self._send(entry.ordinal, _Receipt(entry.url, entry.host, packet, done, entry.expires))

    def drop(self, entries: Sequence[OutboxEntry]) -> None:
        """These are owed no more."""
        for entry in entries:
            self._taken.discard(entry.ordinal)
            self._finals.get(entry.stream, {}).pop(entry.ordinal, None)
            if (route := self._routes.get(entry.url.lower())) is not None:
                route.waiting.pop(entry.ordinal, None)

    def _end(self, entry: OutboxEntry, owner: ShardPump) -> Callable[[bool], None]:
        def done(_taken: bool) -> None:
            self._taken.discard(entry.ordinal)
            owner.forget([entry.ordinal])

        return done

    def due(self, dues: Sequence[Due], owner: ShardPump) -> None:
        """Senders of these streams may hear of it, when the time has come."""
        now = asyncio.get_running_loop().time()
        for due in dues:
            if not self._hold(due):
                self._telemetry.refusal("receipt-too-many-waiting")
                continue
            self._owners[due.key] = owner
            self._send_all(self._timers.add(due, now))
        self._set_timer()

    def _hold(self, due: Due) -> bool:
        """Whether there is room for it."""
        key = due.key, due.id
        if key in self._held:
            return True
        size = RECEIPT_BYTES + text_size(due.receipts_to, due.text, due.key[1])
        if not self._shares.has_room(due.peer, size):
            return False
        self._held[key] = due.peer, size
        self._shares.count(due.peer, size)
        return True

    def _let_go(self, due: Due) -> None:
        """It was taken or given up. A newer one of its stream may still wait."""
        key = due.key, due.id
        route = self._routes.get(due.receipts_to.lower())
        waiting = None if route is None else route.waiting.get(key)
        if self._timers.waits(due) or (waiting is not None and waiting.due is not due):
            return
        if (held := self._held.pop(key, None)) is not None:  # an id that came back has two URLs
            peer, size = held
            self._shares.count(peer, -size)

    def _set_timer(self) -> None:
        at = self._timers.next_wakeup() if self._timer is None else None
        if at is not None:
            self._timer = asyncio.get_running_loop().call_at(at, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._send_all(self._timers.fire(asyncio.get_running_loop().time()))
        self._set_timer()

    def _send_all(self, dues: Sequence[Due]) -> None:
        owners = [self._owners[due.key] for due in dues]
        for key in {due.key for due in dues if not self._timers.has(due.key)}:
            del self._owners[key]
        for due, owner in zip(dues, owners, strict=True):
            done, expires = self._told(due, owner), int(time.time()) + FOUR_DAYS
            pack = self._packer(due)
            receipt = _Receipt(due.receipts_to, due.peer, pack, done, expires, due)
            self._send((due.key, due.id), receipt)
            for entry, its_owner in self._finals.pop(due.text, {}).values():
                self._post(entry, its_owner)

    def _told(self, due: Due, owner: ShardPump) -> Callable[[bool], None]:
        def done(taken: bool) -> None:
            if taken:
                owner.receipted(due)
            self._let_go(due)

        return done

    def _packer(self, due: Due) -> Callable[[], bytes]:
        def pack() -> bytes:
            post = Post(
                to=due.receipts_to,
                source=self._local,
                ordinal=self._ordinals(),
                now=int(time.time()),
            )
            stream_id = StreamId(text=due.text, guid=due.key[0], number=due.id)
            original = envelope_name(due.key[1])
            return write_envelope(stream_receipt(post, original, stream_id, due.number))

        return pack

    # -- on the way -------------------------------------------------------------------------

    def _send(self, key: _Key, receipt: _Receipt) -> None:
        url = receipt.url.lower()
        route = self._routes.get(url)
        if route is None:
            if not self._has_room(receipt.peer):
                self._give_up(receipt, "receipt-too-many-urls")
                return
            route = self._route(url, receipt.peer)
        if len(route.waiting) >= MAX_WAITING and key not in route.waiting:
            self._give_up(receipt, "receipt-too-many-waiting")
            return
        route.put(key, receipt)  # the newer one of a stream takes the place of the older

    def _route(self, url: str, peer: str) -> _Route:
        route = _Route(
            Carrier(self._tls),
            self._deliver,
            lambda receipt: self._give_up(receipt, "receipt-expired"),
            lambda: self._leave(url, route),
            self._retransmission_s,
        )
        self._routes[url], self._peers[url] = route, neighbourhood(peer)
        return route

    def _leave(self, url: str, route: _Route) -> None:
        if self._routes.get(url) is route:
            del self._routes[url], self._peers[url]

    def _has_room(self, of: str) -> bool:
        """For one more URL of this peer: it may have only so many, and when all peers together
        have too many, another one gives way."""
        if len(self._routes) < min(MAX_ROUTES, MAX_ROUTES_BY_PEER):
            return True
        peer = neighbourhood(of)
        counts = Counter(self._peers.values())
        if counts[peer] >= MAX_ROUTES_BY_PEER and not self._make_room(of=peer):
            return False
        if len(self._routes) < MAX_ROUTES or self._make_room():
            return True
        largest, count = counts.most_common(1)[0]
        return count > counts[peer] + 1 and self._make_room(of=largest, idle_only=False)

    def _make_room(self, of: str | None = None, *, idle_only: bool = True) -> bool:
        """Evict an idle URL, else one that failed, of the peer that has most of them; with
        `idle_only` off, else the oldest one."""
        counts = Counter(self._peers.values())
        mine = [(u, r) for u, r in self._routes.items() if of is None or self._peers[u] == of]
        idle = [(url, route) for url, route in mine if not route.waiting]
        failed = [(url, route) for url, route in mine if route.is_inactive]
        found = idle[:1] or sorted(failed, key=lambda item: -counts[self._peers[item[0]]])[:1]
        if not found and not idle_only:
            found = mine[:1]
        if not found:
            return False
        url, route = found[0]
        del self._routes[url], self._peers[url]
        route.task.cancel()
        for receipt in route.waiting.values():
            self._give_up(receipt, "receipt-too-many-urls")
        return True

    async def _deliver(self, carrier: Carrier, receipt: _Receipt) -> bool:
        try:
            async with self._slots:  # not for the answer: some hosts never give one
                target = await self._targets.find(receipt.url, receipt.peer)
            if target.instead:
                self._redirected(target, receipt.peer)
            status = await carrier.post(target, XML, receipt.pack())
        except (TargetRefused, WireError) as error:
            self._give_up(receipt, "receipt-target", str(error))
            return True
        except (OSError, TimeoutError, HttpFault) as error:
            _log.info("receipt for %s: %s; trying again", receipt.url, error or "no answer")
            self._telemetry.refusal("receipt-no-answer")
            return False
        if status == _BAD_REQUEST:
            self._give_up(receipt, "receipt-refused", "its answer is 400")
            return True
        if not 200 <= status < 300:
            _log.info("receipt for %s: %d; trying again", receipt.url, status)
            self._telemetry.refusal("receipt-not-taken")
            return False
        receipt.done(True)
        return True

    def _redirected(self, target: Target, peer: str) -> None:
        """One line for a host; it names what the operator can do."""
        self._telemetry.refusal("receipt-to-sender-address")
        host = target.endpoint.host.lower()
        if host not in self._unknown_hosts:
            self._unknown_hosts.keep(host, None, text_size(host))
            _log.warning(
                "receipts for host %s go to the sender's address %s: %s; to send them elsewhere, "
                "add it to peers or srmp.receipt_targets",
                host[:80],
                peer,
                target.instead,
            )

    def _give_up(self, receipt: _Receipt, reason: str, why: str = "") -> None:
        self._telemetry.refusal(reason)
        _log.warning("no receipt for %s: %s", receipt.url, why or reason)
        receipt.done(False)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for route in self._routes.values():
            route.task.cancel()


def _same(packet: bytes) -> Callable[[], bytes]:
    return lambda: packet
