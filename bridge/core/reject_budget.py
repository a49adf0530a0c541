"""How much of refused messages is kept, by the address they came from.

A refused message leaves a record among the rejects, with its body, and maybe a dead letter. Above
the budget of its address, or of all, for this minute the record has no body and there is no dead
letter; the verdict in the audit topic is written in any case.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from bridge.model.hosts import neighbourhood

BY_ADDRESS: Final = 16 << 20  # bytes in a minute
IN_ALL: Final = 64 << 20
DEAD_LETTERS: Final = 1 << 30  # bytes that lie in the dead-letter queue
_MINUTE_S: Final = 60
_ADDRESSES: Final = 10_000  # that have a budget of their own


class RejectBudget:
    """For all shards of a process. Time is the arrival of the messages, in Unix seconds."""

    def __init__(self, by_address: int = BY_ADDRESS, in_all: int = IN_ALL) -> None:
        self._by_address, self._in_all = by_address, in_all
        self._minute = -1
        self._used: Counter[str] = Counter()
        self.used = 0  # bytes in this minute
        self.omitted = 0  # bodies that were left out since the start

    def takes(self, address: str, size: int, now_s: int) -> bool:
        """Whether a message of this size is kept whole; it is counted then."""
        address = neighbourhood(address)
        if (minute := now_s // _MINUTE_S) != self._minute:
            self._minute, self.used = minute, 0
            self._used.clear()
        if len(self._used) >= _ADDRESSES and address not in self._used:
            address = ""  # the rest share one
        if self._used[address] + size > self._by_address or self.used + size > self._in_all:
            self.omitted += 1
            return False
        self._used[address] += size
        self.used += size
        return True
