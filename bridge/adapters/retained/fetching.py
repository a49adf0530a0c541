"""Brings commits the records that they need, in the order they come, a bounded lot at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from bridge.adapters.kafka.held_reader import RecordLost
from bridge.core.ports import Record
from bridge.core.retained.effects import Commit, Removal
from bridge.core.retained.rows import RecordAt, Row
from bridge.model.errors import SinkUnavailable

ROOM: Final = 32 << 20  # bytes of messages that were fetched and are not settled yet
RETRY_S: Final = 2.0
_log = logging.getLogger(__name__)

Records = Mapping[RecordAt, Record]
Read = Callable[[Iterable[RecordAt]], Awaitable[Records]]


class Fetching:
    """`add` gets every commit once, with its records."""

    def __init__(self, read: Read, add: Callable[[Commit, Records], None]) -> None:
        self._read, self._add = read, add
        self._waiting: deque[Commit] = deque()
        self._held: dict[int, int] = {}  # bytes by ticket
        self._size = 0
        self._news = asyncio.Event()

    def take(self, commit: Commit) -> None:
        """One that needs no record is not kept waiting."""
        if _wanted(commit):
            self._waiting.append(commit)
            self._news.set()
        else:
            self._add(commit, {})

    def settled(self, commit: Commit) -> None:
        """Its records are not needed any more."""
        if commit.ticket in self._held:
            self._size -= self._held.pop(commit.ticket)
            self._news.set()

    async def run(self) -> None:
        while True:
            while self._waiting and self._has_room(self._waiting[0]):
                commit = self._waiting.popleft()
                self._held[commit.ticket] = _size(commit)
                self._size += self._held[commit.ticket]
                self._add(commit, await self._fetch(commit))
            self._news.clear()
            await self._news.wait()

    def _has_room(self, commit: Commit) -> bool:
        return not self._held or self._size + _size(commit) <= ROOM

    async def _fetch(self, commit: Commit) -> Records:
        """Of a record that is lost there is no copy, and no body in a nack: the rest happens."""
        wanted, lost = _wanted(commit), set[RecordAt]()
        while True:
            try:
                return await self._read([at for at in wanted if at not in lost])
            except RecordLost as error:
                _log.error("%s; what leaves its queue leaves without it", error)
                lost.add(error.at)
            except SinkUnavailable as error:
                _log.warning("%s; trying again", error)
                await asyncio.sleep(RETRY_S)


def _wanted(commit: Commit) -> list[RecordAt]:
    return [row.at for row in _rows(commit)]


def _size(commit: Commit) -> int:
    return sum(row.size for row in _rows(commit))


def _rows(commit: Commit) -> list[Row]:
    return [e.row for e in commit.effects if isinstance(e, Removal) and e.needs_record]
