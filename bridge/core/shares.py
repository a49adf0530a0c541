"""Bytes that peers make us keep, counted by peer, and whether one of them may add more.

A peer has a bound of its own. Above the bound of all, a peer may add as long as it has less than an
equal share, up to twice that bound: so one peer, or a few, cannot shut out the others.
"""

from __future__ import annotations

from bridge.model.hosts import neighbourhood


class Shares:
    def __init__(self, most: int, most_of_peer: int) -> None:
        self._most, self._most_of_peer = most, most_of_peer
        self.total = 0
        self.of_peer: dict[str, int] = {}  # IPv6 addresses by their /64

    def has_room(self, peer: str, size: int) -> bool:
        used = self.of_peer.get(neighbourhood(peer), 0) + size
        if used > self._most_of_peer or self.total > 2 * self._most:
            return False
        return self.total <= self._most or used <= self._most // (len(self.of_peer) + 1)

    def count(self, peer: str, size: int) -> None:
        """`peer` keeps so many bytes more; less, if `size` is negative."""
        peer = neighbourhood(peer)
        self.total += size
        left = self.of_peer.get(peer, 0) + size
        if left > 0:
            self.of_peer[peer] = left
        else:
            self.of_peer.pop(peer, None)
