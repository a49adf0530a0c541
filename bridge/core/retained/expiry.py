"""Messages that nobody received in time. MS-MQDMPR 3.1.7.2.7, DM-28"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bridge.core.retained.effects import Command
from bridge.core.retained.flights import Flights
from bridge.core.retained.place import END, START
from bridge.core.retained.rows import Row
from bridge.core.retained.stock import Stock
from bridge.model.classes import MessageClass
from bridge.protocol.events import Instant

FAR: Final = 1 << 62
_FIRST: Final = (-1, START)
_BATCH: Final = 500
_TOO_LATE: Final = MessageClass.NACK_RECEIVE_TIMEOUT


class Expiry:
    """A locked message is left alone and judged when it is given back (`Flights.enter`)."""

    def __init__(self, stock: Stock, flights: Flights) -> None:
        self._stock, self._flights = stock, flights
        self._seen = _FIRST  # all up to here are in flight, or were locked
        self._next = self._first_after(_FIRST)

    @property
    def next_unix(self) -> float | None:
        """When to look again."""
        return self._next

    def arrived(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.expires is not None and (self._next is None or row.expires < self._next):
                self._next = row.expires
                self._seen = min(self._seen, (row.expires, START))

    def expire(self, now: Instant, limit: int) -> list[Command]:
        """Those that stopped at the limit go on behind it: the first ones are still in flight."""
        commands: list[Command] = []
        if self._next is None or now.unix < self._next:
            return commands
        second = int(now.unix)
        while rows := self._stock.shelf.expiring(self._seen, second, _BATCH):
            for row in rows:
                assert row.expires is not None
                if len(commands) >= limit:
                    return commands  # the next look is at once
                self._seen = row.expires, row.lookup_id
                if row.lookup_id not in self._stock.locks:
                    commands.append(self._flights.remove(self._stock.lock(row), _TOO_LATE, now))
        self._seen = _FIRST
        self._next = self._first_after((second, END))
        return commands

    def _first_after(self, seen: tuple[int, int]) -> int | None:
        rows = self._stock.shelf.expiring(seen, FAR, 1)
        return rows[0].expires if rows else None
