"""Lookup identifiers as a server knows them. RR-55

Readers are told the low 56 bits and rebuild the top byte from the priority. Whether a server wants
it (T-1: the specification contradicts itself) shows when it does not find what must be there.
"""

from __future__ import annotations

from bridge.protocol.rpc.reader.packets import LOW


class Spelling:
    """Of one host; jobs on it share what one of them has found out."""

    def __init__(self) -> None:
        self.is_low = False

    def of(self, lookup_id: int) -> int:
        return lookup_id & LOW if self.is_low else lookup_id

    @property
    def other(self) -> Spelling:
        made = Spelling()
        made.is_low = not self.is_low
        return made

    def turn(self) -> None:
        """The other one was right."""
        self.is_low = not self.is_low
