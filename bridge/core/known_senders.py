"""At which address each queue manager is known, and what happens when it comes from another one.

Nothing in MS-MQQB or MC-MQSRM proves a GUID; an address is all that a stranger cannot choose. A
queue manager is known where the configuration says, else where its first message was accepted
from. Over HTTP it may come through a proxy, so it is known there apart from binary sessions.

What is learned is bounded, by address (IPv6: by /64) and in all. One that an address has too many
of is not learned; in a full book the address that has most of them loses the one that has been
silent for longest, unless it has no more than the newcomer's address. With `enforce`, one that
cannot be learned is not served: nothing is taken of a GUID that no address is bound to.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, Literal

from bridge.core.ranks import Ranks
from bridge.model.hosts import neighbourhood

Pin = Literal["off", "warn", "enforce"]

MOST: Final = 100_000  # about 20 MB
MOST_OF_ADDRESS: Final = 1_000
SILENT_S: Final = 86_400  # after which a queue manager may be known elsewhere
ELSEWHERE: Final = "pinned-elsewhere"
NO_ROOM: Final = "pins-exhausted"
HTTP: Final = "http:"  # begins the names of those that came over HTTP


class KnownSenders:
    """`keep` makes durable what was learned; None: it is forgotten."""

    def __init__(
        self,
        pin: Pin,
        configured: Mapping[str, str],
        learned: Mapping[str, str],
        keep: Callable[[str, str | None], None],
        started: float = 0.0,
    ) -> None:
        self.pin = pin
        self._configured = {
            name.lower(): host for name, host in configured.items() if _is_address(host)
        }
        self._learned: dict[str, str] = {}
        self._at: dict[str, OrderedDict[str, None]] = {}  # names, the longest silent first
        self._ranks = Ranks()  # how many are known there
        for name, address in learned.items():
            self._add(name, address)
        self._keep = keep
        self._started = started
        self._heard: dict[str, float] = {}  # when, by those that have spoken since the start
        self._claims: dict[str, tuple[str, int]] = {}  # address, messages without a verdict

    def __len__(self) -> int:
        return len(self._learned)

    def address(self, name: str) -> str:
        """Where it is known; empty if it is not."""
        return self._configured.get(name.removeprefix(HTTP)) or self._learned.get(name, "")

    def is_elsewhere(self, name: str, address: str) -> bool:
        """It is known, at another address than this one."""
        return self.address(name) not in ("", address)

    def why_barred(self, name: str, address: str) -> str:
        """The reason why nothing is taken of it there, or nothing."""
        if self.pin != "enforce":
            return ""
        known = self.address(name)
        if not known and name in self._claims:
            known = self._claims[name][0]
        if known:
            return ELSEWHERE if known != address else ""
        return "" if self._has_room(address) else NO_ROOM

    def claim(self, name: str, address: str, messages: int) -> None:
        """So many messages of it wait for their verdict; less, if negative. Meanwhile another
        address cannot become the one where it is known."""
        if self.pin == "enforce":
            first, count = self._claims.pop(name, (address, 0))
            if count + messages > 0:
                self._claims[name] = first, count + messages

    def heard(self, name: str, address: str, now: float) -> None:
        """A message of it was accepted from there."""
        known = self._learned.get(name)
        if known == address:
            self._at[neighbourhood(address)].move_to_end(name)
        else:
            if known is not None and not self._may_move(name, now):
                return
            if not self._make_room(known, address):
                return
            if known is not None:
                self._remove(name, known)
            self._add(name, address)
            self._keep(name, address)
        self._heard[name] = now

    def _may_move(self, name: str, now: float) -> bool:
        """So that who takes the GUID of another that is silent just now gets none of its acks."""
        if self.pin == "enforce":
            return False
        return self.pin == "off" or now - self._heard.get(name, self._started) > SILENT_S

    def _has_room(self, address: str) -> bool:
        """For one more there. In a full book the address that has most gives way to others."""
        own = self._ranks[neighbourhood(address)]
        if own >= MOST_OF_ADDRESS:
            return False
        return len(self._learned) < MOST or self._ranks.most > own + 1

    def _make_room(self, known: str | None, address: str) -> bool:
        if known is not None:  # it moves: its place becomes free
            return self._ranks[neighbourhood(address)] < MOST_OF_ADDRESS
        if not self._has_room(address):
            return False
        if len(self._learned) >= MOST:
            silent = next(iter(self._at[self._ranks.heaviest()]))
            self._remove(silent, self._learned[silent])
            self._heard.pop(silent, None)
            self._keep(silent, None)
        return True

    def _add(self, name: str, address: str) -> None:
        self._learned[name] = address
        unit = neighbourhood(address)
        self._at.setdefault(unit, OrderedDict())[name] = None
        self._ranks.change(unit, 1)

    def _remove(self, name: str, address: str) -> None:
        del self._learned[name]
        unit = neighbourhood(address)
        del self._at[unit][name]
        if not self._at[unit]:
            del self._at[unit]
        self._ranks.change(unit, -1)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
