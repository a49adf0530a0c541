"""Who we are, whom we know, and the numbers of the messages that we make ourselves. DM-1"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from bridge.model.guid import Guid

IDENTITY_KEY: Final = "identity"
ORDINALS_KEY: Final = "ordinals"
SEQUENTIAL_KEY: Final = "sequential"  # MS-MQDMPR 3.1.1.1, SequentialID
PEER: Final = "peer/"
BLOCK: Final = 1 << 18  # half of it covers the acks of any one unit
_MASK: Final = 0xFFFFFFFF  # an ordinal is 32 bits and may wrap (data-model.md 2.13)


class Identity(msgspec.Struct, frozen=True):
    id: str


def known_identity(kept: dict[str, bytes]) -> Guid | None:
    """The GUID that an earlier run left in Kafka."""
    data = kept.get(IDENTITY_KEY)
    return None if data is None else Guid.parse(msgspec.json.decode(data, type=Identity).id)


def identity_entry(local: Guid) -> bytes:
    return msgspec.json.encode(Identity(str(local)))


class Peer(msgspec.Struct, frozen=True):
    host: str


def known_peers(kept: dict[str, bytes]) -> dict[str, str]:
    """GUID -> the address that queue manager was last seen at."""
    return {
        key.removeprefix(PEER): msgspec.json.decode(value, type=Peer).host
        for key, value in kept.items()
        if key.startswith(PEER)
    }


def peer_entry(host: str) -> bytes:
    return msgspec.json.encode(Peer(host))


class SequentialIds:
    """Ids in blocks: the mark in Kafka is always ahead of what was given out."""

    def __init__(self, mark: bytes | None, reserve: Callable[[bytes], None]) -> None:
        self._next = 1 if mark is None else int(msgspec.json.decode(mark))
        self._limit = self._next
        self._reserve = reserve
        self._extend()

    def _extend(self) -> None:
        self._limit += BLOCK
        self._reserve(msgspec.json.encode(self._limit))

    def __call__(self) -> int:
        """The next one. The following block is asked for while half of this one is left."""
        given, self._next = self._next, self._next + 1
        if self._limit - self._next <= BLOCK // 2:
            self._extend()
        return given


class Ordinals(SequentialIds):
    """Of the messages that we make."""

    def __call__(self) -> int:
        return super().__call__() & _MASK or self()
