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


def peer_entry(host: str | None) -> bytes | None:
    """None removes the entry."""
    return None if host is None else msgspec.json.encode(Peer(host))


class SequentialIds:
    """Ids in blocks: the mark in Kafka is always ahead of what was given out.

    The mark is committed by one shard. What that shard commits comes with the mark or after it; all
    others decide on nothing while ids are short, or theirs could be committed before it."""

    def __init__(
        self,
        mark: bytes | None,
        reserve: Callable[[bytes], None],
        is_settled: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_settled`: Kafka has the last mark that was given to `reserve`."""
        self._next = 1 if mark is None else int(msgspec.json.decode(mark))
        self._limit = self._safe = self._next
        self._reserve, self._is_settled = reserve, is_settled
        self._extend()

    @property
    def is_short(self) -> bool:
        """Less than a quarter of a block is left below the mark that Kafka has."""
        if self._is_near(self._safe) and self._is_settled():
            self._safe = self._limit
        return self._is_near(self._safe)

    def _is_near(self, limit: int) -> bool:
        return self._next > limit - BLOCK // 4

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
