"""A shard, its retained queues, and a Kafka that the test plays: units are committed or lost.

It does what the owner of both does: commits of the queues are tasks, filled into the unit that is
taken next; the messages and tasks of a unit that was not committed are decided and filled again;
records come back by a follower that reads what is committed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from bridge.core.admission import Policy
from bridge.core.catalogue import Queue
from bridge.core.ports import OutboxEntry, Record, Snapshot, Unit
from bridge.core.retained.effects import Command, Commit, Delivered, Ended, Removal
from bridge.core.retained.fates import PREFIX, Fate
from bridge.core.retained.fronts import FRONT, Fronts, Partition
from bridge.core.retained.keeping import Keeper, row_in
from bridge.core.retained.leaving import leave
from bridge.core.retained.naming import DEADLETTER, parent_of
from bridge.core.retained.place import START
from bridge.core.retained.queues import Access, Traits
from bridge.core.retained.retained_queues import RetainedQueues
from bridge.core.retained.rows import RecordAt, Row
from bridge.core.retained.shelf import MemoryShelf
from bridge.core.retained.sweeping import Sweep
from bridge.core.shard import Shard, committed_unit
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.verdict import Outcome, Verdict
from bridge.protocol.events import Instant
from tests.core.messages import LOCAL, NOW, SENDER, catalogue, queue, receipts

PLAIN = "private$\\plain"
ORDERS = "private$\\orders"  # transactional
RETRY = "private$\\orders;retry"
UOW = bytes(range(16))


def kept(**settings: Any) -> Queue:
    return queue(PLAIN, transactional=False, mode="retain", **settings)


def kept_orders(**settings: Any) -> Queue:
    return queue(ORDERS, mode="retain", **settings)


class Kafka:
    """What the committed units left."""

    def __init__(self) -> None:
        self.logs: defaultdict[Partition, list[Record | None]] = defaultdict(list)
        self.state: dict[str, bytes] = {}
        self.seen: dict[str, bytes] = {}
        self.acks: list[OutboxEntry] = []

    def commit(self, unit: Unit) -> list[RecordAt]:
        """Where its records are; behind them is the mark of the transaction's end."""
        places: list[RecordAt] = []
        for record in unit.records:
            number = record.partition
            if number is None:
                number = crc32(record.key or b"") % 2
            log = self.logs[record.topic, number]
            places.append(RecordAt(record.topic, number, len(log)))
            log.append(replace(record, partition=number))
        for partition in sorted({(at.topic, at.partition) for at in places}):
            self.logs[partition].append(None)
        for key, value in unit.state.items():
            self.state.pop(key, None)
            if value is not None:
                self.state[key] = value
        self.seen |= unit.seen
        self.acks += unit.acks
        return places

    def record(self, at: RecordAt) -> Record:
        record = self.logs[at.topic, at.partition][at.offset]
        assert record is not None
        return record

    def snapshot(self) -> Snapshot:
        return Snapshot(dict(self.state), list(self.seen.values()))

    def fronts(self) -> Fronts:
        fronts = Fronts()
        for key, value in self.state.items():
            if key.startswith((FRONT, PREFIX)):
                fronts.restore(key, value)
        return fronts

    def rows(
        self, old: Iterable[Row] = (), positions: Mapping[Partition, int] | None = None
    ) -> list[Row]:
        """What lies in queues: by an older view and what came since, with what became of it."""
        found = list(old)
        for partition, log in self.logs.items():
            start = (positions or {}).get(partition, 0)
            for offset, record in enumerate(log[start:], start):
                row = row_in(record, RecordAt(*partition, offset), LOCAL) if record else None
                if row is not None:
                    found.append(row)
        restored = self.fronts()
        fronts, fates = dict(restored), {fated.at: fated.fate for fated in restored.fates()}
        judged = (_judged(row, fronts, fates) for row in found)
        return [row for row in judged if row is not None]


def _judged(
    row: Row, fronts: Mapping[Partition, int], fates: Mapping[RecordAt, Fate]
) -> Row | None:
    if row.at.offset < fronts.get((row.at.topic, row.at.partition), 0):
        return None
    fate = fates.get(row.at)
    return row if fate is None else fate.applied_to(row)


class Bench:
    def __init__(self, *queues: Queue, machine_kb: int | None = None, **policy: Any) -> None:
        self.kafka = Kafka()
        self.catalogue = catalogue(*(queues or (kept(), kept_orders())))
        self.policy = Policy(deadletter_topic="dead", **policy)
        self.machine_kb = machine_kb
        self.receipts = receipts()
        self.ids = count(1)
        self.mono = 0.0
        self.start()

    def start(
        self, old: Iterable[Row] = (), positions: Mapping[Partition, int] | None = None
    ) -> None:
        """A process that knows what Kafka has, and maybe an older view of it."""
        self.shelf = MemoryShelf(self.kafka.rows(old, positions))
        self.positions = {partition: len(log) for partition, log in self.kafka.logs.items()}
        self.queues = RetainedQueues(
            self.shelf, self.ids.__next__, machine_quota_kb=self.machine_kb
        )
        for each in self.catalogue.queues:
            self.define(each)
        self.keeper = Keeper(self.queues.quotas, self.ids.__next__, LOCAL)
        self.shard = Shard(self.catalogue, self.policy, self.receipts, keeper=self.keeper)
        self.shard.restore(self.kafka.snapshot())
        self.filling: list[tuple[Message, Guid]] = []
        self.flying: list[tuple[Message, Guid]] = []
        self.tasks: list[Commit] = []
        self.flying_tasks: list[Commit] = []
        self.unit: Unit | None = None  # under way
        self.number = 0
        self.told: list[Delivered | Ended] = []
        self.tags = count(1)

    def define(self, each: Queue) -> None:
        mapping = each.mapping
        self.queues.define(
            each.name,
            Traits(
                transactional=mapping.transactional,
                journaling=bool(each.journal),
                quota_kb=mapping.quota_kb,
                journal_quota_kb=mapping.journal_quota_kb,
            ),
        )

    @property
    def now(self) -> Instant:
        return Instant(self.mono, NOW + self.mono)

    # -- messages ---------------------------------------------------------------------------

    def admit(self, *messages: Message, via: Guid = SENDER) -> list[Verdict]:
        """One by one, as if each had come alone."""
        verdicts = [verdict for each in messages for verdict in self.shard.admit([each], via)]
        self.filling += [
            (message, via)
            for message, verdict in zip(messages, verdicts, strict=True)
            if verdict.outcome is not Outcome.BUSY  # the sender keeps it
        ]
        return verdicts

    def outcomes(self, *messages: Message) -> list[str]:
        return [str(verdict.outcome) for verdict in self.admit(*messages)]

    def put(self, *messages: Message, via: Guid = SENDER) -> list[Row]:
        """They are accepted, committed and on the shelf."""
        verdicts = self.admit(*messages, via=via)
        assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED] * len(messages)
        self.commit()
        return self.follow()

    def follow(self, partition: Partition | None = None, limit: int = 1 << 30) -> list[Row]:
        """Records that are committed and were not read yet."""
        rows: list[Row] = []
        for each in list(self.kafka.logs) if partition is None else [partition]:
            start = self.positions.get(each, 0)
            for offset, record in enumerate(self.kafka.logs[each][start:][:limit], start):
                at, skew = RecordAt(*each, offset), self.policy.clock_skew_s
                row = row_in(record, at, LOCAL, skew) if record else None
                rows += [row] if row is not None else []
                self.positions[each] = offset + 1
        self.do(self.queues.arrive(rows, self.now))
        self.keeper.arrived(rows)
        return rows

    # -- units ------------------------------------------------------------------------------

    def take(self) -> Unit:
        """The unit that filled is under way."""
        assert self.unit is None
        self.flying, self.filling = self.filling, []
        self.flying_tasks, self.tasks = self.tasks, []
        gone: set[RecordAt] = set()
        for task in self.flying_tasks:
            removals = [effect for effect in task.effects if isinstance(effect, Removal)]
            records = {e.row.at: self.kafka.record(e.row.at) for e in removals if e.needs_record}
            now_ms = int(self.now.unix * 1000)
            leaving = leave(task.effects, records, self.receipts, self.where, now_ms)
            gone |= {effect.row.at for effect in removals}
            touched = {(effect.row.at.topic, effect.row.at.partition) for effect in task.effects}
            self.shard.leave(leaving, {each: self.front(each, gone) for each in touched})
        self.number, self.unit = self.shard.take_unit(int(self.now.unix))
        return self.unit

    def settle(self) -> None:
        """Kafka has the unit, and we know it."""
        tasks, self.flying_tasks, self.flying, self.unit = self.flying_tasks, [], [], None
        for task in tasks:
            self.do(self.queues.settle(task.ticket, self.now))

    def commit(self) -> Unit:
        unit = self.take()
        self.kafka.commit(unit)
        self.settle()
        return unit

    def lose(self) -> None:
        """Nobody knows what became of the unit under way: what Kafka has tells."""
        snapshot = self.kafka.snapshot()
        if self.unit is not None and committed_unit(snapshot) >= self.number:
            self.settle()
        again = self.flying + self.filling
        self.tasks = self.flying_tasks + self.tasks
        self.flying, self.filling, self.flying_tasks, self.unit = [], [], [], None
        self.shard.restore(snapshot)
        for message, via in again:
            self.admit(message, via=via)

    def where(self, name: str) -> tuple[str, int | None]:
        if name == DEADLETTER:
            return self.policy.deadletter_topic, None
        (topic,) = (q.journal for q in self.catalogue.queues if q.name == parent_of(name))
        return topic, 0

    def front(self, partition: Partition, gone: set[RecordAt]) -> int:
        """Of the records that wait the first; if none does, what was not read yet."""
        waiting = [
            row.at.offset
            for row in self.waiting()
            if (row.at.topic, row.at.partition) == partition and row.at not in gone
        ]
        return min(waiting, default=self.positions.get(partition, 0))

    def waiting(self, name: str = "") -> list[Row]:
        names = [name] if name else sorted(self.shelf.queues())
        return [row for each in names for row in self.shelf.after(each, START, 1 << 30)]

    # -- readers ----------------------------------------------------------------------------

    def do(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, Commit):
                self.tasks.append(command)
            else:
                self.told.append(command)

    def open(self, name: str, access: Access = Access.RECEIVE) -> int:
        return self.queues.handles.open(name, access)

    def receive(self, name: str, transaction: bytes | None = None) -> Row:
        """The next one, confirmed; in a transaction: its part of it."""
        handle, tag = self.open(name), next(self.tags)
        (answer,) = self.queues.reading.receive(handle, tag, self.now, transaction=transaction)
        assert isinstance(answer, Delivered)
        self.do(self.queues.answering.end(handle, tag, self.now, delete=True))
        return answer.row

    def reject(self, name: str) -> None:
        """Received in a transaction, and found no good. MS-MQRR 3.1.4.14"""
        self.queues.transactions.begin(UOW)
        row = self.receive(name, UOW)
        self.queues.answering.reject(self.open(name), row.lookup_id, 0xC004)
        self.do(self.queues.transactions.commit(UOW, self.now))

    def purge(self, name: str) -> None:
        self.sweep(self.queues.sweeping.purge(self.open(name)))

    def delete(self, name: str) -> None:
        commands, sweep = self.queues.sweeping.delete(name)
        self.do(commands)
        self.sweep(sweep)

    def sweep(self, sweep: Sweep) -> None:
        while commands := self.queues.sweeping.step(sweep, self.now):
            self.do(commands)

    def move(self, name: str, to: str, lookup_id: int) -> None:
        source, target = self.open(name), self.open(to, Access.MOVE)
        self.do(self.queues.moving.move(source, target, lookup_id, self.now))

    def tick(self, seconds: float) -> None:
        self.mono += seconds
        self.do(self.queues.tick(self.now))
