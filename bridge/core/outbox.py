"""The acks and receipts of one shard that no peer has taken yet, within bounds.

Peers decide what is owed, to whom and how large it is, so all of it is bounded, by the address that
caused it and in all:

- Above half of a bound, an ack is kept without the body of its message.
- At the bound of an address, a destination that would hold more than an equal share of it gets no
  more: the new ack is dropped. For another one, the oldest acks to the destination that holds most
  give way.
- At the bound of the shard, the same holds for addresses: one with more than an equal share gets no
  more, for another one the oldest acks of the address that holds most give way.
- An address can cause acks to a limited number of destinations; the ack to one more is not kept. At
  the bound of the shard, an address with more than an equal share of the destinations gets no new
  one, for another one the address that has most loses its oldest.
- An ack ends when its time is over.

So a flood to hosts that never answer is dropped before anything is written for it, and an ack to a
host that takes its acks is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from bridge.core.ports import OutboxEntry

MEMORY: Final = 128 << 20  # bytes, all shards together
FRAME: Final = 512  # bytes that an entry costs beside its packet
DESTINATIONS: Final = 10_000  # all shards together
DESTINATIONS_BY_ADDRESS: Final = 2_000
_LOOK_EVERY: Final = 64  # evictions between two looks for what holds the most


class _Most:
    """The name that holds most. It is looked for now and then only, because there may be many; in
    between it is one that holds at least the average."""

    def __init__(self) -> None:
        self._name, self._uses = "", 0

    def of(self, numbers: Mapping[str, int], total: int) -> str:
        self._uses += 1
        if (
            self._uses % _LOOK_EVERY == 0
            or numbers.get(self._name, 0) * len(numbers) < total
            or self._name not in numbers
        ):
            self._name = max(numbers, key=numbers.__getitem__)
        return self._name


class _Owed:
    """What one address has caused, by destination; the oldest first."""

    __slots__ = ("entries", "most", "size", "sizes")

    def __init__(self) -> None:
        self.size = 0
        self.sizes: dict[str, int] = {}
        self.entries: dict[str, dict[int, OutboxEntry]] = {}
        self.most = _Most()

    def put(self, entry: OutboxEntry, size: int) -> None:
        """Also one in place of another with the same ordinal; `size` is what it adds."""
        to = entry.destination
        self.entries.setdefault(to, {})[entry.ordinal] = entry
        self.sizes[to] = self.sizes.get(to, 0) + size
        self.size += size

    def pop(self, entry: OutboxEntry) -> None:
        to, size = entry.destination, _size(entry)
        del self.entries[to][entry.ordinal]
        self.sizes[to] -= size
        self.size -= size
        if not self.entries[to]:
            del self.entries[to], self.sizes[to]

    def oldest(self) -> OutboxEntry:
        """To the destination that holds most."""
        return next(iter(self.entries[self.most.of(self.sizes, self.size)].values()))


class Outbox:
    """Entries by their ordinal, in the order they came."""

    def __init__(
        self,
        most_bytes: int = MEMORY,
        most_destinations: int = DESTINATIONS,
        by_address: int = DESTINATIONS_BY_ADDRESS,
    ) -> None:
        self.most_bytes, self.most_by_address = most_bytes, most_bytes // 2
        self.most_destinations, self._destinations_by_address = most_destinations, by_address
        self.size = self.destinations = (
            0  # pairs of an address and a destination that acks wait for
        )
        self._entries: dict[int, OutboxEntry] = {}
        self._owed: dict[str, _Owed] = {}  # by address
        self._sizes: dict[str, int] = {}  # by address
        self._largest = _Most()

    # -- a mapping to read ------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def __contains__(self, ordinal: object) -> bool:
        return ordinal in self._entries

    def __getitem__(self, ordinal: int) -> OutboxEntry:
        return self._entries[ordinal]

    def values(self) -> Iterable[OutboxEntry]:
        return self._entries.values()

    def is_strained(self, address: str) -> bool:
        """More than half of the shard's bytes, or of this address's, are in use: what comes now
        is kept without its body."""
        own = self._sizes.get(address, 0)
        return 2 * self.size > self.most_bytes or 2 * own > self.most_by_address

    # -- changes ----------------------------------------------------------------------------

    def add(self, entry: OutboxEntry) -> list[OutboxEntry]:
        """Keep the entry. Returns the entries that gave way: older ones, or `entry` itself."""
        self.pop(entry.ordinal)
        own, size = self._owed.get(entry.counted_for) or _Owed(), _size(entry)
        if not self._may_have_destination(entry, own):
            return [entry]
        before, gone = own.size, list[OutboxEntry]()
        has_room = own.size + size <= self.most_by_address and self._fits(entry, own.size + size)
        if not has_room and not _is_below_share(entry, own, size):
            return [entry]
        self._put(entry, size)
        while not has_room and own.size > before:  # in place of the address's own
            gone.append(self._drop(own.oldest()))
        while self.size > self.most_bytes:
            largest = self._largest.of(self._sizes, self.size)
            gone.append(self._drop(self._owed[largest].oldest()))
        if self.destinations > self.most_destinations:
            gone += self._drop_destination()
        return gone

    def replace(self, entry: OutboxEntry) -> None:
        """The same ack in another form; its place in the order stays."""
        known = self._entries.get(entry.ordinal)
        if known is None:
            return
        self._entries[entry.ordinal] = entry
        more = len(entry.packet) - len(known.packet)
        self._owed[known.counted_for].put(entry, more)
        self._count(known.counted_for, more)

    def pop(self, ordinal: int) -> OutboxEntry | None:
        entry = self._entries.pop(ordinal, None)
        if entry is None:
            return None
        address, own = entry.counted_for, self._owed[entry.counted_for]
        self.destinations -= len(own.sizes)
        own.pop(entry)
        self.destinations += len(own.sizes)
        self._count(address, -_size(entry))
        if not own.entries:
            del self._owed[address], self._sizes[address]
        return entry

    def expired(self, now_s: int) -> list[OutboxEntry]:
        """Remove and return the entries whose time is over."""
        late = [e for e in self._entries.values() if 0 < e.expires < now_s]
        return [self._drop(entry) for entry in late]

    # -- inside -----------------------------------------------------------------------------

    def _put(self, entry: OutboxEntry, size: int) -> None:
        own = self._owed.get(entry.counted_for)
        if own is None:
            own = self._owed[entry.counted_for] = _Owed()
        self._entries[entry.ordinal] = entry
        self.destinations += entry.destination not in own.sizes
        own.put(entry, size)
        self._count(entry.counted_for, size)

    def _count(self, address: str, size: int) -> None:
        self.size += size
        self._sizes[address] = self._sizes.get(address, 0) + size

    def _drop(self, entry: OutboxEntry) -> OutboxEntry:
        self.pop(entry.ordinal)
        return entry

    def _fits(self, entry: OutboxEntry, own: int) -> bool:
        """In the shard; at its bound, an address may have an equal share."""
        if self.size + _size(entry) <= self.most_bytes:
            return True
        return own <= self.most_bytes // self._addresses_with(entry)

    def _may_have_destination(self, entry: OutboxEntry, own: _Owed) -> bool:
        if entry.destination in own.sizes:
            return True
        if len(own.sizes) >= self._destinations_by_address:
            return False
        share = self.most_destinations // self._addresses_with(entry)
        return self.destinations < self.most_destinations or len(own.sizes) < share

    def _addresses_with(self, entry: OutboxEntry) -> int:
        return len(self._owed) + (entry.counted_for not in self._owed)

    def _drop_destination(self) -> list[OutboxEntry]:
        """The oldest one of the address that has most."""
        most = max(self._owed.values(), key=lambda own: len(own.sizes))
        oldest = next(iter(most.entries))
        return [self._drop(entry) for entry in list(most.entries[oldest].values())]


def _is_below_share(entry: OutboxEntry, own: _Owed, size: int) -> bool:
    """Whether its destination would have no more than an equal share of what its address has."""
    to = own.sizes.get(entry.destination, 0)
    return to + size <= own.size // (len(own.sizes) + (not to))


def _size(entry: OutboxEntry) -> int:
    return len(entry.packet) + 4 * (len(entry.host) + len(entry.url)) + FRAME
