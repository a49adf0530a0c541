"""Context handles: 16 random bytes that name something a client has open.

They belong to an interface and to an association group: to anybody else they say nothing (RR-5,
RR-11). Each interface has its own table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from bridge.core.remote_read.codes import INSUFFICIENT_RESOURCES, NO_SUCH_HANDLE, Failed
from bridge.protocol.rpc.calls import Fault

MOST: Final = 4096  # of one group
_ATTRIBUTES: Final = bytes(4)

Item = TypeVar("Item")
Random = Callable[[int], bytes]


class Contexts(Generic[Item]):
    def __init__(self, random: Random, most: int = MOST) -> None:
        self._random, self._most = random, most
        self._groups: dict[int, dict[bytes, Item]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def add(self, group: int, item: Item) -> bytes:
        """Failed: it has too many."""
        if len(self._groups.get(group, ())) >= self._most:
            raise Failed(INSUFFICIENT_RESOURCES)
        handle = _ATTRIBUTES + self._random(16)
        self._groups.setdefault(group, {})[handle] = item
        return handle

    def get(self, group: int, handle: bytes) -> Item:
        try:
            return self._groups[group][handle]
        except KeyError:
            raise Fault(NO_SUCH_HANDLE) from None

    def pop(self, group: int, handle: bytes) -> Item:
        item = self.get(group, handle)
        self._drop(group, handle)
        return item

    def discard(self, group: int, handle: bytes) -> None:
        """It may be gone already."""
        if handle in self._groups.get(group, ()):
            self._drop(group, handle)

    def forget(self, unwanted: Callable[[Item], bool]) -> None:
        """Whoever holds them."""
        for group, items in list(self._groups.items()):
            for handle in [handle for handle, item in items.items() if unwanted(item)]:
                self._drop(group, handle)

    def run_down(self, group: int) -> list[Item]:
        """All that the group had open. MS-RPCE 3.3.3.7.1"""
        return list(self._groups.pop(group, {}).values())

    def _drop(self, group: int, handle: bytes) -> None:
        items = self._groups[group]
        del items[handle]
        if not items:
            del self._groups[group]
