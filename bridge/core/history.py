"""The ids of plain messages that already have a verdict. MS-MQQB 3.1.5.8.1

An id belongs to one queue: whoever sends to another one changes nothing here. What is kept is
bounded, and counted by the peer that brought it: at the bound the peer that holds the most loses
its oldest ids, so that a flood pushes out nobody else's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from bridge.model.guid import Guid
from bridge.model.message import Message

KEPT_S: Final = 1800  # 30 minutes
KEPT_AT_LEAST: Final = 10_000
KEPT_AT_MOST: Final = 250_000  # bounds the memory (about 80 MB); Windows keeps 10,000
ENTRY_BYTES: Final = 600_000  # of one record, which any topic takes
_GROUP_IDS: Final = 10_000
_MARK_BYTES: Final = 31  # the longest: ten digits, sixteen of a digest, and what stands around
_GROUP_BYTES: Final = 120
_LOOK_EVERY: Final = 1024  # evictions between two looks for the peer that holds the most

# An ordinal; or `ordinal@…` where that alone does not tell one copy from another.
Mark = int | str
SeenId = tuple[Guid, str, Mark]  # source, queue, mark
_EARLIER: Final = ""  # the queue of ids from before queues were told apart


def mark_of(message: Message) -> Mark:
    """What tells a plain message from all others of its source in one queue, in a fixed size.

    A message to several destinations comes once for each, all with one id. Over HTTP a source is
    a claim that only the peer's address supports, so ids count for that address.
    """
    peer = message.peer if message.srmp is not None else ""
    copy = message.destination if message.destination_multi else ""
    if not peer and not copy:
        return message.ordinal
    return f"{message.ordinal}@{_digest(f'{peer} {copy}')}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


class SeenOf(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Ids of one source in one queue, brought by one peer."""

    peer: str
    queue: str
    source: str
    marks: list[Mark]


class SeenIds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record of the seen topic: ids of one transaction."""

    at: int  # Unix seconds
    seen: list[SeenOf] = []
    ids: dict[str, list[Mark]] = {}  # by source: what earlier versions wrote, in no queue


class History:
    """Ids of each peer in the order they were last seen; its oldest go first."""

    def __init__(self, at_least: int = KEPT_AT_LEAST, at_most: int = KEPT_AT_MOST) -> None:
        self._at_least, self._at_most = at_least, at_most
        self._peers: dict[SeenId, str] = {}
        # A plain dict looks at every hole that it has in front before it finds its first item.
        self._of_peer: dict[str, OrderedDict[SeenId, int]] = {}
        self._fresh: dict[tuple[str, str, Guid], list[Mark]] = {}
        self._has_earlier = False
        self._largest = ""
        self._evictions = 0

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, key: SeenId) -> bool:
        return key in self._peers or (
            self._has_earlier and (key[0], _EARLIER, key[2]) in self._peers
        )

    def refresh(self, key: SeenId, peer: str, now: int) -> None:
        """A copy of a known message came: its time starts again. MS-MQQB 3.1.5.8.1"""
        for known in (key, (key[0], _EARLIER, key[2])):
            if (owner := self._peers.pop(known, None)) is not None:
                del self._of_peer[owner][known]
                peer = owner
        self.add(key, peer, now)

    def add(self, key: SeenId, peer: str, now: int) -> None:
        source, queue, mark = key
        self._keep(key, peer, now)
        group = peer, queue, source
        fresh = self._fresh.get(group)
        if fresh is None:
            self._fresh[group] = [mark]
        else:
            fresh.append(mark)

    def _keep(self, key: SeenId, peer: str, now: int) -> None:
        self._peers[key] = peer
        mine = self._of_peer.get(peer)
        if mine is None:
            mine = self._of_peer[peer] = OrderedDict()
        mine[key] = now
        if len(mine) > self._at_least:
            self._forget_old(mine, now)
        if len(self._peers) > self._at_most:
            self._make_room(peer)

    def _forget_old(self, mine: OrderedDict[SeenId, int], now: int) -> None:
        """Two at a time, so that it ends."""
        for _ in range(2):
            key, at = next(iter(mine.items()))
            if at >= now - KEPT_S or len(mine) <= self._at_least:
                return
            del mine[key], self._peers[key]

    def _make_room(self, adding: str) -> None:
        if self._evictions % _LOOK_EVERY == 0 or self._largest not in self._of_peer:
            self._largest = max(self._of_peer, key=lambda peer: len(self._of_peer[peer]))
            self._of_peer = {peer: ids for peer, ids in self._of_peer.items() if ids}
        elif len(self._of_peer[adding]) > len(self._of_peer[self._largest]):
            self._largest = adding
        self._evictions += 1
        key, _ = self._of_peer[self._largest].popitem(last=False)
        del self._peers[key]

    def take_fresh(self, now: int, unit: int) -> dict[str, bytes]:
        """What was added since the last call, as entries for the seen topic.

        Their keys begin with the unit's number: the topic is compacted, no entry may replace
        another.
        """
        fresh, self._fresh = self._fresh, {}
        return {
            f"{unit}.{number}" if number else str(unit): _encode(SeenIds(at=now, seen=part))
            for number, part in enumerate(_parts(fresh.items()))
        }

    def restore(self, entries: Iterable[bytes]) -> None:
        """Into a new history, in the order they were written."""
        decoder = msgspec.json.Decoder(SeenIds)
        for data in entries:
            entry = decoder.decode(data)
            self._has_earlier = self._has_earlier or bool(entry.ids)
            earlier = (SeenOf("", _EARLIER, *ids) for ids in entry.ids.items())
            for group in (*entry.seen, *earlier):
                source = Guid.parse(group.source)
                for mark in group.marks:
                    self._again((source, group.queue, mark), group.peer, entry.at)

    def _again(self, key: SeenId, peer: str, at: int) -> None:
        if (owner := self._peers.pop(key, None)) is not None:
            del self._of_peer[owner][key]
        self._keep(key, peer, at)


def _encode(entry: SeenIds) -> bytes:
    try:
        return msgspec.json.encode(entry)
    except UnicodeEncodeError:  # a name from a record of an earlier version
        readable = [replace(group, queue=_readable(group.queue)) for group in entry.seen]
        return msgspec.json.encode(replace(entry, seen=readable))


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _parts(groups: Iterable[tuple[tuple[str, str, Guid], list[Mark]]]) -> Iterator[list[SeenOf]]:
    """Each small enough for a record, whatever the names are."""
    part: list[SeenOf] = []
    room = ENTRY_BYTES
    for (peer, queue, source), marks in groups:
        for start in range(0, len(marks), _GROUP_IDS):
            some = marks[start : start + _GROUP_IDS]
            cost = len(some) * _MARK_BYTES + 6 * len(queue) + _GROUP_BYTES
            if part and cost > room:
                yield part
                part, room = [], ENTRY_BYTES
            part.append(SeenOf(peer, queue, str(source), some))
            room -= cost
    if part:
        yield part
