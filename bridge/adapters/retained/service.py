"""The retained queues of a running appliance: the pure ones, their shelf, and Kafka around them.

Arrivals come from the follower, once they are committed. What leaves goes into a unit of the
keeper's shard as a `Departure`, and nobody is told before that unit is committed. The shelf is a
SQLite file: lost, old or broken, it is made from Kafka again, from the fronts on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka.held_follower import Batch, HeldFollower
from bridge.adapters.kafka.held_reader import HeldReader
from bridge.adapters.retained.departure import Departure, Unit
from bridge.adapters.store.retained_view import RetainedView, ViewLost, throw_away
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.ports import Record
from bridge.core.receipts import Receipts
from bridge.core.retained.effects import Command, Commit, Delivered, Ended, Removal
from bridge.core.retained.flights import Ids
from bridge.core.retained.fronts import Partition
from bridge.core.retained.keeping import Keeper
from bridge.core.retained.naming import DEADLETTER, is_system, parent_of
from bridge.core.retained.queues import Traits
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.core.retained.rows import RecordAt, Row
from bridge.model.errors import SinkUnavailable
from bridge.model.guid import Guid
from bridge.protocol.events import Instant

TOPIC: Final = "retained-topic/"  # state entries: topics to follow that no mapping names
SAVE_S: Final = 0.25
LOOK_S: Final = 1.0
RETRY_S: Final = 5.0
_log = logging.getLogger(__name__)

Answer = Delivered | Ended


def now() -> Instant:
    return Instant(time.monotonic(), time.time())


class RetainedService:
    def __init__(
        self,
        file: Path,
        settings: Mapping[str, Any],
        keeper: ShardPump,
        receipts: Receipts,
        ids: Ids,
        catalogue: Callable[[], Catalogue],
        *,
        prefix: str,
        deadletter: tuple[str, int],
        local: Guid,
        clock_skew_s: int = 0,
        quota_kb: int | None = None,
        release_after_s: float = 300.0,
    ) -> None:
        self._file, self._settings, self._pump = file, settings, keeper
        self._receipts, self._ids, self._catalogue = receipts, ids, catalogue
        self._prefix, self.local = prefix, local
        self._deadletter, self._deadletters = deadletter
        self._skew, self._quota_kb, self._release_after_s = clock_skew_s, quota_kb, release_after_s
        self._answers: dict[tuple[int, int], asyncio.Future[Answer]] = {}
        self._settling: dict[int, asyncio.Future[None]] = {}
        self._fetching: set[asyncio.Task[None]] = set()
        self._ended: set[Partition] = set()
        self._followed: set[Partition] = set()
        self._caught_up = asyncio.Event()
        self._is_live = False
        self._positions: dict[Partition, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._journals: dict[str, str] = {}  # topics, by queue
        self.reader = HeldReader(settings, f"{prefix}-held-reader")
        self._open()

    # -- start and end ----------------------------------------------------------------------

    def _open(self) -> None:
        """A shelf as of its last position, with all that has left since."""
        identity = f"{self.local}/{self._prefix}"
        try:
            self.view = RetainedView(self._file, identity)
            self._bring_up_to_date()
        except ViewLost as error:
            _log.warning("%s; it is made anew from Kafka", error)
            throw_away(self._file)
            self.view = RetainedView(self._file, identity)
            self._bring_up_to_date()
        self.queues = RetainedQueues(
            self.view,
            self._ids,
            release_after_s=self._release_after_s,
            machine_quota_kb=self._quota_kb,
        )
        self.keeper = Keeper(self.queues.quotas, self._ids, self.local)
        self._unit = Unit(self._front_of)
        self.define()

    def _bring_up_to_date(self) -> None:
        fronts = self._pump.shard.fronts
        for (topic, partition), front in fronts:
            self.view.trim(topic, partition, front)
        self.view.replay(fronts.fates())
        self.view.commit(dict(fronts))

    async def start(self) -> None:
        """Until the shelf has all that is committed now."""
        self._follower = HeldFollower(
            self._settings, f"{self._prefix}-held", self.local, self._skew, self._take
        )
        self._follower.start()
        self._follow()
        if self._followed:
            await self._caught_up.wait()
        self._is_live = True
        self.define()  # subqueues are there as long as they hold messages
        self._define_strays()

    async def run(self) -> None:
        """Forever: new topics, and the shelf on disk. Messages leave from now on, so whoever
        hands out acks must be there."""
        self._tick()
        looked = time.monotonic()
        while True:
            await asyncio.sleep(SAVE_S)
            self._save()
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                self.define()
                self._follow()

    def stop(self) -> None:
        """Blocks a little; the loop must still turn."""
        if self._timer is not None:
            self._timer.cancel()
        self._follower.stop()
        self.reader.stop()
        self._save()
        self.view.close()

    def _save(self) -> None:
        self.view.commit(self._positions)

    # -- queues and their topics ------------------------------------------------------------

    def define(self) -> None:
        """All queues that the catalogue knows by now."""
        for queue in self._catalogue().known():
            self._define(queue)

    def _define(self, queue: Queue) -> None:
        """Its journal's topic stays known as long as messages may be copied there.

        One that is still being deleted is made again later."""
        if self._is_going(queue.name.lower()):
            return
        self.queues.define(queue.name, traits_of(queue))
        if queue.journal:
            self._journals[queue.name.lower()] = queue.journal

    def _is_going(self, name: str) -> bool:
        known = self.queues.queue(name)
        return known is not None and known.is_deleted

    def _define_strays(self) -> None:
        for name in self.queues.strays():
            _log.warning("%s holds messages, but no mapping has it: it can be read or purged", name)
            self.queues.define(name, Traits())

    def _mapped_topics(self) -> dict[str, int]:
        found = {self._deadletter: self._deadletters}
        for queue in self._catalogue().known():
            if queue.retains and queue.topic:
                found[queue.topic] = queue.partitions
            if queue.journal:
                found[queue.journal] = queue.journal_partitions
        return found

    def _topics(self) -> dict[str, int]:
        """Those to follow, and their partitions; some belong to queues that no mapping has now."""
        found = self._mapped_topics()
        for key in self._pump.shard.kept:
            if key.startswith(TOPIC):
                topic, _, partitions = key.removeprefix(TOPIC).rpartition("/")
                found.setdefault(topic, int(partitions))
        return found

    def _follow(self) -> None:
        fronts, positions = dict(self._pump.shard.fronts), self.view.positions()
        places: dict[Partition, int] = {}
        for topic, partitions in self._topics().items():
            for number in range(partitions):
                at = topic, number
                if at not in self._followed:
                    places[at] = max(positions.get(at, 0), fronts.get(at, 0))
            if f"{TOPIC}{topic}/{partitions}" not in self._pump.shard.kept and partitions:
                self._pump.put(f"{TOPIC}{topic}/{partitions}", b"1")
        self._follower.spare = frozenset(self._topics()) - self._mapped_topics().keys()
        if places:
            self._followed |= set(places)
            self._follower.follow(places)

    def where(self, queue: str) -> tuple[str, int | None]:
        """The topic for copies of a journal or of the dead letters."""
        if queue == DEADLETTER:
            return self._deadletter, None
        return self._journals[parent_of(queue)], None

    # -- arrivals ---------------------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
        self._positions |= batch.positions
        if not self._is_live:
            self.view.replay(batch.rows)
            self._ended |= batch.ended
            if self._followed <= self._ended:
                self._save()
                self._caught_up.set()
            return
        self._define_new(batch.rows)
        self.keeper.arrived(batch.rows)
        self._carry_out(self.queues.arrive(batch.rows, now()))
        self._arm()

    def _define_new(self, rows: Iterable[Row]) -> None:
        for name in {parent_of(row.queue) for row in rows if not is_system(row.queue)}:
            queue = self._catalogue().by_path(name)
            if queue is not None:
                self._define(queue)
            elif self.queues.queue(name) is None:
                self.queues.define(name, Traits())

    # -- commands of the queues -------------------------------------------------------------

    def expect(self, handle: int, tag: int) -> asyncio.Future[Answer]:
        """The answer of a read that is about to be asked for."""
        future = asyncio.get_running_loop().create_future()
        self._answers[handle, tag] = future
        return future

    def carry_out(self, commands: Sequence[Command]) -> list[asyncio.Future[None]]:
        """What a call brought about; the futures end when its commits are in Kafka."""
        futures = self._carry_out(commands)
        self._arm()
        return futures

    def _carry_out(self, commands: Sequence[Command]) -> list[asyncio.Future[None]]:
        futures = []
        for command in commands:
            if isinstance(command, Commit):
                futures.append(self._commit(command))
            else:
                future = self._answers.pop((command.handle, command.tag), None)
                if future is not None and not future.done():
                    future.set_result(command)
        return futures

    def _commit(self, commit: Commit) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settling[commit.ticket] = future
        wanted = [
            effect.row.at
            for effect in commit.effects
            if isinstance(effect, Removal) and effect.needs_record
        ]
        if wanted:
            task = asyncio.create_task(self._fetch_and_add(commit, wanted))
            self._fetching.add(task)
            task.add_done_callback(self._fetching.discard)
        else:
            self._add(commit, {})
        return future

    async def _fetch_and_add(self, commit: Commit, wanted: Sequence[RecordAt]) -> None:
        while True:
            try:
                self._add(commit, await self.reader.read(wanted))
                return
            except SinkUnavailable as error:
                _log.warning("%s; trying again", error)
                await asyncio.sleep(RETRY_S)

    def _add(self, commit: Commit, records: Mapping[RecordAt, Record]) -> None:
        self._pump.add(
            Departure(commit, records, self._receipts, self.where, self._unit, self._settled)
        )

    def _settled(self, ticket: int) -> None:
        self._carry_out(self.queues.settle(ticket, now()))
        future = self._settling.pop(ticket)
        if not future.done():
            future.set_result(None)
        self._arm()

    def _front_of(self, partition: Partition, leaving: set[int]) -> int:
        """The first record that waits; without any, where the follower is."""
        first = self.view.first_offset(*partition, leaving)
        return self._positions.get(partition, 0) if first is None else first

    # -- time -------------------------------------------------------------------------------

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self.queues.next_wakeup(now())
        self._timer = None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._carry_out(self.queues.tick(now()))
        self._arm()


def traits_of(queue: Queue) -> Traits:
    mapping = queue.mapping
    return Traits(
        transactional=mapping.transactional,
        journaling=bool(queue.journal) and queue.retains,
        quota_kb=mapping.quota_kb if queue.retains else None,
        journal_quota_kb=mapping.journal_quota_kb if queue.retains else None,
    )
