"""Records for commits that repeat a message: in order, within bounds, whatever Kafka does."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

import pytest

from bridge.adapters.kafka.held_reader import RecordLost
from bridge.adapters.retained import fetching as module
from bridge.adapters.retained.fetching import Fetching
from bridge.core.ports import Record
from bridge.core.retained.effects import Commit, Copy, Removal
from bridge.core.retained.rows import RecordAt
from bridge.model.classes import MessageClass
from bridge.model.errors import SinkUnavailable
from tests.core.retained.world import row
from tests.support.waiting import until

TICKETS = count(1)


def commit(*numbers: int, size: int = 100, copied: bool = True) -> Commit:
    copy = Copy("system$;deadletter", 1, 0) if copied else None
    effects = [Removal(row(n, size=size), MessageClass.ACK_RECEIVE, copy=copy) for n in numbers]
    return Commit(next(TICKETS), tuple(effects))


class World:
    def __init__(self) -> None:
        self.faults: list[Exception] = []
        self.lost: set[int] = set()
        self.added: list[tuple[Commit, list[int]]] = []
        self.fetching = Fetching(self._read, self._add)

    async def _read(self, places: Iterable[RecordAt]) -> dict[RecordAt, Record]:
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop(0)
        found = {}
        for at in places:
            if at.offset in self.lost:
                raise RecordLost(at)
            found[at] = Record(at.topic, b"%d" % at.offset)
        return found

    def _add(self, made: Commit, records: object) -> None:
        assert isinstance(records, dict)
        self.added.append((made, sorted(at.offset for at in records)))

    def play(
        self, *commits: Commit, most: int, settled: Commit | None = None
    ) -> list[tuple[Commit, list[int]]]:
        """Until so many were added, no more; then one is settled, and one more is added."""

        async def run() -> None:
            task = asyncio.create_task(self.fetching.run())
            for made in commits:
                self.fetching.take(made)
            await until(lambda: len(self.added) >= most)
            for _ in range(20):  # it would go on, if it could
                await asyncio.sleep(0)
            assert len(self.added) == most
            if settled is not None:
                self.fetching.settled(settled)
                await until(lambda: len(self.added) == most + 1)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        asyncio.run(run())
        return self.added


def test_in_the_order_they_came() -> None:
    first, second = commit(1, 2), commit(3)
    assert World().play(first, second, most=2) == [(first, [1, 2]), (second, [3])]


def test_one_that_needs_no_record_does_not_wait() -> None:
    large, small = commit(1), commit(2, copied=False)
    assert World().play(large, small, most=2) == [(small, []), (large, [1])]


def test_kafka_away(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    world, made = World(), commit(1)
    world.faults = [SinkUnavailable("Kafka: away")] * 3
    assert world.play(made, most=1) == [(made, [1])]
    assert caplog.text.count("Kafka: away; trying again") == 3


def test_what_is_lost_does_not_hold_up_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    world, made = World(), commit(1, 2, 3)
    world.lost = {1, 3}
    assert world.play(made, most=1) == [(made, [2])]
    assert "data-0 has no record 3 any more" in caplog.text


def test_no_more_in_memory_than_there_is_room_for() -> None:
    """4 MiB each: what was fetched must be settled before more is."""
    world, size = World(), module.ROOM // 4
    commits = [commit(n, size=size) for n in range(1, 10)]
    assert len(world.play(*commits, most=4, settled=commits[0])) == 5


def test_one_that_is_larger_than_the_room_goes_alone() -> None:
    world = World()
    large, other = commit(1, size=module.ROOM * 2), commit(2)
    assert world.play(large, other, most=1, settled=large) == [(large, [1]), (other, [2])]
