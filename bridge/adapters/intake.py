"""From sessions to Kafka and back: batches by load, verdicts after the commit.

A shard decides on what comes at once, so the next unit fills (and is turned into records) while
the previous one commits. One unit of a shard is under way at a time. When it fails nobody asks
the producer what happened: the sink is opened anew, the shard restored from what Kafka has, and
the unit's number in the state tells whether it was committed. If it was, its verdicts stand; if
not, its messages are decided again, in order, before anything that came later.

A message may need a topic that nobody has looked at yet (wildcards, {label}, auto-create), or a
large body that its mapping reads. It waits until that is done beside the event loop, and all that
came after it to the same shard waits behind it.

A unit that Kafka refuses for good is taken apart (suspects.py): the message behind the record that
is refused is rejected, and the rest goes on. What goes to a topic that is gone, or closed to us,
waits at its sender (`on_refused_topic`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from operator import attrgetter
from typing import Final, Protocol

from msgspec.structs import replace

from bridge.adapters.beside import beside_the_loop
from bridge.adapters.logs import fields
from bridge.adapters.suspects import CLOCK, PART, Suspects, cut, reason_of
from bridge.adapters.telemetry import Telemetry
from bridge.adapters.tracing import Tracing
from bridge.core.admission import INTERNAL_ERROR, Refusal
from bridge.core.audit import shown
from bridge.core.forwards import Ending
from bridge.core.ports import (
    Claim,
    Forward,
    OutboxEntry,
    RefusedRecord,
    ShardSink,
    Snapshot,
    Unit,
    UnitRefused,
)
from bridge.core.posted import Due
from bridge.core.readings import INLINE, Readings, Wanted, read_all
from bridge.core.shard import Shard, committed_unit, shard_of
from bridge.core.streams import stream_key
from bridge.core.waiting_streams import Turn
from bridge.model.classes import MessageClass
from bridge.model.errors import SinkUnavailable
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import Message
from bridge.model.verdict import ACCEPTED, Outcome, Verdict

OnDecided = Callable[[Sequence[Verdict]], None]
# Look at these topics and make what is missing, for a peer; the answer are those it may not have.
Prepare = Callable[[set[str], str], Awaitable[set[str]]]
StoreClaims = Callable[[Sequence[Claim]], Awaitable[None]]

MAX_PENDING: Final = 50_000  # messages
MAX_PENDING_BYTES: Final = 64 << 20
TASKS_AT_ONCE: Final = 200  # in one unit
TASK_BYTES: Final = 16 << 20
HEARTBEAT_S: Final = 10.0
REST_S: Final = 0.05  # while ids are short
RETRY_S: Final = (0.1, 0.5, 1.0, 2.0)
STALLED_S: Final = 3.0  # a unit that is not committed by then: no sender hears anything
MOST_REPORTED: Final = 100  # tracebacks in the log
STREAM_WAITS: Final = "stream-not-adopted"
CLOCK_IS_WRONG: Final = (
    "INVALID_TIMESTAMP: our clock, or a broker's, is wrong (message.timestamp.after.max.ms)"
)

_log = logging.getLogger(__name__)
_REFUSED: Final = (Outcome.REJECTED, Outcome.EXPIRED)
_NOTHING: Final[Mapping[int, Refusal]] = {}
_topic = attrgetter("topic")
_told = attrgetter("outcome", "message_class")


async def _no_look() -> None:
    pass


class Submission:
    __slots__ = (
        "denied",
        "doomed",
        "is_routed",
        "is_withdrawn",
        "messages",
        "on_decided",
        "readings",
        "size",
        "turn",
        "verdicts",
        "via",
    )

    def __init__(
        self,
        messages: Sequence[Message],
        via: Guid,
        on_decided: OnDecided,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> None:
        self.messages, self.via, self.on_decided = messages, via, on_decided
        self.is_routed = is_routed  # `via` may hand on messages of others
        self.turn = turn  # of the session
        self.verdicts: Sequence[Verdict] = ()
        self.doomed: Mapping[int, Refusal] = _NOTHING  # messages that Kafka refuses for good
        self.is_withdrawn = False
        self.readings: Readings | None = None  # of bodies that were read beforehand
        self.denied: set[str] = set()  # topics that are not made for it
        self.measure()

    def measure(self) -> None:
        self.size = sum([len(m.body) + (len(m.wire) or _http_size(m)) for m in self.messages])

    def doom(self, index: int, why: Refusal) -> None:
        self.doomed = {**self.doomed, index: why}

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
        self.on_dropped: Callable[[Sequence[OutboxEntry]], None] = lambda _acks: None
        self._lightened: list[OutboxEntry] = []  # acks that lost their body, not yet in a unit
        self.on_due: Callable[[Sequence[Due], ShardPump], None] = lambda _due, _pump: None
        self._tasks: deque[Task] = deque()  # not yet in a unit
        self._flying_tasks: list[Task] = []
        self.on_forwards: Callable[[Sequence[Forward], ShardPump], None] = lambda _f, _pump: None
        self.is_short: Callable[[], bool] = lambda: False  # of ids: nothing is decided then
        self._puts: dict[str, bytes | None] = {}  # the owner's state entries, not yet in a unit
        self._flying_puts: dict[str, bytes | None] = {}
        self.is_open = False
        self.why_closed = "starting"
        self.pending = self.pending_bytes = 0
        self.on_change: Callable[[], None] = lambda: None
        self.tracing: Tracing | None = None
        self._reported: set[tuple[str, str, int]] = set()  # places in our code that raised
        self._suspects = Suspects()
        self._is_wary = False  # of tasks: one to a unit
        self._doomed_copies: dict[int, dict[int, Refusal]] = {}  # of a task's records, by its id()
        # Where the last task's records begin in the unit, and which of them it has.
        self._copies: tuple[int, list[int]] = 0, []
        self._flying_topics: Callable[[], set[str]] = set
        self._settled_number = 0  # of a unit that Kafka certainly has
        self._closed_at = 0.0
        self._publishing = inf  # when the unit under way was given to Kafka
        self.committed_at = 0.0  # when Kafka took the last one
        # Who looks after topics: one refused a record (why), and something failed.
        self.on_refused_topic: Callable[[str, str], None] = lambda _topic, _why: None
        self.on_failure: Callable[[], Awaitable[None]] = _no_look

    def submit(
        self,
        messages: Sequence[Message],
        on_decided: OnDecided,
        via: Guid = NULL_GUID,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> Submission:
        submission = Submission(messages, via, on_decided, is_routed, turn)
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
            if self._suspects and (self._filling or self._flying):
                return  # one part to a unit
            submission = self._waiting[0]
            if submission.is_withdrawn:
                self._release(self._waiting.popleft())
                self._wake()
                continue
            if self.is_short():
                self._go_on_after(partial(asyncio.sleep, REST_S))  # and look again
                return
            missing = self.shard.unknown_topics(
                submission.messages, submission.via, is_routed=submission.is_routed
            )
            if missing and self._prepare is not None and (missing := missing - submission.denied):
                self._go_on_after(partial(self._look_at, self._prepare, missing, submission))
                return
            if submission.size > INLINE and submission.readings is None:
                wanted = self.shard.bodies_to_read(submission.messages)
                if wanted:
                    self._go_on_after(partial(self._read_bodies, submission, wanted))
                    return
            self._waiting.popleft()
            self.shard.use_readings(submission.readings or {})
            if self._suspects:
                submission = self._admit_carefully(submission)
            else:
                submission.verdicts = self.shard.admit(
                    submission.messages,
                    submission.via,
                    is_routed=submission.is_routed,
                    turn=submission.turn,
                )
            if self.shard.faults:
                self._report_faults()
            if self.shard.waiting.fresh:
                self._report_waiting()
            submission.readings = None  # should it be decided again, it is read again
            self._filling.append(submission)
            self._wake()

    def _report_faults(self) -> None:
        """A traceback for each place in our code that raised, the first time; a count always."""
        faults, self.shard.faults = self.shard.faults, []
        for message, fault in faults:
            self._telemetry.refusal(INTERNAL_ERROR.reason)
            where = _place_of(fault)
            if where not in self._reported and len(self._reported) < MOST_REPORTED:
                self._reported.add(where)
                _log.error(
                    "internal error: message %s is rejected; the shard goes on",
                    message.id,
                    exc_info=fault,
                    extra=fields(reason=INTERNAL_ERROR.reason, peer=message.peer),
                )

    def _report_waiting(self) -> None:
        """Each stream once, as long as it is remembered; a flood is cut short by the log."""
        found, self.shard.waiting.fresh = self.shard.waiting.fresh, []
        for stream in found:
            self._telemetry.refusal(STREAM_WAITS)
            _log.warning(
                "a stream begins in the middle and waits: message %d was offered, it follows %d, "
                "and %s; hint: 'msmq-bridge stream list' shows it, 'msmq-bridge stream adopt' "
                "takes it up",
                stream.number,
                stream.previous,
                f"{stream.have.number} was the last one taken here"
                if stream.have.number
                else "none was ever taken here",
                extra=fields(
                    reason=STREAM_WAITS,
                    peer=stream.peer,
                    transport="binary",
                    queue_manager=stream.source,
                    destination=shown(stream.destination),
                ),
            )

    def _admit_carefully(self, submission: Submission) -> Submission:
        """The first part of it; the rest waits."""
        if len(submission.messages) > PART:
            submission, *rest = cut(submission)
            self._waiting.extendleft(reversed(rest))
            self._suspects.left += len(rest)
        self._suspects.ends = []
        verdicts: list[Verdict] = []
        for index, message in enumerate(submission.messages):
            doomed = submission.doomed.get(index)
            verdict, end = self.shard.admit_one(
                message,
                submission.via,
                doomed,
                is_routed=submission.is_routed,
                turn=submission.turn,
            )
            verdicts.append(verdict)
            self._suspects.ends.append(end)
        submission.verdicts = verdicts
        return submission

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

    async def _read_bodies(self, submission: Submission, wanted: Sequence[Wanted]) -> None:
        try:
            submission.readings = await beside_the_loop(partial(read_all, wanted))
        except Exception:  # one of them raises: `admit` reads them one by one, and refuses it
            submission.readings = {}

    async def _look_at(self, prepare: Prepare, topics: set[str], asked: Submission) -> None:
        try:
            asked.denied |= await prepare(topics, asked.messages[0].peer)
        except SinkUnavailable as error:
            _log.warning("%s; trying again", error)
            await asyncio.sleep(RETRY_S[-1])

    def _on_looked(self, task: asyncio.Task[None]) -> None:
        """A bug of ours ends the pump, loudly; else its messages would wait for ever."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = fault
            self._wake()

    def put(self, key: str, value: bytes | None) -> None:
        """A state entry of the owner's, durable with the next unit; None removes it."""
        self._puts[key] = value
        self._wake()

    def has_settled(self, key: str) -> bool:
        """Kafka has what was `put` there."""
        return key not in self._puts and key not in self._flying_puts

    def forget(self, ordinals: Sequence[int]) -> None:
        """Acks that their peers have taken."""
        self._forgotten += ordinals
        self._wake()

    def lighten(self, entries: Sequence[OutboxEntry]) -> None:
        """Acks to peers that cannot be reached, without the bodies they had. Should that get lost,
        they are as they were."""
        self._lightened += entries
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
        if committed_unit(snapshot) < self._settled_number:
            raise SinkUnavailable(self._state_is_lost(committed_unit(snapshot)))
        self._settled_number = committed_unit(snapshot)
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
        self.shard.restore(snapshot, int(time.time()))
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
        self._tell(self.on_due, due, self)  # first: final stream receipts wait for those of streams
        self._tell(self.on_acks, waiting, self)
        self._tell(self.on_forwards, forwards, self)
        return snapshot

    def _tell(self, callback: Callable[..., None], *what: object) -> None:
        """What is committed stands: one listener that raises must not keep it from the others."""
        try:
            callback(*what)
        except Exception:
            self._telemetry.refusal(INTERNAL_ERROR.reason)
            _log.exception("internal error: what was committed is not reported")

    def _state_is_lost(self, unit: int) -> str:
        return (
            f"Kafka: shard {self.name}: the state topic has unit {unit} at its end, and unit "
            f"{self._settled_number} was committed: the topic was deleted or cut off. Restore it; "
            "or restart the appliance to go on without it, then messages may come twice"
        )

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
                    after = time.monotonic() - self._closed_at
                    _log.info("shard %s is open again after %.1f s", self.name, after)
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
                self._tell_closed(error)
                if isinstance(error, UnitRefused):
                    self._look_into(error)
                self.is_open, self.why_closed = False, str(error)
                self.on_change()
                await self.on_failure()
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1

    def _tell_closed(self, error: SinkUnavailable) -> None:
        if self.is_open:
            self._closed_at = time.monotonic()
            _log.warning("%s; holding what came", error)
        else:
            after = time.monotonic() - self._closed_at
            _log.warning("shard %s is closed since %.1f s: %s", self.name, after, error)

    def _look_into(self, error: UnitRefused) -> None:
        """Who is to blame; nobody yet: the same messages come again, traced."""
        for refused in error.refused:
            if refused.of_topic:
                self.on_refused_topic(refused.topic, f"{refused.error}: {refused.text}")
        if self._flying and self._suspects:
            self._blame_messages(self._flying[0], error.refused)
        if self._flying_tasks and self._is_wary:
            self._blame_task(self._flying_tasks[0], error.refused)
        self._suspects.left = max(self._suspects.left, len(self._flying))
        self._is_wary = bool(self._flying_tasks)

    def _blame_messages(self, part: Submission, refused: Sequence[RefusedRecord]) -> None:
        for index, one in self._suspects.blame(refused).items():
            message = part.messages[index]
            if one.error == CLOCK and one.timestamp_ms >= message.arrived_ms:
                # Our time, not its sender's: no reason to lose it. The clock is to be mended.
                self.on_refused_topic(one.topic, CLOCK_IS_WRONG)
            else:
                why = reason_of(one)
                # Refused once more: it was the dead letter, so there is none.
                part.doom(index, replace(why, alone=True) if index in part.doomed else why)

    def _blame_task(self, task: Task, refused: Sequence[RefusedRecord]) -> None:
        """Of a task's copies nothing waits: those that are refused lie among the rejects."""
        start, left = self._copies
        doomed = self._doomed_copies.setdefault(id(task), {})
        for one in refused:
            if 0 <= one.position - start < len(left):
                doomed[left[one.position - start]] = reason_of(one)

    def let_go_of(self, topics: set[str]) -> None:
        """They take nothing: a unit that has records for them is waited for no longer."""
        if topics & self._flying_topics():
            self._sink.let_go()

    @property
    def complaint(self) -> str:
        """Why no sender hears anything of it, and which one it is; nothing if all is well."""
        named = f"shard {self.name}: "
        if not self.is_open:
            return self.why_closed if named in self.why_closed else f"{named}{self.why_closed}"
        age = time.monotonic() - self._publishing
        return f"{named}Kafka has not committed for {age:.0f} s" if age > STALLED_S else ""

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
        lightened, self._lightened = self._lightened, []
        self.shard.lighten(lightened)
        self._fill_tasks()
        self._flying_number, unit = self.shard.take_unit(int(time.time()))
        self._flying_topics = lambda: set(map(_topic, unit.records))
        started = time.monotonic()
        try:
            if unit.claims and self._store_claims is not None:
                await self._store_claims(unit.claims)  # before a record can point to them
            self._publishing = started
            await self._sink.publish(unit, traced=bool(self._suspects) or self._is_wary)
        except SinkUnavailable:
            self._count("unknown", unit, started)
            self._trace("unknown", unit, self._flying, started)
            raise
        finally:
            self._publishing = inf
        self.committed_at = time.monotonic()
        self._count("committed", unit, started)
        flying = self._flying
        self._settle()
        self._trace("committed", unit, flying, started)
        if unit.due:
            self._tell(self.on_due, unit.due, self)
        if unit.acks:
            self._tell(self.on_acks, unit.acks, self)
        if unit.dropped:
            self._tell(self._tell_dropped, unit.dropped)
        if unit.forwards:
            self._tell(self.on_forwards, unit.forwards, self)
        self.on_change()
        if self._waiting and self._preparing is None:
            self._decide()
        if self.shard.history.is_being_written:
            self._wake()  # an idle shard writes the rest of a snapshot, too
        if not self._work.is_set() and not self._waiting:
            self._idle.set()

    def _tell_dropped(self, entries: Sequence[OutboxEntry]) -> None:
        now = int(time.time())
        late = sum(1 for entry in entries if 0 < entry.expires < now)
        if late:
            self._telemetry.refusal("ack-expired", late)
        if over := len(entries) - late:
            self._telemetry.refusal("ack-dropped", over)
        _log.warning(
            "acks given up: %d whose time was over, %d at a bound; the first was for %s",
            late,
            over,
            entries[0].destination,
            extra=fields(reason="ack-dropped" if over else "ack-expired", peer=entries[0].address),
        )
        self.on_dropped(entries)

    def _fill_tasks(self) -> None:
        """As many as one unit may have: after a long outage thousands come at once."""
        room, most = TASK_BYTES, TASKS_AT_ONCE
        if self._suspects or self._is_wary:  # one that is to blame is to be the only one
            most = 1
        while self._tasks and room > 0 and len(self._flying_tasks) < most:
            task = self._tasks.popleft()
            room -= task.size
            self._flying_tasks.append(task)
            before = self.shard.record_count
            task.fill(self.shard)  # a bug here ends the pump: `settled` must not be told
            doomed = self._doomed_copies.get(id(task), _NOTHING)
            self._copies = before, self.shard.divert(before, doomed)
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
        self._settled_number = max(self._settled_number, self._flying_number)
        self._suspects.settled(len(flying))
        if self._doomed_copies:
            for task in tasks:
                self._doomed_copies.pop(id(task), None)
        self._is_wary = self._is_wary and bool(self._tasks)
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
            self._tell(submission.on_decided, verdicts)
        for task in tasks:
            self._tell(task.settled)
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


def _place_of(fault: BaseException) -> tuple[str, str, int]:
    """Where in the code it was raised."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = "" if trace is None else trace.tb_frame.f_code.co_filename
    return type(fault).__name__, code, 0 if trace is None else trace.tb_lineno


class Intake:
    """All shards of this process; who submits does not see them, except that one may be jammed:
    Kafka is away or behind for it, so those who send to it are read no more for now."""

    def __init__(self, pumps: Sequence[ShardPump], on_jam: Callable[[int, bool], None]) -> None:
        """`on_jam` hears of a shard that is jammed, or no longer."""
        self._pumps = pumps
        self._on_jam = on_jam
        self._jammed = [False] * len(pumps)
        self.is_closing = False
        for number, pump in enumerate(pumps):
            pump.on_change = partial(self.look_at, number)

    def submit(
        self,
        messages: Sequence[Message],
        on_decided: OnDecided,
        via: Guid = NULL_GUID,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> set[int]:
        """`via` handed them to us; `on_decided` gets the verdicts, in order, after the commit.

        `is_routed`: it may hand on messages of other queue managers. `turn` is of the session.
        Returns the shards that they go to."""
        pumps = self._pumps
        shards = {shard_of(source, len(pumps)) for source in {m.source for m in messages}}
        if len(shards) == 1:
            (number,) = shards
            pump = pumps[number]
            pump.submit(messages, on_decided, via, is_routed, turn)
            if pump.is_open and not pump.is_loaded:
                return shards  # the commit looks again
        else:
            self._split(messages, via, on_decided, is_routed, turn)
        for number in shards:
            self.look_at(number)
        return shards

    def submit_posted(self, message: Message, on_decided: OnDecided) -> Submission:
        """One that came over HTTP: its stream decides where it goes (SR-33)."""
        number = self.shard_of_posted(message)
        submission = self._pumps[number].submit([message], on_decided)
        self.look_at(number)
        return submission

    def _split(
        self,
        messages: Sequence[Message],
        via: Guid,
        on_decided: OnDecided,
        is_routed: bool,
        turn: Turn | None,
    ) -> None:
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
                is_routed,
                turn,
            )

    def close(self) -> None:
        """What is here is committed, nothing more is read."""
        self.is_closing = True
        self.look()

    def look(self) -> None:
        for number in range(len(self._pumps)):
            self.look_at(number)

    def look_at(self, number: int) -> None:
        """Whether this shard is jammed now; the others do not matter."""
        pump, was_jammed = self._pumps[number], self._jammed[number]
        limit = (MAX_PENDING, MAX_PENDING_BYTES)
        if was_jammed:  # let go at half, so that it does not flutter
            limit = (MAX_PENDING // 2, MAX_PENDING_BYTES // 2)
        over = pump.pending > limit[0] or pump.pending_bytes > limit[1]
        jammed = over or self.is_closing or not pump.is_open
        if jammed != was_jammed:
            self._jammed[number] = jammed
            self._on_jam(number, jammed)

    @property
    def jammed(self) -> bool:
        """Some shard is."""
        return True in self._jammed

    def is_jammed(self, shards: Iterable[int]) -> bool:
        """One of these is. Who uses none yet is read: it may be about to say who it is."""
        return self.is_closing or any(self._jammed[number] for number in shards)

    @property
    def is_all_jammed(self) -> bool:
        return False not in self._jammed

    def shard_of(self, source: Guid) -> int:
        return shard_of(source, len(self._pumps))

    def shard_of_posted(self, message: Message) -> int:
        return shard_of(stream_key(message)[0], len(self._pumps))

    @property
    def pending(self) -> int:
        return sum(p.pending for p in self._pumps)

    def complaints(self) -> list[str]:
        """Of each shard that is closed, or whose unit is not committed in time."""
        return [p.complaint for p in self._pumps if p.complaint]

    @property
    def committed_at(self) -> float:
        """When Kafka took the last unit of any shard."""
        return max(p.committed_at for p in self._pumps)
