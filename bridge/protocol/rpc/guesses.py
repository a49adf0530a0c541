"""Wrong passwords are slowed down, by address and by account at an address.

Of one account an address may give `ACCOUNT.burst` wrong proofs at once and then one every
`ACCOUNT.every_s`; of all accounts together `ADDRESS.burst` and one every `ADDRESS.every_s`. Beyond
that a proof is refused without a look at it. Nothing is counted by account alone, so that an
account cannot be locked from elsewhere; and an account that has logged on from an address is not
affected by the wrong proofs of other accounts there (one address may be a whole site behind NAT).

Pure: time is an argument, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Final

import msgspec

MOST: Final = 16_384  # entries, the latest; about 200 bytes each


class Rate(msgspec.Struct, frozen=True):
    burst: int
    every_s: float


ACCOUNT: Final = Rate(burst=5, every_s=60.0)
ADDRESS: Final = Rate(burst=20, every_s=15.0)


class _Wrong:
    """How many wrong ones count now: each is forgotten after `every_s`, one after the other."""

    __slots__ = ("at", "count", "is_proved")

    def __init__(self) -> None:
        self.count = self.at = 0.0
        self.is_proved = False  # this account has logged on from this address

    def left(self, rate: Rate, now: float) -> float:
        return max(0.0, self.count - (now - self.at) / rate.every_s)

    def wait_s(self, rate: Rate, now: float) -> float:
        return max(0.0, self.left(rate, now) + 1 - rate.burst) * rate.every_s

    def add(self, rate: Rate, now: float) -> None:
        self.count, self.at = self.left(rate, now) + 1, now


class Guesses:
    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Wrong] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def wait_s(self, address: str, account: str, now: float) -> float:
        """How long this account has to wait at this address; 0: it may try."""
        of_address = self._known.get(_key(address))
        own = self._known.get(_key(address, account))
        wait_s = 0.0 if own is None else own.wait_s(ACCOUNT, now)
        if of_address is not None and not (own is not None and own.is_proved):
            wait_s = max(wait_s, of_address.wait_s(ADDRESS, now))
        return wait_s

    def wrong(self, address: str, account: str, now: float) -> None:
        self._entry(_key(address)).add(ADDRESS, now)
        self._entry(_key(address, account)).add(ACCOUNT, now)

    def right(self, address: str, account: str) -> None:
        entry = self._entry(_key(address, account))
        entry.count, entry.is_proved = 0.0, True

    def _entry(self, key: bytes) -> _Wrong:
        entry = self._known.pop(key, None) or _Wrong()
        self._known[key] = entry
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return entry


def _key(address: str, account: str | None = None) -> bytes:
    """Names come from outside and may be long."""
    said = address if account is None else f"{address}\0{account.casefold()}"
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()
