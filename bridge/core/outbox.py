"""The acks and receipts of one shard that no peer has taken yet, within bounds.

Peers decide what is owed, to whom and how large it is, so all of it is bounded, by the address that
caused it and in all:

- Above half of a bound, an ack is kept without the body of its message.
- At the bound of an address, the oldest acks that this address caused are dropped.
- At the bound of the shard, the addresses that hold most are cut to the same size, oldest acks
  first. An address that holds less loses nothing.
- An address can cause acks to a limited number of destinations; the ack to one more is not kept.
- An ack ends when its time is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from bridge.core.ports import OutboxEntry

MEMORY: Final = 128 << 20  # bytes, all shards together
FRAME: Final = 512  # bytes that an entry costs beside its packet
DESTINATIONS: Final = 10_000  # all shards together
DESTINATIONS_BY_ADDRESS: Final = 2_000
_EASED: Final = 15 / 16  # of a bound: what is left after the bound was met


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
        self.size = 0
        self._entries: dict[int, OutboxEntry] = {}
        self._by_address: dict[str, dict[int, OutboxEntry]] = {}
        self._sizes: Counter[str] = Counter()  # by address
        self._destinations: dict[str, Counter[str]] = {}  # by address
        self._destination_count = 0

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

    @property
    def destinations(self) -> int:
        """Pairs of an address and a destination that acks wait for."""
        return self._destination_count

    def is_strained(self, address: str) -> bool:
        """More than half of the shard's bytes, or of this address's, are in use: what comes now
        is kept without its body."""
        return 2 * self.size > self.most_bytes or 2 * self._sizes[address] > self.most_by_address

    # -- changes ----------------------------------------------------------------------------

    def add(self, entry: OutboxEntry) -> list[OutboxEntry]:
        """Keep the entry. Returns the entries that gave way: older ones, or `entry` itself."""
        self.pop(entry.ordinal)
        if not self._may_have_destination(entry):
            return [entry]
        self._put(entry)
        address = entry.address
        gone = self._cut(address, self.most_by_address) if self._is_over(address) else []
        if self.size > self.most_bytes:
            gone += self._level(self._sizes, self.size, int(_EASED * self.most_bytes))
        if self._destination_count > self.most_destinations:
            gone += self._level_destinations()
        return gone

    def replace(self, entry: OutboxEntry) -> None:
        """The same ack in another form; its place in the order stays."""
        known = self._entries.get(entry.ordinal)
        if known is None:
            return
        self._entries[entry.ordinal] = entry
        self._by_address[known.address][entry.ordinal] = entry
        self._count(known.address, len(entry.packet) - len(known.packet))

    def pop(self, ordinal: int) -> OutboxEntry | None:
        entry = self._entries.pop(ordinal, None)
        if entry is None:
            return None
        address = entry.address
        of_address = self._by_address[address]
        del of_address[ordinal]
        self._count(address, -_size(entry))
        destinations = self._destinations[address]
        destinations[entry.destination] -= 1
        if not destinations[entry.destination]:
            del destinations[entry.destination]
            self._destination_count -= 1
        if not of_address:
            del self._by_address[address], self._destinations[address], self._sizes[address]
        return entry

    def expired(self, now_s: int) -> list[OutboxEntry]:
        """Remove and return the entries whose time is over."""
        late = [e.ordinal for e in self._entries.values() if 0 < e.expires < now_s]
        return self._drop(late)

    # -- inside -----------------------------------------------------------------------------

    def _put(self, entry: OutboxEntry) -> None:
        address = entry.address
        self._entries[entry.ordinal] = entry
        self._by_address.setdefault(address, {})[entry.ordinal] = entry
        self._count(address, _size(entry))
        destinations = self._destinations.setdefault(address, Counter())
        self._destination_count += entry.destination not in destinations
        destinations[entry.destination] += 1

    def _count(self, address: str, size: int) -> None:
        self.size += size
        self._sizes[address] += size

    def _is_over(self, address: str) -> bool:
        return self._sizes[address] > self.most_by_address

    def _may_have_destination(self, entry: OutboxEntry) -> bool:
        known = self._destinations.get(entry.address)
        if known is None or entry.destination in known:
            return True
        return len(known) < self._destinations_by_address

    def _drop(self, ordinals: Iterable[int]) -> list[OutboxEntry]:
        return [entry for ordinal in ordinals if (entry := self.pop(ordinal)) is not None]

    def _cut(self, address: str, most: int) -> list[OutboxEntry]:
        """The oldest entries of an address, until the rest fits."""
        over, ordinals = self._sizes[address] - most, []
        for ordinal, entry in self._by_address[address].items():
            if over <= 0:
                break
            ordinals.append(ordinal)
            over -= _size(entry)
        return self._drop(ordinals)

    def _level(self, sizes: Counter[str], total: int, most: int) -> list[OutboxEntry]:
        return [
            entry
            for address, level in _levels(sizes, total, most)
            for entry in self._cut(address, level)
        ]

    def _level_destinations(self) -> list[OutboxEntry]:
        """The addresses with most destinations lose their oldest ones."""
        counts = Counter({address: len(found) for address, found in self._destinations.items()})
        most = int(_EASED * self.most_destinations)
        ordinals: list[int] = []
        for address, level in _levels(counts, self._destination_count, most):
            known = self._destinations[address]
            gone = set(list(known)[: len(known) - level])
            of_address = self._by_address[address].values()
            ordinals += [entry.ordinal for entry in of_address if entry.destination in gone]
        return self._drop(ordinals)


def _levels(sizes: Counter[str], total: int, most: int) -> list[tuple[str, int]]:
    """The owners to cut, and to what: all of them to one level, so that the sum is `most`."""
    ranked = sizes.most_common()
    for count, (_, largest) in enumerate(ranked, 1):
        total -= largest
        level = max(0, (most - total) // count)
        if count == len(ranked) or level >= ranked[count][1]:
            return [(name, level) for name, size in ranked[:count] if size > level]
    return []


def _size(entry: OutboxEntry) -> int:
    return len(entry.packet) + 4 * (len(entry.host) + len(entry.url)) + FRAME
