"""Association groups: the connections of one client process. They belong to our whole process.

Context handles live as long as their group has a connection. MS-RPCE 3.3.1.5.7, 3.3.3.7.1
"""

from __future__ import annotations

from collections.abc import Callable


class AssociationGroups:
    """`random`: a number below 2**32 that nobody can guess."""

    def __init__(self, random: Callable[[], int]) -> None:
        self._random = random
        self._groups: dict[int, tuple[str, int]] = {}  # client address, connections

    def create(self, peer: str) -> int:
        while (group := self._random()) == 0 or group in self._groups:
            pass
        self._groups[group] = (peer, 1)
        return group

    def join(self, group: int, peer: str) -> bool:
        """False for a group that does not exist, or is another client's. RR-5"""
        owner, connections = self._groups.get(group, ("", 0))
        if not connections or owner != peer:
            return False
        self._groups[group] = (peer, connections + 1)
        return True

    def leave(self, group: int) -> bool:
        """True if it was the last connection: run its handles down."""
        peer, connections = self._groups[group]
        if connections > 1:
            self._groups[group] = (peer, connections - 1)
            return False
        del self._groups[group]
        return True

    def __len__(self) -> int:
        return len(self._groups)
