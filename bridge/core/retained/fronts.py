"""How little Kafka must remember of what is gone: for each partition a front, and what is behind.

Readers take messages mostly in the order they lie in a partition. So one number says that
everything before it is gone, and only what left out of turn, or waits changed, has an entry of its
own. When the front passes such an entry, it is dropped: the state topic holds no more than what
waits between the first waiting message and the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final

from bridge.core.retained.fates import PREFIX, Fated, read_fate
from bridge.core.retained.rows import RecordAt

Partition = tuple[str, int]  # topic and number
FRONT: Final = "retained-front/"


class Fronts:
    """Of one shard, as of the unit that fills."""

    def __init__(self) -> None:
        self._fronts: dict[Partition, int] = {}
        self._behind: dict[Partition, list[int]] = {}  # heaps of offsets
        self._keys: set[str] = set()  # of the entries in the heaps
        self._fates: dict[str, bytes] = {}  # as restored

    def restore(self, key: str, value: bytes) -> None:
        """An entry of the state topic."""
        if key.startswith(FRONT):
            topic, number = key.removeprefix(FRONT).split("/")
            self._fronts[topic, int(number)] = int(value)
        else:
            self._fates[key] = value
            self._push(key, read_fate(key, value).at)

    def __iter__(self) -> Iterator[tuple[Partition, int]]:
        return iter(self._fronts.items())

    def fates(self) -> Iterator[Fated]:
        """Those that were restored; after that the shelf knows."""
        for key, value in self._fates.items():
            yield read_fate(key, value)
        self._fates = {}

    def commit(
        self, fates: Iterable[Fated], fronts: Mapping[Partition, int]
    ) -> dict[str, bytes | None]:
        """Entries for the state topic: these fates, once everything before `fronts` is gone."""
        state: dict[str, bytes | None] = {}
        for fated in fates:
            at, key = fated.at, fated.key
            if fated.fate.is_gone and at.offset < self._front(at, fronts):
                continue
            state[key] = fated.fate.encode()
            self._push(key, at)
        for partition, front in fronts.items():
            if front > self._fronts.get(partition, 0):
                self._fronts[partition] = front
                state[f"{FRONT}{partition[0]}/{partition[1]}"] = b"%d" % front
                state |= dict.fromkeys(self._passed(partition, front))
        return state

    def _front(self, at: RecordAt, fronts: Mapping[Partition, int]) -> int:
        partition = at.topic, at.partition
        return max(fronts.get(partition, 0), self._fronts.get(partition, 0))

    def _push(self, key: str, at: RecordAt) -> None:
        """Once, however often the record changes."""
        if key not in self._keys:
            self._keys.add(key)
            heappush(self._behind.setdefault((at.topic, at.partition), []), at.offset)

    def _passed(self, partition: Partition, front: int) -> Iterator[str]:
        heap = self._behind.get(partition, [])
        while heap and heap[0] < front:
            key = f"{PREFIX}{partition[0]}/{partition[1]}/{heappop(heap)}"
            self._keys.discard(key)
            yield key
        if not heap:
            self._behind.pop(partition, None)
