"""Messages that leave a retained queue, on their way into a unit of a shard."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from bridge.core.ports import Record
from bridge.core.receipts import Receipts
from bridge.core.retained.effects import Commit, Removal
from bridge.core.retained.fronts import Partition
from bridge.core.retained.leaving import Where, leave
from bridge.core.retained.rows import RecordAt
from bridge.core.shard import Shard

_FRAME: Final = 1024  # bytes of a fate and a verdict, at most


class Unit:
    """What leaves with the unit that fills: it still lies on the shelf, but counts as gone."""

    def __init__(self, front_of: Callable[[Partition, set[int]], int]) -> None:
        """`front_of` tells the first offset that waits in a partition, but for those given."""
        self._front_of = front_of
        self._number = -1
        self._leaving: dict[Partition, set[int]] = {}

    def fronts(self, commit: Commit, unit: int) -> dict[Partition, int]:
        """Where the partitions of this commit begin once it is done."""
        if unit != self._number:  # the one before is settled, or never was
            self._number, self._leaving = unit, {}
        touched: set[Partition] = set()
        for effect in commit.effects:
            if isinstance(effect, Removal):
                at = effect.row.at
                touched.add((at.topic, at.partition))
                self._leaving.setdefault((at.topic, at.partition), set()).add(at.offset)
        return {
            partition: self._front_of(partition, self._leaving[partition]) for partition in touched
        }


class Departure:
    """A `Task`: one commit of the retained queues."""

    def __init__(
        self,
        commit: Commit,
        records: Mapping[RecordAt, Record],
        receipts: Receipts,
        where: Where,
        unit: Unit,
        done: Callable[[int], None],
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
        shard.leave(leaving, self._unit.fronts(self._commit, shard.unit_number))

    def settled(self) -> None:
        self._done(self._commit.ticket)
