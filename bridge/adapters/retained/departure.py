"""Messages that leave a retained queue, on their way into a unit of a shard."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from bridge.core.ports import Record
from bridge.core.receipts import Receipts
from bridge.core.retained.effects import Commit, Removal
from bridge.core.retained.fronts import Fronts, Partition
from bridge.core.retained.leaving import Where, leave
from bridge.core.retained.rows import RecordAt
from bridge.core.shard import Shard

_FRAME: Final = 1024  # bytes of a fate and a verdict, at most

NextOffset = Callable[[Partition, int], int | None]
Position = Callable[[Partition], int]


class Unit:
    """What leaves with the unit that fills: it still lies on the shelf, but counts as gone."""

    def __init__(self, next_offset: NextOffset, position: Position) -> None:
        """`next_offset` tells which record waits behind an offset; `position`, how far Kafka was
        read: all that waits before it is on the shelf."""
        self._next_offset, self._position = next_offset, position
        self._number = -1
        self._fronts: Fronts | None = None
        self._leaving: dict[Partition, set[int]] = {}
        self._passed: dict[Partition, int] = {}  # nothing up to here stays

    def fronts(self, commit: Commit, shard: Shard) -> dict[Partition, int]:
        """Where the partitions of this commit begin once it is done."""
        if shard.unit_number != self._number or shard.fronts is not self._fronts:
            # The one before is settled, or the shard was restored and it never was.
            self._number, self._fronts = shard.unit_number, shard.fronts
            self._leaving, self._passed = {}, {}
        touched: set[Partition] = set()
        for effect in commit.effects:
            if isinstance(effect, Removal):
                at = effect.row.at
                touched.add((at.topic, at.partition))
                self._leaving.setdefault((at.topic, at.partition), set()).add(at.offset)
        return {partition: self._front(partition) for partition in touched}

    def _front(self, partition: Partition) -> int:
        """The first record that stays; without any, how far Kafka was read."""
        leaving, passed = self._leaving[partition], self._passed.get(partition, -1)
        offset = self._next_offset(partition, passed)
        while offset is not None and offset in leaving:
            passed = self._passed[partition] = offset
            offset = self._next_offset(partition, passed)
        return self._position(partition) if offset is None else offset


class Departure:
    """A `Task`: one commit of the retained queues."""

    def __init__(
        self,
        commit: Commit,
        records: Mapping[RecordAt, Record],
        receipts: Receipts,
        where: Where,
        unit: Unit,
        done: Callable[[Commit], None],
    ) -> None:
        self._commit, self._records = commit, records
        self._receipts, self._where, self._unit, self._done = receipts, where, unit, done

    @property
    def size(self) -> int:
        bodies = sum(len(record.value) for record in self._records.values())
        return bodies + _FRAME * len(self._commit.effects)

    def fill(self, shard: Shard) -> None:
        now_ms = int(time.time() * 1000)
        leaving = leave(self._commit.effects, self._records, self._receipts, self._where, now_ms)
        shard.leave(leaving, self._unit.fronts(self._commit, shard))

    def settled(self) -> None:
        self._done(self._commit)
