"""What Kafka keeps of effects: for each record the last thing that became of it.

An arrival needs no entry, the record says it all. A fate is a state entry of its own under the
record's key, so a compacted topic keeps the last one. Rows and fates can be read in any order: a
shelf is what the records say, each with its fate applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Self

import msgspec

from bridge.core.retained.effects import Effect, Removal
from bridge.core.retained.rows import RecordAt, Row
from bridge.wire.cursor import well_formed

PREFIX: Final = "retained/"


class Fate(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """Gone for a reason, or where it is now and what it went through."""

    reason: int = 0  # a message class: it is gone
    queue: bytes = b""  # names may hold half a surrogate pair, which msgpack's text may not
    lookup_id: int = 0
    aborts: int = 0
    moves: int = 0
    moved_at: int = 0

    @classmethod
    def of(cls, row: Row) -> Self:
        name = row.queue.encode("utf-8", "surrogatepass")
        return cls(0, name, row.lookup_id, row.aborts, row.moves, row.moved_at)

    @property
    def is_gone(self) -> bool:
        return self.reason != 0

    def applied_to(self, row: Row) -> Row | None:
        """The row that it makes of the one that arrived; None: it is gone."""
        if self.is_gone:
            return None
        return msgspec.structs.replace(
            row,
            queue=well_formed(self.queue.decode("utf-8", "surrogatepass")),
            lookup_id=self.lookup_id,
            aborts=self.aborts,
            moves=self.moves,
            moved_at=self.moved_at,
        )

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


class Fated(msgspec.Struct, frozen=True, gc=False):
    """The fate of one record."""

    at: RecordAt
    fate: Fate

    @property
    def key(self) -> str:
        """Of its entry in the state topic."""
        return f"{PREFIX}{self.at.topic}/{self.at.partition}/{self.at.offset}"


def fates_of(effects: Iterable[Effect]) -> Iterator[Fated]:
    for effect in effects:
        if isinstance(effect, Removal):
            yield Fated(effect.row.at, Fate(effect.reason))
        else:
            yield Fated(effect.row.at, Fate.of(effect.to))


def read_fate(key: str, value: bytes) -> Fated:
    topic, partition, offset = key.removeprefix(PREFIX).split("/")
    return Fated(RecordAt(topic, int(partition), int(offset)), _decode(value))


_decode: Final = msgspec.msgpack.Decoder(Fate).decode
