"""At which address each queue manager is known, and what happens when it comes from another one.

Nothing in MS-MQQB or MC-MQSRM proves a GUID; an address is all that a stranger cannot choose. A
queue manager is known where the configuration says, else where its first message was accepted
from. Over HTTP it may come through a proxy, so it is known there apart from binary sessions.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Literal

Pin = Literal["off", "warn", "enforce"]

MOST: Final = 100_000  # about 20 MB
MOST_OF_ADDRESS: Final = 1_000
SILENT_S: Final = 86_400  # after which a queue manager may be known elsewhere
HTTP: Final = "http:"  # begins the names of those that came over HTTP


class KnownSenders:
    """`keep` makes what was learned durable."""

    def __init__(
        self,
        pin: Pin,
        configured: Mapping[str, str],
        learned: Mapping[str, str],
        keep: Callable[[str, str], None],
        started: float = 0.0,
    ) -> None:
        self.pin = pin
        self._configured = {
            name.lower(): host for name, host in configured.items() if _is_address(host)
        }
        self._learned = dict(learned)
        self._at = Counter(self._learned.values())  # how many are known there
        self._keep = keep
        self._started = started
        self._heard: dict[str, float] = {}  # when, by those that have spoken since the start

    def __len__(self) -> int:
        return len(self._learned)

    def address(self, name: str) -> str:
        """Where it is known; empty if it is not."""
        return self._configured.get(name.removeprefix(HTTP)) or self._learned.get(name, "")

    def is_elsewhere(self, name: str, address: str) -> bool:
        """It is known, at another address than this one."""
        return self.address(name) not in ("", address)

    def bars(self, name: str, address: str) -> bool:
        """Nothing is taken of it there."""
        return self.pin == "enforce" and self.is_elsewhere(name, address)

    def heard(self, name: str, address: str, now: float) -> None:
        """A message of it was accepted from there."""
        known = self._learned.get(name)
        if known != address:
            if known is not None and not self._may_move(name, now):
                return
            if not self._has_room(known, address):
                return
            self._learn(name, known, address)
        self._heard[name] = now

    def _may_move(self, name: str, now: float) -> bool:
        """So that who takes the GUID of another that is silent just now gets none of its acks."""
        if self.pin == "enforce":
            return False
        return self.pin == "off" or now - self._heard.get(name, self._started) > SILENT_S

    def _has_room(self, known: str | None, address: str) -> bool:
        """At the bound the newest is not learned."""
        if self._at[address] >= MOST_OF_ADDRESS:
            return False
        return known is not None or len(self._learned) < MOST

    def _learn(self, name: str, known: str | None, address: str) -> None:
        if known is not None:
            self._at[known] -= 1
            if not self._at[known]:
                del self._at[known]
        self._at[address] += 1
        self._learned[name] = address
        self._keep(name, address)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
