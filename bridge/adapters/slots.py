"""A limited number of things at a time, shared fairly between the addresses that ask for them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from bridge.model.hosts import neighbourhood


class FairSlots:
    """At most `most` slots are in use, and `by_address` of them for one address. Addresses that
    wait take turns, so none waits behind everything that another one asked for."""

    def __init__(self, most: int, by_address: int) -> None:
        self._free, self._by_address = most, by_address
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # whose turn it is first

    @property
    def in_use(self) -> int:
        return self._busy.total()

    @asynccontextmanager
    async def one_for(self, address: str) -> AsyncIterator[None]:
        address = neighbourhood(address)
        await self._take(address)
        try:
            yield
        finally:
            self._give_back(address)

    async def _take(self, address: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append(turn)
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(address)  # it was granted in this very moment
            raise

    def _give_back(self, address: str) -> None:
        self._free += 1
        self._busy[address] -= 1
        if not self._busy[address]:
            del self._busy[address]
        self._grant()

    def _grant(self) -> None:
        """One turn for each address, again and again while slots are free."""
        granted = True
        while self._free and granted:
            granted = False
            for address in list(self._waiting):
                if self._free and self._busy[address] < self._by_address:
                    granted = self._grant_next(address) or granted

    def _grant_next(self, address: str) -> bool:
        turns = self._waiting.pop(address)
        turn = next((turn for turn in _taken_from(turns) if not turn.done()), None)
        if turns:  # behind the others
            self._waiting[address] = turns
        if turn is None:  # all of them were given up
            return False
        turn.set_result(None)
        self._free -= 1
        self._busy[address] += 1
        return True


def _taken_from(turns: deque[asyncio.Future[None]]) -> Iterator[asyncio.Future[None]]:
    while turns:
        yield turns.popleft()
