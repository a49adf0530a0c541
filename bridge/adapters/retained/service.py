"""The retained queues of a running appliance: the pure ones, their shelf, and Kafka around them.

Arrivals come from the follower, once they are committed. What leaves goes into a unit of the
keeper's shard as a `Departure`, and nobody is told before that unit is committed. The shelf is a
SQLite file: lost, old or broken, it is made from Kafka again, from the fronts on. If it breaks
while we run, we stop: nothing is saved any more, and the next start makes it anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bridge.adapters.intake import ShardPump
from bridge.adapters.kafka.beginnings import Beginnings
from bridge.adapters.kafka.held_follower import Batch, HeldFollower
from bridge.adapters.kafka.held_reader import HeldReader
from bridge.adapters.retained.departure import Departure, Unit
from bridge.adapters.retained.fetching import Fetching
from bridge.adapters.store.retained_view import RetainedView, ViewLost, throw_away
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.ports import Record
from bridge.core.receipts import Receipts
from bridge.core.retained.effects import Command, Commit, Delivered, Ended, Removal
from bridge.core.retained.errors import Refused, Status
from bridge.core.retained.flights import Ids
from bridge.core.retained.fronts import Partition
from bridge.core.retained.keeping import Keeper
from bridge.core.retained.naming import DEADLETTER, is_system, parent_of
from bridge.core.retained.queues import Traits
from bridge.core.retained.retained_queues import EXPIRED_AT_ONCE, RetainedQueues
from bridge.core.retained.rows import RecordAt, Row
from bridge.model.errors import SinkUnavailable
from bridge.model.guid import Guid
from bridge.protocol.events import Instant

TOPIC: Final = "retained-topic/"  # state entries: topics to follow that no mapping names
SAVE_S: Final = 0.25
SAVE_ROWS: Final = (
    50_000  # at the start: a crash does not begin again, and SQLite's log stays small
)
LOOK_S: Final = 1.0
MOST_FLYING: Final = 2000  # commits under way; beyond that no message grows too old for a moment
RETENTION_S: Final = 60.0  # between two looks for what Kafka's retention has deleted
REST_S: Final = 0.05
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
        cluster: str,
        clock_skew_s: int = 0,
        quota_kb: int | None = None,
        release_after_s: float = 300.0,
        removed: Callable[[str, bool], None] = lambda _reason, _is_lost: None,
    ) -> None:
        """`removed` is told of every message that has left, for the statistics."""
        self._removed = removed
        self._file, self._settings, self._pump = file, settings, keeper
        self._receipts, self._ids, self._catalogue = receipts, ids, catalogue
        self._prefix, self.local, self._cluster = prefix, local, cluster
        self._deadletter, self._deadletters = deadletter
        self._skew, self._quota_kb, self._release_after_s = clock_skew_s, quota_kb, release_after_s
        self._answers: dict[tuple[int, int], asyncio.Future[Answer]] = {}
        self._settling: dict[int, asyncio.Future[None]] = {}
        self._fault: Exception | None = None
        self._is_stopped = self._is_following = False
        self._ended: set[Partition] = set()
        self._followed: set[Partition] = set()
        self._caught_up = asyncio.Event()
        self._is_live = False
        self._unsaved = 0  # rows
        self._positions: dict[Partition, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._journals: dict[str, str] = {}  # topics, by queue
        self.reader = HeldReader(settings, f"{prefix}.held-reader")
        self._fetching = Fetching(self.reader.read, self._add)
        self._fetcher: asyncio.Task[None] | None = None
        self._beginnings = Beginnings(settings, f"{prefix}.held-beginnings")
        self._retention: asyncio.Task[None] | None = None
        self._left_out = 0  # copies without room that were told of
        self._open()

    # -- start and end ----------------------------------------------------------------------

    def _open(self) -> None:
        """A shelf as of its last position, with all that has left since."""
        identity = f"{self.local}/{self._prefix}/{self._cluster}"  # offsets mean nothing elsewhere
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
        self._unit = Unit(
            lambda at, offset: self.view.next_offset(*at, offset),
            lambda at: self._positions.get(at, 0),
        )
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
            self._settings, f"{self._prefix}.held", self.local, self._skew, self._take, self._fail
        )
        self._follow()
        self._follower.start()
        self._is_following = True
        await self._caught_up.wait()
        self._check()
        self._is_live = True
        self._fetcher = asyncio.create_task(self._fetching.run())
        self.define()  # subqueues are there as long as they hold messages
        self._define_strays()

    async def run(self) -> None:
        """Until something breaks: new topics, and the shelf on disk. Messages leave from now on,
        so whoever hands out acks must be there."""
        self._tick()
        self._retention = asyncio.create_task(self._watch_retention())
        looked = time.monotonic()
        while True:
            await asyncio.sleep(SAVE_S)
            self._check()
            self._save()
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                self.define()
                self._follow()

    def _fail(self, error: Exception) -> None:
        """The shelf may be wrong from here on: `run` ends, and nothing is saved."""
        self._fault = self._fault or error
        self._caught_up.set()

    def _check(self) -> None:
        for task in (self._fetcher, self._retention):
            if task is not None and task.done():
                task.result()
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """Blocks a little; the loop must still turn. Who waits hears that we are gone, and who
        waits for a commit that nobody can tell."""
        self._is_stopped = True
        for timer in (self._timer, self._fetcher, self._retention):
            if timer is not None:
                timer.cancel()
        waiting: list[asyncio.Future[Any]] = [*self._answers.values(), *self._settling.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(SinkUnavailable("the queue manager stops"))
                future.exception()  # nobody may be waiting
        self._follower.stop()
        self.reader.stop()
        self._beginnings.stop()
        with suppress(ViewLost):
            self._save()
            self.view.close()

    def depths(self) -> list[tuple[str, int, int]]:
        """Every queue that holds messages, with their number and size."""
        held = [(name, self.view.totals(name)) for name in self.view.queues()]
        return [(name, totals.count, totals.bytes) for name, totals in held]

    def head_seconds(self, queue: str) -> float | None:
        """How long the message that is read next has waited; None if there is none."""
        if self._is_stopped or self._fault is not None:
            return None
        rows = self.view.after(queue, -1, 1)
        return None if not rows else max(0.0, time.time() - rows[0].arrived_ms / 1000)

    @property
    def lag(self) -> int:
        """Records that are in Kafka and not yet on the shelf."""
        return self._follower.lag if self._is_following else 0

    def require_kafka(self) -> None:
        """Before a change is begun that Kafka would have to take."""
        if self._is_stopped or not self._pump.is_open:
            why = self._pump.why_closed or "the queue manager stops"
            raise SinkUnavailable(f"the queues cannot be changed now: {why}")

    def _save(self) -> None:
        if self._fault is None:
            self.view.commit(self._positions)

    # -- queues and their topics ------------------------------------------------------------

    def define(self) -> None:
        """All queues that the catalogue knows by now."""
        for queue in list(self._catalogue().known()):
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

    def _topics(self) -> dict[str, int]:
        """Those to follow, and their partitions: of several that are told, the most."""
        found = Counter({self._deadletter: self._deadletters})
        for queue in self._catalogue().known():
            if queue.retains and queue.topic:
                found |= Counter({queue.topic: queue.partitions})
            if queue.journal:
                found |= Counter({queue.journal: queue.journal_partitions})
        for key in self._pump.shard.kept:
            if key.startswith(TOPIC):
                topic, _, partitions = key.removeprefix(TOPIC).rpartition("/")
                found |= Counter({topic: int(partitions)})
        return found

    def _follow(self) -> None:
        fronts, positions = dict(self._pump.shard.fronts), self.view.positions()
        places: dict[Partition, int] = {}
        for topic, partitions in self._topics().items():
            for number in range(partitions):
                at = topic, number
                if at not in self._followed:
                    places[at] = max(positions.get(at, 0), fronts.get(at, 0))
            if f"{TOPIC}{topic}/{partitions}" not in self._pump.shard.kept:
                self._pump.put(f"{TOPIC}{topic}/{partitions}", b"1")
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
        if self._fault is not None or self._is_stopped:
            return
        try:
            self._positions |= batch.positions
            if self._is_live:
                self._arrive(self.view.as_fated(batch.rows))
            else:
                self._replay(batch)
        except Exception as error:
            self._fail(error)

    def _replay(self, batch: Batch) -> None:
        self.view.replay(batch.rows)
        self._unsaved += len(batch.rows)
        self._ended |= batch.ended
        is_over = self._followed <= self._ended
        if is_over or self._unsaved >= SAVE_ROWS:
            self._save()
            self._unsaved = 0
        if is_over:
            self._caught_up.set()

    def _arrive(self, rows: Sequence[Row]) -> None:
        self._define_new(rows)
        self.keeper.arrived(rows)
        try:
            commands = self.queues.arrive(rows, now())
        except ValueError:
            known = self.view.unknown(rows)
            _log.error("%d records were written again by somebody else", len(rows) - len(known))
            commands = self.queues.arrive(known, now())
        self.carry_out(commands)

    def _define_new(self, rows: Iterable[Row]) -> None:
        for name in {parent_of(row.queue) for row in rows if not is_system(row.queue)}:
            queue = self._catalogue().by_path(name)
            if queue is not None:
                self._define(queue)
            elif self.queues.queue(name) is None:
                self.queues.define(name, Traits())

    # -- what Kafka's retention deletes -----------------------------------------------------

    async def _watch_retention(self) -> None:
        """What is gone from Kafka lies in no queue, so it counts against no quota."""
        while True:
            await self._look_for_deleted()
            self._tell_of_left_out()
            await asyncio.sleep(RETENTION_S)

    async def _look_for_deleted(self) -> None:
        for at, start in (await self._beginnings.ask(sorted(self._followed))).items():
            copies = messages = 0
            after = -1
            while len(self._settling) < MOST_FLYING and (  # else the next look goes on
                rows := self.view.held_before(*at, start, after)
            ):
                after = rows[-1].at.offset
                for row in rows:
                    if is_system(row.queue):
                        copies += self.queues.sweeping.forget(row)
                    else:
                        messages += 1
                        self.carry_out(self.queues.sweeping.lose(row))
                await asyncio.sleep(0)  # others get their turn
            if copies:
                _log.info("%s-%d: retention has deleted %d copies of messages", *at, copies)
            if messages:
                _log.error(
                    "%s-%d: %d messages are lost, their records are gone (retention.ms should "
                    "be -1)",
                    *at,
                    messages,
                )

    def _tell_of_left_out(self) -> None:
        total = self.queues.quotas.copies_left_out
        if total > self._left_out:
            _log.warning(
                "%d copies for journals or dead-letter queues were not made: no room left; hint: "
                "purge them, or raise journal_quota_kb or queue_manager.quota_kb",
                total - self._left_out,
            )
            self._left_out = total

    # -- commands of the queues -------------------------------------------------------------

    def expect(self, handle: int, tag: int) -> asyncio.Future[Answer]:
        """The answer of a read that was asked for, before its commands are carried out."""
        future = asyncio.get_running_loop().create_future()
        self._answers[handle, tag] = future
        return future

    def close(self, handle: int) -> None:
        """Of a reader that is done, or gone."""
        if not self._is_stopped:
            self.carry_out(self.queues.answering.close(handle, now()))

    def lose(self, row: Row) -> list[asyncio.Future[None]]:
        """Its record is gone for good: so is the message, and that is said aloud."""
        _log.error(
            "%s is lost: %s-%d has no record %d any more (retention.ms should be -1)",
            f"message {row.id} of {row.queue}",
            row.at.topic,
            row.at.partition,
            row.at.offset,
        )
        return self.carry_out(self.queues.sweeping.lose(row))

    def carry_out(self, commands: Sequence[Command]) -> list[asyncio.Future[None]]:
        """What a call brought about; the futures end when its commits are in Kafka."""
        futures = []
        for command in commands:
            if isinstance(command, Commit):
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._settling[command.ticket] = future
                futures.append(future)
                self._fetching.take(command)
            else:
                answer = self._answers.pop((command.handle, command.tag), None)
                if answer is not None and not answer.done():
                    answer.set_result(command)
        self._arm()
        return futures

    def _add(self, commit: Commit, records: Mapping[RecordAt, Record]) -> None:
        self._pump.add(
            Departure(commit, records, self._receipts, self.where, self._unit, self._settled)
        )

    def _settled(self, commit: Commit) -> None:
        for effect in commit.effects:
            if isinstance(effect, Removal):
                self._removed(effect.reason.name, effect.is_lost)
        self._fetching.settled(commit)
        self.carry_out(self.queues.settle(commit.ticket, now()))
        future = self._settling.pop(commit.ticket)
        if not future.done():
            future.set_result(None)

    # -- time -------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Whatever is due; but Kafka first."""
        due = self.queues.next_wakeup(now())
        loop = asyncio.get_running_loop()
        if due is not None and len(self._settling) >= MOST_FLYING:
            due = max(due, loop.time() + REST_S)
        if self._timer is not None:
            if due is not None and self._timer.when() == due:
                return
            self._timer.cancel()
        self._timer = None if due is None else loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._fault is not None or self._is_stopped:
            return
        try:
            most = min(EXPIRED_AT_ONCE, MOST_FLYING - len(self._settling))
            self.carry_out(self.queues.tick(now(), max(most, 0)))
        except Exception as error:
            self._fail(error)


def demand_readable(queues: RetainedQueues, catalogue: Catalogue, name: str) -> None:
    """Raise Refused for a forward queue: a reader would wait for ever. One that still holds what
    it kept before its mapping changed can be read; so can journals."""
    path = parent_of(name.lower())
    if is_system(name.lower()) or queues.holds_messages(path):
        return
    queue = catalogue.would_be(path)
    if queue is not None and not queue.retains:
        raise NotKept(path)


class NotKept(Refused):
    """The queue forwards its messages and keeps none for readers."""

    def __init__(self, path: str) -> None:
        super().__init__(
            Status.ACCESS_DENIED,
            f"{path} forwards its messages to Kafka and keeps none for readers; hint: set mode: "
            "retain in its mapping",
        )


def traits_of(queue: Queue) -> Traits:
    mapping = queue.mapping
    return Traits(
        transactional=mapping.transactional,
        journaling=bool(queue.journal) and queue.retains,
        quota_kb=mapping.quota_kb if queue.retains else None,
        journal_quota_kb=mapping.journal_quota_kb if queue.retains else None,
    )
