"""The ids of plain messages that already have a verdict. MS-MQQB 3.1.5.8.1

An id belongs to one queue: whoever sends to another one changes nothing here. What is kept is
bounded, and counted by the peer that brought it: at the bound the peer that holds the most loses
its oldest ids, so that a flood pushes out no ids of other peers.

The seen topic has an entry for each unit, and now and then a snapshot: all ids that are known, in
parts, one part to a unit. A start reads from the beginning of the newest whole snapshot, so it
reads a bounded number of bytes and finds what was known, whichever peer wrote most since. A
snapshot is a copy of the ids as they are when it begins. The parts are restored first and the
entries after them; every id that came while the parts were written is in an entry behind the first
part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from bridge.model.guid import Guid
from bridge.model.hosts import neighbourhood
from bridge.model.message import Message

KEPT_S: Final = 1800  # 30 minutes
KEPT_AT_LEAST: Final = 10_000
KEPT_AT_MOST: Final = 250_000  # bounds the memory (about 80 MB); Windows keeps 10,000
ENTRY_BYTES: Final = 600_000  # of one record, which any topic takes
_GROUP_IDS: Final = 10_000
_MARK_BYTES: Final = 31  # the longest: ten digits, sixteen of a digest, and what stands around
_GROUP_BYTES: Final = 120
_LOOK_EVERY: Final = 1024  # evictions between two looks for the peer that holds the most
SNAPSHOT_BYTES: Final = 2 << 20  # of entries between two snapshots, or as many as the snapshot has
SNAPSHOT_S: Final = 1800  # at most; the seen topic may forget what is older than an hour
PART_IDS: Final = 10_000  # in one part: a few milliseconds
_RECORD_BYTES: Final = 200  # that an entry costs in the topic beside its value
_ID_BYTES: Final = 12  # of a part, without the digest of a mark
_ENTRY_BEGINS: Final = b"{"  # an entry is JSON, a part MessagePack

# An ordinal; or `ordinal@…` where that alone does not tell one copy from another.
Mark = int | str
SeenId = tuple[Guid, str, Mark]  # source, queue, mark
_NONE: Final[OrderedDict[SeenId, int]] = OrderedDict()
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


class SeenPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record of the seen topic: a part of a snapshot. The lists `of`, `ages` and `marks` have
    an item for each id, those of a peer in the order they were last seen."""

    unit: int  # in which the snapshot began
    left: int  # ids in later parts; 0: the snapshot is whole
    at: int  # Unix seconds when it began
    names: list[str]
    groups: list[tuple[int, int, bytes]]  # peer and queue in `names`, GUID of the source
    of: list[int]  # in `groups`
    ages: list[int]  # seconds before `at`
    marks: list[Mark]


class Part(msgspec.Struct, frozen=True):
    """A part as a unit carries it."""

    key: str
    value: bytes
    is_first: bool
    is_last: bool


class _Snapshot:
    """A copy of all ids that are known at one moment, in the order they were last seen."""

    def __init__(self, peers: dict[SeenId, str], unit: int, now: int) -> None:
        self._unit, self._at = unit, now
        self._ids, self._peers = list(peers), list(peers.values())
        self._next = self._parts = 0

    def take_part(self, of_peer: dict[str, OrderedDict[SeenId, int]], most: int) -> Part:
        """The next ids. One that is no longer known is left out; one that came again meanwhile is
        in an entry, too."""
        names: dict[str, int] = {}
        groups: dict[tuple[str, str, Guid], int] = {}
        rows: list[tuple[int, int, bytes]] = []
        of: list[int] = []
        ages: list[int] = []
        marks: list[Mark] = []
        room, first = ENTRY_BYTES, self._next
        while self._next < len(self._ids) and len(of) < most and room > 0:
            key, peer = self._ids[self._next], self._peers[self._next]
            self._next += 1
            if (at := of_peer.get(peer, _NONE).get(key)) is None:
                continue
            source, queue, mark = key
            group = groups.get((peer, queue, source))
            if group is None:
                for name in (peer, queue):
                    if name not in names:
                        names[name] = len(names)
                        room -= 4 * len(name) + 5
                group = groups[peer, queue, source] = len(groups)
                rows.append((names[peer], names[queue], bytes(source)))
                room -= _GROUP_BYTES
            of.append(group)
            ages.append(max(0, min(self._at - at, KEPT_S + 1)))
            marks.append(mark)
            room -= _ID_BYTES if isinstance(mark, int) else _ID_BYTES + _MARK_BYTES
        left = len(self._ids) - self._next
        texts = list(map(_readable, names))
        part = SeenPart(self._unit, left, self._at, texts, rows, of, ages, marks)
        name = f"{self._unit}.s{self._parts}"
        self._parts += 1
        return Part(name, msgspec.msgpack.encode(part), first == 0, left == 0)


class History:
    """Ids of each peer in the order they were last seen; its oldest go first. `_peers` has all of
    them in that order."""

    def __init__(
        self,
        at_least: int = KEPT_AT_LEAST,
        at_most: int = KEPT_AT_MOST,
        snapshot_bytes: int = SNAPSHOT_BYTES,
        part_ids: int = PART_IDS,
    ) -> None:
        self._at_least, self._at_most = at_least, at_most
        self._most_entry_bytes, self._part_ids = snapshot_bytes, part_ids
        self._peers: dict[SeenId, str] = {}
        # A plain dict looks at every hole that it has in front before it finds its first item.
        self._of_peer: dict[str, OrderedDict[SeenId, int]] = {}
        self._fresh: dict[tuple[str, str, Guid], list[Mark]] = {}
        self._has_earlier = False
        self._largest = ""
        self._evictions = 0
        self._snapshot: _Snapshot | None = None  # that is being written
        self._snapshot_at: int | None = None  # when the last one began
        self._snapshot_bytes = 0  # of the last one
        self._entry_bytes = 0  # since it began

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
        self.add_run(source, queue, [mark], peer, now)

    def add_run(self, source: Guid, queue: str, marks: list[Mark], peer: str, now: int) -> None:
        """Ids that came together, none of them known."""
        peer = neighbourhood(peer)
        keys = [(source, queue, mark) for mark in marks]
        self._peers.update(dict.fromkeys(keys, peer))
        mine = self._of_peer.get(peer)
        if mine is None:
            mine = self._of_peer[peer] = OrderedDict()
        mine.update(dict.fromkeys(keys, now))
        if len(mine) > self._at_least:
            self._forget_old(mine, now, 2 * len(keys))
        while len(self._peers) > self._at_most:
            self._make_room(peer)
        self._fresh.setdefault((peer, queue, source), []).extend(marks)

    def known_of(self, source: Guid, queue: str) -> Callable[[Mark], bool]:
        """Whether an id is known, for many of one source in one queue."""
        ids = self._peers
        if self._has_earlier:
            return lambda mark: (source, queue, mark) in self
        return lambda mark: (source, queue, mark) in ids

    def _forget_old(self, mine: OrderedDict[SeenId, int], now: int, most: int) -> None:
        """Twice as many as came, so that it ends."""
        for _ in range(most):
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
        entries = {
            f"{unit}.{number}" if number else str(unit): _encode(SeenIds(at=now, seen=part))
            for number, part in enumerate(_parts(fresh.items()))
        }
        self._entry_bytes += sum(map(_cost, entries.values()))
        return entries

    @property
    def is_being_written(self) -> bool:
        """A snapshot has parts left."""
        return self._snapshot is not None

    def take_part(self, now: int, unit: int) -> Part | None:
        """The next part of a snapshot, if one is under way or due. After `take_fresh`: the copy has
        the ids of this unit."""
        if self._snapshot_at is None:
            self._snapshot_at = now
        if self._snapshot is None:
            if not self._peers or not self._is_due(now):
                return None
            self._snapshot = _Snapshot(self._peers, unit, now)
            self._snapshot_at, self._snapshot_bytes, self._entry_bytes = now, 0, 0
        part = self._snapshot.take_part(self._of_peer, self._part_ids)
        self._snapshot_bytes += _cost(part.value)
        if part.is_last:
            self._snapshot = None
        return part

    def _is_due(self, now: int) -> bool:
        """By bytes, so that a start reads few; large snapshots are rarer. And by time, because the
        topic may have a retention."""
        assert self._snapshot_at is not None
        return (
            self._entry_bytes >= max(self._most_entry_bytes, self._snapshot_bytes)
            or abs(now - self._snapshot_at) >= SNAPSHOT_S
        )

    def restore(self, records: Iterable[bytes]) -> None:
        """Into a new history, from what was written, in that order. It is read backwards: what an
        id was last is what counts, and no more ids of a peer are looked at than can be kept."""
        entries: list[bytes] = []
        parts: list[SeenPart] = []
        for data in records:
            if data.startswith(_ENTRY_BEGINS):
                entries.append(data)
                self._entry_bytes += _cost(data)
            else:
                parts.append(_decode_part(data))
                self._count_part(parts[0], parts[-1], _cost(data))
        if (
            entries or parts
        ) and self._snapshot_at is None:  # none is whole: the next unit begins one
            self._snapshot_at = 0
        found = _Found(self._at_most)
        for data in reversed(entries):
            entry = _decode_entry(data)
            for source, marks in reversed(entry.ids.items()):
                found.add("", _EARLIER, Guid.parse(source), marks, entry.at)
            for group in reversed(entry.seen):
                found.add(group.peer, group.queue, Guid.parse(group.source), group.marks, entry.at)
        for part in reversed(parts):
            found.add_part(part)
        self._has_earlier = found.has_earlier
        self._fill(found.of_peer)

    def _count_part(self, first: SeenPart, part: SeenPart, size: int) -> None:
        """What was read beside the first snapshot counts for the next one."""
        if part.unit != first.unit:
            self._entry_bytes += size
            return
        self._snapshot_bytes += size
        if not part.left:
            self._snapshot_at = part.at

    def _fill(self, of_peer: dict[str, tuple[list[SeenId], list[int]]]) -> None:
        """Ids of each peer and their times, the newest first."""
        for ids, times in of_peer.values():
            while len(ids) > self._at_least and times[-1] < times[0] - KEPT_S:
                del ids[-1], times[-1]
        level = _level([len(ids) for ids, _ in of_peer.values()], self._at_most)
        for peer, (ids, times) in of_peer.items():
            del ids[level:], times[level:]
            ids.reverse()
            times.reverse()
            self._of_peer[peer] = OrderedDict(zip(ids, times, strict=True))
            self._peers.update(dict.fromkeys(ids, peer))


class _Found:
    """Ids as they are read, the newest first; at most `most` of a peer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[SeenId] = set()
        self.of_peer: dict[str, tuple[list[SeenId], list[int]]] = {}
        self.has_earlier = False

    def add(self, peer: str, queue: str, source: Guid, marks: list[Mark], at: int) -> None:
        """Ids that were seen at one time, the newest last."""
        self.has_earlier = self.has_earlier or queue == _EARLIER
        known, (ids, times) = self._known, self._of(peer)
        if len(ids) >= self._most:
            return
        for mark in reversed(marks):
            key = source, queue, mark
            if key not in known:
                known.add(key)
                ids.append(key)
                times.append(at)

    def add_part(self, part: SeenPart) -> None:
        groups = [
            (Guid(source), part.names[queue], *self._of(part.names[peer]))
            for peer, queue, source in part.groups
        ]
        self.has_earlier = self.has_earlier or any(queue == _EARLIER for _, queue, _, _ in groups)
        known, most = self._known, self._most
        for number in range(len(part.of) - 1, -1, -1):
            source, queue, ids, times = groups[part.of[number]]
            key = source, queue, part.marks[number]
            if key not in known and len(ids) < most:
                known.add(key)
                ids.append(key)
                times.append(part.at - part.ages[number])

    def _of(self, peer: str) -> tuple[list[SeenId], list[int]]:
        peer = neighbourhood(peer)  # an earlier version kept the address
        of_peer = self.of_peer.get(peer)
        if of_peer is None:
            of_peer = self.of_peer[peer] = [], []
        return of_peer


_decode_entry = msgspec.json.Decoder(SeenIds).decode
_decode_part = msgspec.msgpack.Decoder(SeenPart).decode


def _level(counts: list[int], most: int) -> int:
    """How many each may keep, so that all together keep no more than `most`."""
    for position, count in enumerate(sorted(counts)):
        share = most // (len(counts) - position)
        if count > share:
            return share
        most -= count
    return max(counts, default=0)


def _encode(entry: SeenIds) -> bytes:
    try:
        return msgspec.json.encode(entry)
    except UnicodeEncodeError:  # a name from a record of an earlier version
        readable = [replace(group, queue=_readable(group.queue)) for group in entry.seen]
        return msgspec.json.encode(replace(entry, seen=readable))


def _cost(value: bytes) -> int:
    """Bytes of a record in the topic, about."""
    return len(value) + _RECORD_BYTES


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
