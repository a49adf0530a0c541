"""Counts by address, of which the largest is always known."""

from __future__ import annotations

from collections import OrderedDict


class Ranks:
    """How many each address has; the one with the most is found without a search."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._having: dict[int, OrderedDict[str, None]] = {}
        self.most = 0

    def __getitem__(self, address: str) -> int:
        return self._counts.get(address, 0)

    def __len__(self) -> int:
        return len(self._counts)

    def change(self, address: str, step: int) -> None:
        """`step` is 1 or -1."""
        count = self[address]
        self._take_out(address, count)
        count += step
        if count:
            self._counts[address] = count
            self._having.setdefault(count, OrderedDict())[address] = None
        else:
            del self._counts[address]
        if count > self.most or self.most not in self._having:
            self.most = count

    def _take_out(self, address: str, count: int) -> None:
        if count:
            having = self._having[count]
            del having[address]
            if not having:
                del self._having[count]

    def heaviest(self) -> str:
        """Of several the one that has had that many for longest."""
        return next(iter(self._having[self.most]))
