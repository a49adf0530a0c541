"""The ids of plain messages that already have a verdict. MS-MQQB 3.1.5.8.1; DM-10"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from bridge.model.guid import Guid
from bridge.model.message import Message

KEPT_S: Final = 1800  # 30 minutes
KEPT_AT_LEAST: Final = 10_000
KEPT_AT_MOST: Final = 250_000  # bounds the memory (about 60 MB); Windows keeps 10,000


# An ordinal; or `ordinal@destination` where one message goes to several queues, a copy to each.
Mark = int | str


def mark_of(message: Message) -> Mark:
    """What tells a plain message from all others of its source. QB-70"""
    if message.destination_multi:
        # Half a surrogate pair is legal in a name, not in JSON.
        destination = message.destination.encode("utf-8", "backslashreplace").decode()
        return f"{message.ordinal}@{destination}"
    return message.ordinal


class SeenIds(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the seen topic: the ids of one transaction."""

    at: int  # Unix seconds
    ids: dict[str, list[Mark]]  # source GUID -> marks


class History:
    """Ids in the order they were last seen; the oldest go first."""

    def __init__(self, at_least: int = KEPT_AT_LEAST, at_most: int = KEPT_AT_MOST) -> None:
        self._at_least, self._at_most = at_least, at_most
        # A plain dict looks at every hole that it has in front before it finds its first item.
        self._seen: OrderedDict[tuple[Guid, Mark], int] = OrderedDict()
        self._fresh: dict[Guid, list[Mark]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def __contains__(self, key: tuple[Guid, Mark]) -> bool:
        return key in self._seen

    def knows(self, source: Guid, mark: Mark, now: int) -> bool:
        """Whether this id was taken before; if so its time starts anew (QB-71)."""
        key = source, mark
        if self._seen.pop(key, None) is None:
            return False
        self._seen[key] = now
        self._fresh.setdefault(source, []).append(mark)
        return True

    def add(self, source: Guid, mark: Mark, now: int) -> None:
        self._seen[source, mark] = now
        self._fresh.setdefault(source, []).append(mark)
        if len(self._seen) > self._at_least:
            self._forget(now)

    def discard(self, source: Guid, mark: Mark) -> None:
        """It was not taken after all."""
        del self._seen[source, mark]
        fresh = self._fresh[source]
        fresh.remove(mark)
        if not fresh:
            del self._fresh[source]

    def _forget(self, now: int) -> None:
        """Drop what is too old, a few at a time."""
        for _ in range(2):
            key, at = next(iter(self._seen.items()))
            is_old = at < now - KEPT_S and len(self._seen) > self._at_least
            if not is_old and len(self._seen) <= self._at_most:
                return
            del self._seen[key]

    def take_fresh(self, now: int, unit: int) -> dict[str, bytes]:
        """What was added since the last call, as an entry for the seen topic.

        Its key is the unit's number: the topic is compacted, no entry may replace another.
        """
        if not self._fresh:
            return {}
        ids = {str(source): marks for source, marks in self._fresh.items()}
        self._fresh = {}
        return {str(unit): msgspec.json.encode(SeenIds(at=now, ids=ids))}

    def restore(self, entries: Sequence[bytes]) -> None:
        """What was seen last comes last: only as much is read as is kept."""
        decoder = msgspec.json.Decoder(SeenIds)
        newest: dict[tuple[Guid, Mark], int] = {}
        now = 0
        for data in reversed(entries):
            entry = decoder.decode(data)
            now = max(now, entry.at)
            is_old = entry.at < now - KEPT_S and len(newest) >= self._at_least
            if is_old or len(newest) >= self._at_most:
                break
            for text, marks in reversed(entry.ids.items()):
                source = Guid.parse(text)
                for mark in reversed(marks):
                    newest.setdefault((source, mark), entry.at)
        self._seen = OrderedDict(reversed(newest.items()))
        while len(self._seen) > self._at_most:
            self._seen.popitem(last=False)
        self._fresh = {}
