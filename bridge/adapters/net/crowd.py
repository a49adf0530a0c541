"""Connections by address, and which one gives way when there are too many.

One `Crowd` for each protocol, one `Hall` for all of them, because they share the file descriptors.
A connection is a stranger until its handshake is done. IPv6 addresses count by their /64.

- An address at its cap: its oldest stranger goes, else its idlest session, else the newcomer.
- Too many strangers: the oldest one of the address that has the most strangers goes.
- Too many connections in all: the address with the most connections gives way, its oldest stranger
  first, then its idlest session, then the session it used longest ago. Where no address has more
  than `FEW`, the oldest stranger goes, else the idlest session, of the protocol that has the most;
  and only then a busy session of an address that has more than the newcomer's.

So one address cannot lock out the others. Every choice takes the same time, however many there are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

from bridge.adapters.net.files import most_connections
from bridge.core.ranks import Ranks
from bridge.model.hosts import neighbourhood

LOOK: Final = 64  # sessions, those used longest ago, that are asked whether they are idle
FEW: Final = 16  # connections


class Guest(Protocol):
    """A connection, as a crowd sees it."""

    @property
    def is_idle(self) -> bool:
        """Nothing is unacknowledged, unfinished or under way."""

    def give_way(self) -> None:
        """Close, without waiting for the peer."""

    def __hash__(self) -> int: ...


G = TypeVar("G", bound=Guest)


class _Place(Generic[G]):
    """The connections of one address."""

    __slots__ = ("sessions", "strangers")

    def __init__(self) -> None:
        self.strangers: OrderedDict[G, None] = OrderedDict()  # the oldest first
        self.sessions: OrderedDict[G, None] = OrderedDict()  # the one used longest ago first


class Crowd(Generic[G]):
    """The connections of one protocol. `forces`: busy ones may be closed for other addresses."""

    def __init__(
        self,
        hall: Hall | None = None,
        *,
        per_address: int,
        strangers: int,
        most: int | None = None,
        forces: bool = True,
    ) -> None:
        self.per_address, self.most_strangers, self.most = per_address, strangers, most
        self.forces = forces
        self.others = 0  # connections that we opened: nobody closes them for a newcomer
        self.weights, self._stranger_weights = Ranks(), Ranks()
        self._places: dict[str, _Place[G]] = {}
        self._addresses: dict[G, str] = {}
        self._strangers: OrderedDict[G, None] = OrderedDict()  # as in a place
        self._sessions: OrderedDict[G, None] = OrderedDict()
        self._hall = hall or Hall()
        self._hall.crowds.append(self)

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def addresses(self) -> int:
        return len(self._places)

    # -- what happens to a connection -------------------------------------------------------

    def arrive(self, guest: G, host: str) -> bool:
        """Whether it may stay; another one may have to give way for it."""
        address = neighbourhood(host)
        self._addresses[guest] = address
        self._places.setdefault(address, _Place()).strangers[guest] = None
        self._strangers[guest] = None
        self.weights.change(address, 1)
        self._stranger_weights.change(address, 1)
        stays = self._fits_address(guest, address) and self._fits_strangers(guest)
        stays = stays and self._fits(guest, self.is_full, [self])
        stays = stays and self._fits(guest, self._hall.is_full, self._hall.crowds)
        if not stays:
            self.leave(guest)
        return stays

    def opened(self, guest: G) -> None:
        """Its handshake is done."""
        address = self._addresses.get(guest)
        if address is not None and guest in self._strangers:
            self._forget_stranger(guest, address)
            self._places[address].sessions[guest] = None
            self._sessions[guest] = None

    def used(self, guest: G) -> None:
        """It brought something just now."""
        if guest in self._sessions:
            self._sessions.move_to_end(guest)
            self._places[self._addresses[guest]].sessions.move_to_end(guest)

    def leave(self, guest: G) -> None:
        """It is gone; may be said twice."""
        address = self._addresses.pop(guest, None)
        if address is None:
            return
        if guest in self._strangers:
            self._forget_stranger(guest, address)
        self._sessions.pop(guest, None)
        self._places[address].sessions.pop(guest, None)
        self.weights.change(address, -1)
        if not self.weights[address]:
            del self._places[address]

    def _forget_stranger(self, guest: G, address: str) -> None:
        del self._strangers[guest]
        del self._places[address].strangers[guest]
        self._stranger_weights.change(address, -1)

    # -- the rules --------------------------------------------------------------------------

    def is_full(self) -> bool:
        return self.most is not None and len(self) > self.most

    def _fits_address(self, guest: G, address: str) -> bool:
        return self.weights[address] <= self.per_address or self._make_room(address, guest)

    def _fits_strangers(self, guest: G) -> bool:
        if len(self._strangers) <= self.most_strangers:
            return True
        oldest = next(iter(self._places[self._stranger_weights.heaviest()].strangers))
        return oldest is not guest and self._evict(oldest)

    def _fits(self, guest: G, is_full: Callable[[], bool], crowds: Iterable[Crowd[G]]) -> bool:
        if not is_full():
            return True
        own = self.weights[self._addresses[guest]]
        heavy = max(crowds, key=lambda crowd: crowd.weights.most)
        most = heavy.weights.most
        crowds = sorted(crowds, key=len, reverse=True)
        return (
            (most > max(own, FEW) and heavy.give())
            or (own > FEW and self._make_room(self._addresses[guest], guest))
            or any(crowd.give_stranger(guest) for crowd in crowds)
            or any(crowd.give_idle() for crowd in crowds)
            or (most > own and heavy.give())
        )

    def give(self) -> bool:
        """The address with the most connections loses one."""
        address = self.weights.heaviest()
        if self._make_room(address, None):
            return True
        return self.forces and self._evict(next(iter(self._places[address].sessions)))

    def give_stranger(self, newcomer: Guest) -> bool:
        """The oldest one of all addresses."""
        return any(self._evict(one) for one in _first_but(self._strangers, newcomer))

    def give_idle(self) -> bool:
        """The idlest session of all addresses."""
        return self._evict_idle(self._sessions)

    def _make_room(self, address: str, newcomer: G | None) -> bool:
        place = self._places[address]
        for guest in _first_but(place.strangers, newcomer):
            return self._evict(guest)
        return self._evict_idle(place.sessions)

    def _evict_idle(self, sessions: Iterable[G]) -> bool:
        for guest in islice(sessions, LOOK):
            if guest.is_idle:
                return self._evict(guest)
        return False

    def _evict(self, guest: G) -> bool:
        self.leave(guest)
        guest.give_way()
        return True


class Hall:
    """All crowds of the process; `most` connections is what the file descriptors allow."""

    def __init__(self, most: Callable[[], int] = most_connections) -> None:
        self._most = most
        self.crowds: list[Crowd[Any]] = []

    def is_full(self) -> bool:
        return sum(len(crowd) + crowd.others for crowd in self.crowds) > self._most()


def _first_but(guests: Iterable[G], newcomer: Guest | None) -> list[G]:
    """At most one."""
    return [guest for guest in islice(guests, 2) if guest is not newcomer][:1]
