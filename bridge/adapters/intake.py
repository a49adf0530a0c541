"""From sessions to Kafka and back: batches by load, verdicts after the commit.

A shard decides on what comes at once, so the next unit fills (and is turned into records) while
the previous one commits. One unit of a shard is under way at a time. When it fails nobody asks
the producer what happened: the sink is opened anew, the shard restored from what Kafka has, and
the unit's number in the state tells whether it was committed. If it was, its verdicts stand; if
not, its messages are decided again, in order, before anything that came later.

A message may need a topic that nobody has looked at yet (wildcards, {label}, auto-create). It
waits until somebody has, and all that came after it to the same shard waits behind it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final, Protocol

from msgspec.structs import replace

from bridge.adapters.logs import fields
from bridge.adapters.telemetry import Telemetry
from bridge.adapters.tracing import Tracing
from bridge.core.forwards import Ending
from bridge.core.ports import Claim, Forward, OutboxEntry, ShardSink, Snapshot, Unit
from bridge.core.posted import Due
from bridge.core.shard import Shard, committed_unit, shard_of
from bridge.core.streams import stream_key
from bridge.model.classes import MessageClass
from bridge.model.errors import SinkUnavailable
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, Outcome, Verdict

OnDecided = Callable[[Sequence[Verdict]], None]
Prepare = Callable[[set[str]], Awaitable[None]]  # look at these topics, make what is missing
StoreClaims = Callable[[Sequence[Claim]], Awaitable[None]]

MAX_PENDING: Final = 50_000  # messages
MAX_PENDING_BYTES: Final = 64 << 20
TASKS_AT_ONCE: Final = 200  # in one unit
TASK_BYTES: Final = 16 << 20
HEARTBEAT_S: Final = 10.0
REST_S: Final = 0.05  # while ids are short
RETRY_S: Final = (0.1, 0.5, 1.0, 2.0)

_log = logging.getLogger(__name__)
_REFUSED: Final = (Outcome.REJECTED, Outcome.EXPIRED)
_topic = attrgetter("topic")
_told = attrgetter("outcome", "message_class")


class Submission:
    __slots__ = ("is_withdrawn", "messages", "on_decided", "size", "verdicts", "via")

    def __init__(self, messages: Sequence[Message], via: Guid, on_decided: OnDecided) -> None:
        self.messages, self.via, self.on_decided = messages, via, on_decided
        self.verdicts: Sequence[Verdict] = ()
        self.size = sum([len(m.body) + (len(m.wire) or _http_size(m)) for m in messages])
        self.is_withdrawn = False

    def withdraw(self) -> None:
        """Nobody waits for it any more: if it is not decided yet, it never was there."""
        self.is_withdrawn = True


def _http_size(message: Message) -> int:
    """Beside the body."""
    onward = message.srmp.onward if message.srmp is not None else None
    size = len(message.soap) + len(message.extension) + len(message.soap_compound)
    return size if onward is None else size + len(onward.packet)


class Task(Protocol):
    """Something to commit that is no message: what became of one that was taken before."""

    @property
    def size(self) -> int:
        """Bytes that it may add to a unit."""

    def fill(self, shard: Shard) -> None:
        """Put it into the unit that fills. Called again if that unit is not committed."""

    def settled(self) -> None:
        """It is committed."""


class ForwardEnded:
    """A message for another host waits no more. Should that get lost, it is handed on again."""

    def __init__(self, forward: Forward, ending: Ending) -> None:
        self.forward, self._ending = forward, ending
        self._at_ms = int(time.time() * 1000)

    @property
    def size(self) -> int:
        return self.forward.size  # it may become a record among the rejects

    def fill(self, shard: Shard) -> None:
        shard.ended(self.forward.ordinal, self._ending, self._at_ms)

    def settled(self) -> None:
        pass


class ShardPump:
    """Runs one shard on one sink."""

    def __init__(
        self,
        shard: Shard,
        sink: ShardSink,
        telemetry: Telemetry,
        prepare: Prepare | None = None,
        store_claims: StoreClaims | None = None,
        name: str = "0",
    ) -> None:
        self.shard, self.name = shard, name
        self._sink = sink
        self._telemetry = telemetry
        self._prepare, self._store_claims = prepare, store_claims
        self._waiting: deque[Submission] = deque()  # not decided: closed, or a topic is missing
        self._preparing: asyncio.Task[None] | None = None
        self._fault: BaseException | None = None  # of a task that looked at topics
        self._filling: list[Submission] = []  # decided, in the unit that fills
        self._flying: list[Submission] = []  # in the unit that commits
        self._flying_number = 0
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._forgotten: list[int] = []  # acks that were taken, not yet in a unit
        self._flying_forgotten: list[int] = []
        self.on_acks: Callable[[Sequence[OutboxEntry], ShardPump], None] = lambda _acks, _pump: None
        self.on_due: Callable[[Sequence[Due], ShardPump], None] = lambda _due, _pump: None
        self._tasks: deque[Task] = deque()  # not yet in a unit
        self._flying_tasks: list[Task] = []
        self.on_forwards: Callable[[Sequence[Forward], ShardPump], None] = lambda _f, _pump: None
        self.is_short: Callable[[], bool] = lambda: False  # of ids: nothing is decided then
        self._puts: dict[str, bytes] = {}  # the owner's state entries, not yet in a unit
        self._flying_puts: dict[str, bytes] = {}
        self.is_open = False
        self.why_closed = "starting"
        self.pending = self.pending_bytes = 0
        self.on_change: Callable[[], None] = lambda: None
        self.tracing: Tracing | None = None

    def submit(
        self, messages: Sequence[Message], on_decided: OnDecided, via: Guid = NULL_GUID
    ) -> Submission:
        submission = Submission(messages, via, on_decided)
        self.pending += len(messages)
        self.pending_bytes += submission.size
        self._waiting.append(submission)
        self._idle.clear()
        if self.is_open:
            self._decide()
        return submission

    def _decide(self) -> None:
        """All that waits, in order, up to the first that has to wait on."""
        while self._waiting and self._preparing is None:
            submission = self._waiting[0]
            if submission.is_withdrawn:
                self._release(self._waiting.popleft())
                self._wake()
                continue
            if self.is_short():
                self._go_on_after(partial(asyncio.sleep, REST_S))  # and look again
                return
            missing = self.shard.unknown_topics(submission.messages)
            if missing and self._prepare is not None:
                self._go_on_after(partial(self._look_at, self._prepare, missing))
                return
            self._waiting.popleft()
            submission.verdicts = self.shard.admit(submission.messages, submission.via)
            self._filling.append(submission)
            self._wake()

    def _go_on_after(self, what: Callable[[], Awaitable[None]]) -> None:
        self._preparing = asyncio.create_task(self._go_on(what))
        self._preparing.add_done_callback(self._on_looked)

    async def _go_on(self, after: Callable[[], Awaitable[None]]) -> None:
        try:
            await after()
        finally:
            self._preparing = None
        if self.is_open:
            self._decide()

    async def _look_at(self, prepare: Prepare, topics: set[str]) -> None:
        try:
            await prepare(topics)
        except SinkUnavailable as error:
            _log.warning("%s; trying again", error)
            await asyncio.sleep(RETRY_S[-1])

    def _on_looked(self, task: asyncio.Task[None]) -> None:
        """A bug of ours ends the pump, loudly; else its messages would wait for ever."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = fault
            self._wake()

    def put(self, key: str, value: bytes) -> None:
        """A state entry of the owner's, durable with the next unit."""
        self._puts[key] = value
        self._wake()

    def has_settled(self, key: str) -> bool:
        """Kafka has what was `put` there."""
        return key not in self._puts and key not in self._flying_puts

    def forget(self, ordinals: Sequence[int]) -> None:
        """Acks that their peers have taken."""
        self._forgotten += ordinals
        self._wake()

    def add(self, task: Task) -> None:
        """To be committed with one of the next units, in this order."""
        self._tasks.append(task)
        self._wake()

    def forward_ended(self, forward: Forward, ending: Ending) -> None:
        self.add(ForwardEnded(forward, ending))

    def receipted(self, due: Due) -> None:
        """A sender has taken this receipt. Should that get lost, it gets another one (SR-81)."""
        self.shard.posted.receipted(due)
        self._wake()

    def _wake(self) -> None:
        self._idle.clear()
        self._work.set()

    async def open(self) -> Snapshot:
        """Take the shard over; messages that wait are decided on what Kafka says."""
        snapshot = await self._sink.open()
        if committed_unit(snapshot) >= self._flying_number:  # be it one of tasks alone
            self._settle()
        self._waiting.extendleft(reversed(self._flying + self._filling))
        self._filling = []
        self._set_right()
        self._puts = self._flying_puts | self._puts
        self._forgotten = self._flying_forgotten + self._forgotten
        self._flying, self._flying_puts, self._flying_forgotten = [], {}, []
        self._tasks.extendleft(reversed(self._flying_tasks))
        self._flying_tasks = []
        self.shard.restore(snapshot)
        ended = [task.forward.ordinal for task in self._tasks if isinstance(task, ForwardEnded)]
        taken = {*self._forgotten, *ended}
        waiting = [e for e in self.shard.outbox.values() if e.ordinal not in taken]
        forwards = [f for f in self.shard.forwards if f.ordinal not in taken]
        due = self.shard.posted.unreceipted()  # before anything is decided that may yet fail
        if self._puts or self._forgotten or self._tasks:
            self._wake()  # nobody else may come to do it
        else:
            self._work.clear()
            if not self._waiting:
                self._idle.set()
        self._decide()
        self.is_open, self.why_closed = True, ""
        self.on_change()
        self.on_acks(waiting, self)
        self.on_due(due, self)
        self.on_forwards(forwards, self)
        return snapshot

    def _set_right(self) -> None:
        """What came while our clock was ahead: no broker takes a time that is far in the future."""
        now_ms = int(time.time() * 1000)
        for submission in self._waiting:
            if any(message.arrived_ms > now_ms for message in submission.messages):
                submission.messages = [
                    replace(m, arrived_ms=min(m.arrived_ms, now_ms)) for m in submission.messages
                ]

    async def run(self) -> None:
        """Forever: commit what has come; after a failure open anew and go on."""
        failures = 0
        while True:
            try:
                if not self.is_open:
                    await self.open()
                    _log.info("shard is open again")
                while True:
                    # An idle shard commits too, now and then: so it hears that it was fenced.
                    # (Not wait_for: in Python 3.11 it can swallow a cancellation.)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(HEARTBEAT_S):
                            await self._work.wait()
                    if self._fault is not None:
                        raise self._fault
                    await self._commit()
                    failures = 0
            except SinkUnavailable as error:
                if self.is_open:
                    _log.warning("%s; holding what came", error)
                self.is_open, self.why_closed = False, str(error)
                self.on_change()
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1

    @property
    def is_loaded(self) -> bool:
        return self.pending > MAX_PENDING or self.pending_bytes > MAX_PENDING_BYTES

    async def drain(self) -> None:
        """Until all that was submitted has its verdict."""
        await self._idle.wait()

    async def close(self) -> None:
        self.is_open = False
        if self._preparing is not None:
            self._preparing.cancel()
        await self._sink.close()

    async def _commit(self) -> None:
        self._work.clear()
        self._flying, self._filling = self._filling, []
        self._flying_puts, self._puts = self._puts, {}
        for key, value in self._flying_puts.items():
            self.shard.put(key, value)
        self._flying_forgotten, self._forgotten = self._forgotten, []
        self.shard.forget(self._flying_forgotten)
        self._fill_tasks()
        self._flying_number, unit = self.shard.take_unit(int(time.time()))
        started = time.monotonic()
        try:
            if unit.claims and self._store_claims is not None:
                await self._store_claims(unit.claims)  # before a record can point to them
            await self._sink.publish(unit)
        except SinkUnavailable:
            self._count("unknown", unit, started)
            self._trace("unknown", unit, self._flying, started)
            raise
        self._count("committed", unit, started)
        flying = self._flying
        self._settle()
        self._trace("committed", unit, flying, started)
        if unit.acks:
            self.on_acks(unit.acks, self)
        if unit.due:
            self.on_due(unit.due, self)
        if unit.forwards:
            self.on_forwards(unit.forwards, self)
        self.on_change()
        if not self._work.is_set() and not self._waiting:
            self._idle.set()

    def _fill_tasks(self) -> None:
        """As many as one unit may have: after a long outage thousands come at once."""
        room = TASK_BYTES
        while self._tasks and room > 0 and len(self._flying_tasks) < TASKS_AT_ONCE:
            task = self._tasks.popleft()
            room -= task.size
            self._flying_tasks.append(task)
            task.fill(self.shard)
        if self._tasks:
            self._work.set()

    def _count(self, result: str, unit: Unit, started: float) -> None:
        messages = sum(len(s.messages) for s in self._flying)
        seconds = time.monotonic() - started
        self._telemetry.transaction(result, messages=messages, seconds=seconds)
        if result == "committed":
            for topic, count in Counter(map(_topic, unit.records)).items():
                self._telemetry.records(topic, count)

    def _trace(self, result: str, unit: Unit, flying: Sequence[Submission], started: float) -> None:
        """After the acks, and whatever goes wrong: nothing depends on it."""
        if self.tracing is None or not (flying or unit.records):
            return
        try:
            self.tracing.batch(
                result,
                ((m, v) for s in flying for m, v in zip(s.messages, s.verdicts, strict=True)),
                shard=self.name,
                messages=sum(len(s.messages) for s in flying),
                records=len(unit.records),
                began_ns=time.time_ns() - int((time.monotonic() - started) * 1e9),
            )
        except Exception:
            _log.exception("a transaction was not traced")

    def _release(self, submission: Submission) -> None:
        self.pending -= len(submission.messages)
        self.pending_bytes -= submission.size

    def _settle(self) -> None:
        """The unit is in Kafka: now, and only now, its verdicts may be told."""
        flying, self._flying, self._flying_puts = self._flying, [], {}
        self._flying_forgotten = []
        tasks, self._flying_tasks = self._flying_tasks, []
        told: defaultdict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
        for submission in flying:
            self._release(submission)
            verdicts = submission.verdicts
            counts = told[submission.messages[0].transport]
            others = [verdict for verdict in verdicts if verdict is not ACCEPTED]
            counts[_told(ACCEPTED)] += len(verdicts) - len(others)
            for verdict in others:
                counts[_told(verdict)] += 1
            if any(verdict.outcome in _REFUSED for verdict in others):
                self._tell_refused(submission)
            submission.on_decided(verdicts)
        for task in tasks:
            task.settled()
        for transport, counts in told.items():
            for (outcome, message_class), count in counts.items():
                name = MessageClass(message_class).name if message_class else ""
                self._telemetry.message(outcome, name, count, transport)

    def _tell_refused(self, submission: Submission) -> None:
        """A line for each reason, with the first message that met it; no body, no label."""
        first: dict[str, Message] = {}
        counts = Counter[str]()
        for message, verdict in zip(submission.messages, submission.verdicts, strict=True):
            if verdict.outcome in _REFUSED:
                reason = verdict.reason or MessageClass(verdict.message_class).name
                first.setdefault(reason, message)
                counts[reason] += 1
        for reason, message in first.items():
            told = fields(
                reason=reason,
                peer=message.peer,
                transport=message.transport,
                queue_manager=message.source,
                messages=counts[reason],
                message_id=message.id,
                destination=message.destination,
            )
            _log.info("message refused", extra=told)


class Intake:
    """All shards of this process; who submits does not see them."""

    def __init__(self, pumps: Sequence[ShardPump], on_jam: Callable[[bool], None]) -> None:
        self._pumps = pumps
        self._on_jam = on_jam
        self.jammed = False
        self.is_closing = False
        for pump in pumps:
            pump.on_change = self.look

    def submit(
        self, messages: Sequence[Message], on_decided: OnDecided, via: Guid = NULL_GUID
    ) -> None:
        """`via` handed them to us; `on_decided` gets the verdicts, in order, after the commit."""
        pumps = self._pumps
        shards = {shard_of(source, len(pumps)) for source in {m.source for m in messages}}
        if len(shards) == 1:
            pump = pumps[shards.pop()]
            pump.submit(messages, on_decided, via)
            if pump.is_open and not pump.is_loaded:
                return  # the commit looks again
        else:
            self._split(messages, via, on_decided)
        self.look()

    def submit_posted(self, message: Message, on_decided: OnDecided) -> Submission:
        """One that came over HTTP: its stream decides where it goes (SR-33)."""
        pump = self._pumps[shard_of(stream_key(message)[0], len(self._pumps))]
        submission = pump.submit([message], on_decided)
        self.look()
        return submission

    def _split(self, messages: Sequence[Message], via: Guid, on_decided: OnDecided) -> None:
        """A routed session: several senders, several shards."""
        parts: dict[int, list[int]] = {}
        for position, message in enumerate(messages):
            parts.setdefault(shard_of(message.source, len(self._pumps)), []).append(position)
        verdicts: dict[int, Verdict] = {}

        def collect(positions: list[int], decided: Sequence[Verdict]) -> None:
            verdicts.update(zip(positions, decided, strict=True))
            if len(verdicts) == len(messages):
                on_decided([verdicts[i] for i in range(len(messages))])

        for shard, positions in parts.items():
            self._pumps[shard].submit(
                [messages[i] for i in positions],
                lambda decided, positions=positions: collect(positions, decided),  # type: ignore[misc]
                via,
            )

    def close(self) -> None:
        """What is here is committed, nothing more is read."""
        self.is_closing = True
        self.look()

    def look(self) -> None:
        """Jammed: Kafka is away or behind, so sessions should read no more for now."""
        load = max(p.pending for p in self._pumps), max(p.pending_bytes for p in self._pumps)
        limit = (MAX_PENDING, MAX_PENDING_BYTES)
        if self.jammed:  # let go at half, so that it does not flutter
            limit = (MAX_PENDING // 2, MAX_PENDING_BYTES // 2)
        over = load[0] > limit[0] or load[1] > limit[1]
        jammed = over or self.is_closing or not all(p.is_open for p in self._pumps)
        if jammed != self.jammed:
            self.jammed = jammed
            self._on_jam(jammed)

    @property
    def pending(self) -> int:
        return sum(p.pending for p in self._pumps)

    def complaints(self) -> list[str]:
        return [p.why_closed for p in self._pumps if not p.is_open]
