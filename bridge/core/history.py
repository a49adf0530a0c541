"""The ids of plain messages that already have a verdict. MS-MQQB 3.1.5.8.1; DM-10"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from bridge.model.guid import Guid

KEPT_S: Final = 1800  # 30 minutes
KEPT_AT_LEAST: Final = 10_000
KEPT_AT_MOST: Final = 250_000  # bounds the memory (about 50 MB); Windows keeps 10,000


class SeenIds(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the seen topic: the ids of one transaction."""

    at: int  # Unix seconds
    ids: dict[str, list[int]]  # source GUID -> ordinals


class History:
    """Ids in the order they were last seen; the oldest go first."""

    def __init__(self, at_least: int = KEPT_AT_LEAST, at_most: int = KEPT_AT_MOST) -> None:
        self._at_least, self._at_most = at_least, at_most
        self._seen: dict[tuple[Guid, int], int] = {}
        self._fresh: dict[Guid, list[int]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def knows(self, source: Guid, ordinal: int, now: int) -> bool:
        """Whether this id was taken before; if so its time starts anew (QB-71)."""
        key = source, ordinal
        if self._seen.pop(key, None) is None:
            return False
        self._seen[key] = now
        self._fresh.setdefault(source, []).append(ordinal)
        return True

    def add(self, source: Guid, ordinal: int, now: int) -> None:
        self._seen[source, ordinal] = now
        self._fresh.setdefault(source, []).append(ordinal)
        if len(self._seen) > self._at_least:
            self._forget(now)

    def _forget(self, now: int) -> None:
        """Drop what is too old, a few at a time."""
        for key, at in list(_first(self._seen, 2)):
            if len(self._seen) > self._at_least and (
                len(self._seen) > self._at_most or at < now - KEPT_S
            ):
                del self._seen[key]

    def take_fresh(self, now: int, unit: int) -> dict[str, bytes]:
        """What was added since the last call, as an entry for the seen topic.

        Its key is the unit's number: the topic is compacted, no entry may replace another.
        """
        if not self._fresh:
            return {}
        ids = {str(source): ordinals for source, ordinals in self._fresh.items()}
        self._fresh = {}
        return {str(unit): msgspec.json.encode(SeenIds(at=now, ids=ids))}

    def restore(self, entries: Iterable[bytes]) -> None:
        decoder = msgspec.json.Decoder(SeenIds)
        for data in entries:
            entry = decoder.decode(data)
            for text, ordinals in entry.ids.items():
                source = Guid.parse(text)
                for ordinal in ordinals:
                    self._seen.pop((source, ordinal), None)
                    self.add(source, ordinal, entry.at)
        self._fresh = {}


def _first(
    items: dict[tuple[Guid, int], int], count: int
) -> Iterable[tuple[tuple[Guid, int], int]]:
    iterator = iter(items.items())
    for _ in range(min(count, len(items))):
        yield next(iterator)
