"""What happens to a message: the whole decision on one screen.

A shard decides as messages come and collects every effect in the unit that is being filled. Its
memory runs ahead of Kafka by the units that are not committed yet; when one of them fails, the
shard is thrown away and built anew from what Kafka says (`restore`).

What the peer may not do is decided before streams and seen ids are looked at, and they change only
when everything else about a message is done. So a message that makes us raise is undone by cutting
the unit back to where it was, and is refused alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from bridge.core import audit, chunks, forwards, posted
from bridge.core.access import Access
from bridge.core.admission import (
    AT_ONCE,
    DENIED,
    EXPIRED,
    FOREIGN,
    HOPS,
    INTERNAL_ERROR,
    LATE,
    MAX_HOPS,
    NEXT_HOP,
    NO_KEY,
    NO_TOPIC,
    NOT_SIGNED,
    OVER_QUOTA,
    TOO_LARGE,
    UNKNOWN_QUEUE,
    WRONG_TIME,
    Policy,
    Refusal,
    expiry,
    fits_journal,
    foreign,
    is_identified,
    is_over_machine_quota,
    is_over_quota,
    is_past,
    kept_out,
    refusal,
    size_on_wire,
    unroutable,
)
from bridge.core.catalogue import Catalogue, Queue, TopicLimits
from bridge.core.copies import (
    bounded,
    dead_letter,
    diverted,
    is_whole,
    journal_record,
    reject_record,
    without_body,
)
from bridge.core.forwards import Ending, Forwards, Room
from bridge.core.history import History, SeenId, mark_of
from bridge.core.http_receipts import HttpReceipts
from bridge.core.lane import Lane, most_headers, sequence_of
from bridge.core.mapper import Mapper
from bridge.core.mapping import Traces, size_of
from bridge.core.mapping_rules import QueueSettings
from bridge.core.outbox import Outbox
from bridge.core.ports import (
    FORWARDS,
    OUTBOX,
    Claim,
    Forward,
    OutboxEntry,
    Record,
    Snapshot,
    Unit,
    decode_entry,
)
from bridge.core.posted import PREFIX as POSTED
from bridge.core.posted import Due, Posted, PostedStreams
from bridge.core.readings import INLINE, Readings, Wanted, wanted_of
from bridge.core.receipts import Receipts, bare
from bridge.core.reject_budget import DEAD_LETTERS, RejectBudget
from bridge.core.retained.fates import PREFIX as FATES
from bridge.core.retained.fronts import FRONT, Fronts
from bridge.core.retained.keeping import Keeper, places_of
from bridge.core.retained.leaving import Leaving
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.quotas import Shortage
from bridge.core.streams import PREFIX, Place, Stream, StreamKey, Streams, place, stream_key
from bridge.core.waiting_streams import Turn, WaitingStream, WaitingStreams
from bridge.model.cache import Cache, text_size
from bridge.model.classes import MessageClass
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import (
    FOUR_DAYS,
    JOURNAL_NEGATIVE,
    NO_KIND,
    Message,
    Onward,
    Srmp,
    Transaction,
)
from bridge.model.verdict import (
    ACCEPTED,
    BUSY,
    DUPLICATE,
    HANDED_ON,
    NOT_OF_SESSION,
    OTHER_QUEUE_MANAGER,
    STILL_WAITING,
    TOO_MANY_STREAMS,
    TOPIC_UNAVAILABLE,
    WAITING,
    Cursor,
    Outcome,
    Verdict,
)

UNIT_KEY: Final = "unit"
# Why a plain message that asks for it becomes a dead letter. MS-MQQB 3.1.5.8.8 (a topic's largest
# record is a quota of its queue), 3.1.7.1.2; MS-MQDMPR 3.1.7.2.7
_DEAD_LETTERS: Final = frozenset(
    reason.reason for reason in (OVER_QUOTA, TOO_LARGE, EXPIRED, LATE, AT_ONCE, NEXT_HOP)
)
_STRANGER: Final = (DENIED, NOT_SIGNED)  # the sender may not be who it says it is
_LANES: Final = 10_000  # they come from outside: bounded, in bytes too
_LANES_BYTES: Final = 32 << 20
_LANE: Final = 2048  # bytes of a lane beside the names and headers of its messages
SWEEP_S: Final = 86_400
EXPIRE_S: Final = 60  # between two looks for acks whose time is over
BODY: Final = 4096  # bytes of a packet: an ack below them has no body worth taking out
_USUAL_HEADERS: Final = QueueSettings().headers


def shard_of(source: Guid, shards: int) -> int:
    """All streams of one sender, and its plain ids, live in one shard."""
    return crc32(source) % shards


class Shard:
    def __init__(
        self,
        catalogue: Catalogue,
        policy: Policy,
        receipts: Receipts | None = None,
        room: Room | None = None,
        keeper: Keeper | None = None,
        rejects: RejectBudget | None = None,
    ) -> None:
        """`room` is for what waits to go to other hosts, `keeper` for what waits for readers,
        `rejects` for what is refused; all shards of a process share them."""
        self._policy = policy
        self._reject_budget = rejects or RejectBudget()
        self._receipts = receipts or Receipts()
        self.use(catalogue)
        self.streams = Streams()
        self.posted = PostedStreams()
        self.new_history: Callable[[], History] = History
        self.history = self.new_history()
        self.kept: dict[str, bytes] = {}  # state entries that are not streams
        self.outbox = self._new_outbox()
        self.forwards = Forwards(room or Room(policy.quota_kb * 1024))
        self._refused_there = forwards.Refused()
        self.fronts = Fronts()
        self.keeper = keeper  # set before the first message comes
        self._kept_now: list[int] = []  # lookup ids of messages in the unit that fills
        self._kept_before: list[int] = []  # and in the one that may be under way
        self._unit_number = 0
        self._swept = self._expired = 0
        self.waiting = WaitingStreams()  # outlives `restore`: it tells what senders offer
        self._via = NULL_GUID
        self._is_routed = False
        self._turn: Turn | None = None
        self.faults: list[tuple[Message, Exception]] = []  # what was refused for a fault of ours
        self._doomed: Refusal | None = None  # why Kafka will not take the message at hand
        self._begin()

    def _begin(self) -> None:
        self._records: list[Record] = []
        self._rejects: list[Record] = []
        self._entries: list[audit.AuditEntry] = []
        self._state: dict[str, bytes | None] = {}
        self._acks: list[OutboxEntry] = []
        self._unwritten: set[int] = set()  # ordinals of `_acks` that are still owed
        self._dropped: list[OutboxEntry] = []
        self._claims: list[Claim] = []
        self._due: list[Due] = []
        self._forwards: list[Forward] = []

    # -- state ------------------------------------------------------------------------------

    def use(self, catalogue: Catalogue) -> None:
        """From now on these are the queues; what was decided stays."""
        self._catalogue = catalogue
        traces = Traces.CONTINUED if self._policy.continues_traces else Traces.PASSED
        self._mapper = Mapper(catalogue, traces)
        self._lanes: Cache[StreamKey, Lane] = Cache(_LANES, _LANES_BYTES)

    def _new_outbox(self) -> Outbox:
        return Outbox(self._policy.outbox_bytes, self._policy.outbox_destinations)

    def restore(self, snapshot: Snapshot, now_s: int = 0) -> None:
        """Become what the shard's committed transactions made of it. What is over a bound leaves
        with the next unit."""
        self.streams, self.history, self.kept = Streams(), self.new_history(), {}
        self.outbox = self._new_outbox()
        over: dict[str, bytes | None] = {}
        self.posted = PostedStreams()
        self.forwards.clear()
        self.fronts = Fronts()
        self._swept = 0
        self._let_go(snapshot)
        for key, value in snapshot.state.items():
            if key.startswith(PREFIX):
                self.streams.restore(key, value)
            elif key.startswith(POSTED):
                self.posted.restore(key, value)
            elif key.startswith(OUTBOX):
                over |= self._restore_ack(decode_entry(value), now_s)
            elif key.startswith(FORWARDS):
                self.forwards.restore(value)
            elif key.startswith((FRONT, FATES)):
                self.fronts.restore(key, value)
            else:
                self.kept[key] = value
        self.history.restore(snapshot.seen)
        self._unit_number = committed_unit(snapshot)
        self._begin()
        self._state |= over

    def _restore_ack(self, entry: OutboxEntry, now_s: int) -> dict[str, bytes | None]:
        """What changes in the state for it. One of an older version has no end: its time begins
        now."""
        changes: dict[str, bytes | None] = {}
        if not entry.expires and now_s:
            entry = msgspec.structs.replace(entry, expires=now_s + FOUR_DAYS)
            changes[entry.key] = entry.encode()
        return changes | {gone.key: None for gone in self.outbox.add(entry)}

    def _let_go(self, snapshot: Snapshot) -> None:
        """Of the room for messages whose unit was not committed: they are decided again."""
        if self.keeper is not None:
            self.keeper.forget(self._kept_now)
            if committed_unit(snapshot) < self._unit_number:
                self.keeper.forget(self._kept_before)
        self._kept_now, self._kept_before = [], []

    def _let_go_of_last(self, queue: Queue) -> None:
        """It was refused after all."""
        if queue.retains and self.keeper is not None:
            self.keeper.forget((self._kept_now.pop(),))

    def _let_go_of(self, records: Iterable[Record]) -> None:
        """Of the room for copies that are not made after all."""
        if self.keeper is not None:
            self.keeper.forget(places_of(records))

    @property
    def cached_bytes(self) -> int:
        """Bytes that are remembered of streams to be quicker, about."""
        return self._lanes.size + self._mapper.cached_bytes

    def put(self, key: str, value: bytes | None) -> None:
        """A state entry of the owner's, to be committed with the next unit; None removes it."""
        self._state[key] = value
        if value is None:
            self.kept.pop(key, None)
        else:
            self.kept[key] = value

    def forget(self, ordinals: Iterable[int]) -> None:
        """The peer has taken these acks of ours."""
        for ordinal in ordinals:
            if (entry := self.outbox.pop(ordinal)) is not None:
                self._state[entry.key] = None

    def lighten(self, entries: Iterable[OutboxEntry]) -> None:
        """These acks, whose peers cannot be reached, are kept without a body from now on."""
        for entry in entries:
            if entry.ordinal in self.outbox:
                self.outbox.replace(entry)
                self._state[entry.key] = entry.encode()

    def ended(self, ordinal: int, ending: Ending, at_ms: int) -> None:
        """What became of a message for another host. It is in one transaction with its end."""
        forward = self.forwards.pop(ordinal)
        if forward is None:
            return  # it was told before
        self._state[forward.key] = None
        message = forwards.message_of(forward, at_ms)
        if ending is Ending.TAKEN:
            self._entries.append(audit.entry_of(message, HANDED_ON))
        else:
            reason = EXPIRED if ending is Ending.EXPIRED else NEXT_HOP
            if reason is NEXT_HOP:
                self._refused_there.add(message)
            self._refuse(message, None, reason, stage=b"FORWARDING")

    @property
    def unit_number(self) -> int:
        """Of the last unit that was taken."""
        return self._unit_number

    def leave(self, leaving: Leaving, fronts: Mapping[tuple[str, int], int]) -> None:
        """Messages leave their queues, or move; everything before `fronts` is gone then."""
        self._state |= self.fronts.commit(leaving.fates, fronts)
        self._records += leaving.records
        self._entries += leaving.entries
        self._owe(leaving.acks)

    def take_unit(self, now_s: int) -> tuple[int, Unit]:
        """Close the unit that was filled; its number proves later whether it was committed."""
        self._unit_number += 1
        self._sweep(now_s)
        self._expire(now_s)
        seen = self.history.take_fresh(now_s, self._unit_number)
        part = self.history.take_part(now_s, self._unit_number)
        if part is not None:
            seen[part.key] = part.value
        unit = Unit(
            records=self._records,
            state=self._state
            | self.streams.take_changes()
            | self.posted.take_changes()
            | {UNIT_KEY: msgspec.json.encode(self._unit_number)},
            seen=seen,
            snapshot_begins=part.key if part is not None and part.is_first else "",
            snapshot_ends=part is not None and part.is_last,
            audit=list(audit.encode(self._entries)),
            rejects=self._rejects,
            acks=self._owed(),
            dropped=self._dropped,
            claims=self._claims,
            due=self._due,
            forwards=self._forwards,
        )
        self._begin()
        self._kept_before, self._kept_now = self._kept_now, []
        return self._unit_number, unit

    def _sweep(self, now_s: int) -> None:
        """Once a day. A longer time means that the clock was set: nobody's age is known then."""
        passed = now_s - self._swept
        if 0 <= passed < SWEEP_S:
            return
        self._swept = now_s
        if SWEEP_S <= passed < 2 * SWEEP_S:
            self.posted.retire(now_s)

    def _expire(self, now_s: int) -> None:
        if abs(now_s - self._expired) >= EXPIRE_S:
            self._expired = now_s
            self._give_up(self.outbox.expired(now_s))

    # -- decisions --------------------------------------------------------------------------

    def unknown_topics(
        self, messages: Sequence[Message], via: Guid = NULL_GUID, *, is_routed: bool = False
    ) -> set[str]:
        """Topics that somebody must look at, or make, before these messages can be decided."""
        found = set[str]()
        self._via, self._is_routed = via, is_routed
        for message in messages if self._catalogue.is_open_ended else ():
            try:
                found.update(self._unknown_topics(message))
            except Exception:  # noqa: S112 - `admit` meets it again, and refuses the message
                continue
        return found

    def _unknown_topics(self, message: Message) -> Iterable[str]:
        queue = self._catalogue.find(message.destination)
        if queue is None or self._is_refused(message, queue):
            return ()
        return self._catalogue.unknown_topics(queue, message)

    def bodies_to_read(self, messages: Sequence[Message]) -> list[Wanted]:
        """What to read before these messages are decided; nothing if it is little.

        The results go to `use_readings`. A body that has not been read is read in `admit`.
        """
        found = list[Wanted]()
        for message in messages if self._catalogue.reads_bodies else ():
            try:
                wanted = self._body_to_read(message)
            except Exception:  # noqa: S112 - as above
                continue
            if wanted:
                found.append(wanted)
        return found if sum(len(wanted[0]) for wanted in found) > INLINE else []

    def _body_to_read(self, message: Message) -> Wanted | None:
        queue = self._catalogue.find(message.destination)
        if queue is None or self._is_refused(message, queue):
            return None
        return wanted_of(message, queue.mapping.value, queue.mapping.key.json_path)

    def use_readings(self, readings: Readings) -> None:
        """For the messages that are decided next."""
        self._mapper.readings = readings

    def _is_refused(self, message: Message, queue: Queue) -> bool:
        """Whatever its stream says: no topic is made for it."""
        if self._is_strange(message):
            return True
        if message.srmp is not None and unroutable(message, message.srmp, queue):
            return True
        return bool(kept_out(message, queue, self._catalogue) or refusal(message, queue))

    def _is_strange(self, message: Message) -> bool:
        """Its source is not the queue manager at the other end of the session. MS-MQQB 3.1.1.5:
        only a router hands on messages of others."""
        return message.source != self._via != NULL_GUID and not self._is_routed

    def admit(
        self,
        messages: Sequence[Message],
        via: Guid = NULL_GUID,
        *,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> list[Verdict]:
        """`via` is the queue manager that handed them to us, NULL_GUID: no session did. `turn` is
        of the session."""
        self._via, self._is_routed, self._turn = via, is_routed, turn
        verdicts: list[Verdict] = []
        while (position := len(verdicts)) < len(messages):
            message = messages[position]
            if message.kind is not NO_KIND and not self._is_strange(message):
                self._take_run(messages, position, verdicts)
            if len(verdicts) == position:
                verdicts.append(self._alone(message))
        return verdicts

    def _alone(self, message: Message) -> Verdict:
        """Decide on one message; what raises meanwhile refuses this one and no other."""
        lengths = [len(part) for part in self._parts()]
        kept = len(self._kept_now)
        try:
            return self._decide(message)
        except Exception as fault:
            self._cut_back(lengths, kept)
            self.faults.append((message, fault))
            return self._fail(message)

    def _parts(self) -> tuple[list[Any], ...]:
        return (
            self._records,
            self._rejects,
            self._entries,
            self._acks,
            self._claims,
            self._due,
            self._forwards,
        )

    def _cut_back(self, lengths: Sequence[int], kept: int) -> None:
        """To what the unit had before the message."""
        own = {entry.ordinal for entry in self._acks[lengths[3] :]}
        for entry in self._acks[lengths[3] :]:
            self.outbox.pop(entry.ordinal)
            self._state.pop(entry.key, None)
        self._unwritten -= own
        # Acks of other messages that gave way to these stay given up, in the state as well.
        self._dropped = [entry for entry in self._dropped if entry.ordinal not in own]
        for forward in self._forwards[lengths[6] :]:
            self.forwards.pop(forward.ordinal)
            del self._state[forward.key]
        for part, length in zip(self._parts(), lengths, strict=True):
            del part[length:]
        if self.keeper is not None:
            self.keeper.forget(self._kept_now[kept:])
        del self._kept_now[kept:]

    def _fail(self, message: Message) -> Verdict:
        """Refuse a message that we cannot deal with, in words that depend on little of it."""
        tx = message.transaction
        cursor = self._past(message, tx) if tx is not None and message.srmp is None else None
        lengths, kept = [len(part) for part in self._parts()], len(self._kept_now)
        try:
            return self._refuse(message, None, INTERNAL_ERROR, cursor)
        except Exception:
            self._cut_back(lengths, kept)
        bare = Message(
            source=message.source,
            ordinal=message.ordinal,
            destination="",
            transaction=tx,
            arrived_ms=message.arrived_ms,
            body=message.body,
            wire=message.wire,
            peer=message.peer,
            transport=message.transport,
            srmp=message.srmp,
        )
        verdict = _refused(INTERNAL_ERROR, cursor)
        self._entries.append(audit.entry_of(bare, verdict))
        self._rejects.append(reject_record(bare, None, INTERNAL_ERROR, b"ADMISSION"))
        return verdict

    def _past(self, message: Message, tx: Transaction) -> Cursor | None:
        """Where its stream stands once it is refused: behind it, if it may move the stream."""
        told = Cursor(tx.sequence_id, tx.number)
        try:
            if not self._catalogue.is_local(message.destination_qm):
                return None
            queue = self._catalogue.find(message.destination)
            if queue is None or kept_out(message, queue, self._catalogue):
                return told
        except Exception:
            return told
        key = message.source, message.destination
        known = self.streams.get(key)
        if place(known, tx) is not Place.NEXT:
            return Cursor(known.sequence_id, known.number)
        if self.streams.has_room(key, message.peer):
            self.streams.advance(key, told, message.peer)
        return told

    def admit_one(
        self,
        message: Message,
        via: Guid,
        doomed: Refusal | None,
        *,
        is_routed: bool = False,
        turn: Turn | None = None,
    ) -> tuple[Verdict, int]:
        """The same, the long way; and how many records the unit has then.

        `doomed`: Kafka refused what this message became for good, so it becomes no record."""
        before, self._doomed = len(self._records), doomed
        try:
            alone = [msgspec.structs.replace(message, kind=NO_KIND)]
            (verdict,) = self.admit(alone, via, is_routed=is_routed, turn=turn)
        finally:
            self._doomed = None
        if doomed is not None and (doomed.alone or doomed.reason != TOO_LARGE.reason):
            # Not even a dead letter: the reject has all of it.
            self._let_go_of(self._records[before:])
            del self._records[before:]
        return verdict, len(self._records)

    @property
    def record_count(self) -> int:
        """Of the unit that fills."""
        return len(self._records)

    def divert(self, start: int, refused: Mapping[int, Refusal]) -> list[int]:
        """Copies that their topics do not take lie among the rejects: those of the records since
        `start` that Kafka has `refused`, and those to topics that are away. Returns which of them
        are left."""
        made, self._records[start:] = self._records[start:], []
        left: list[int] = []
        for position, record in enumerate(made):
            reason = refused.get(position)
            if reason is None and (why := self._catalogue.closed.get(record.topic)):
                reason = msgspec.structs.replace(NO_TOPIC, detail=why)
            if reason is None:
                self._records.append(record)
                left.append(position)
            else:
                self._rejects.append(diverted(record, reason))
                self._let_go_of((record,))
        return left

    def _decide(self, message: Message) -> Verdict:
        if message.srmp is not None:
            return self._posted(message, message.srmp)
        if self._is_strange(message):
            return self._postpone(message, NOT_OF_SESSION)
        if foreign(message, self._catalogue) is FOREIGN:
            # Acknowledged, it would be lost: its sender would drop it, and no route takes it on.
            return self._postpone(message, OTHER_QUEUE_MANAGER)
        tx = message.transaction
        return self._plain(message) if tx is None else self._transactional(message, tx)

    def _take_run(self, messages: Sequence[Message], start: int, verdicts: list[Verdict]) -> None:
        """The short way: as many as look alike and need nothing special; maybe none."""
        first, before, entered = messages[start], len(self._records), len(self._entries)
        lane: Lane | None = None
        try:
            lane = self._lane(first)
            if not lane.is_open:
                return
            if first.transaction is None:
                lane.take_plain(messages, start, self.history, self._records, self._entries)
            else:
                lane.take_in_order(
                    messages,
                    start,
                    self.streams.get((first.source, first.destination)),
                    self._records,
                    self._entries,
                )
        except Exception:  # the long way tells which one it is
            if lane is not None:
                lane.is_open = False
            del self._records[before + len(self._entries) - entered :]
        taken = len(self._entries) - entered
        if not taken:
            return
        if first.transaction is None:
            verdicts += [ACCEPTED] * taken
            return
        tx = messages[start + taken - 1].transaction
        assert tx is not None
        cursor = Cursor(tx.sequence_id, tx.number)
        self._advance((first.source, first.destination), cursor, first.peer)
        verdicts += [ACCEPTED] * (taken - 1)  # the last one speaks for the stream
        verdicts.append(Verdict(Outcome.ACCEPTED, 0, "", cursor))

    def _lane(self, message: Message) -> Lane:
        key = message.source, message.destination
        lane, queue = self._lanes.get(key), self._catalogue.find(message.destination)
        if (
            lane is None
            or lane.kind is not message.kind
            or lane.queue is not queue
            or lane.sequence != sequence_of(message)
        ):
            lane = Lane(message, queue, self._catalogue, self._mapper, self._policy)
            size = _LANE + text_size(message.destination) + 2 * len(message.wire)
            self._lanes.keep(key, lane, size)
        return lane

    def _plain(self, message: Message) -> Verdict:
        queue = self._catalogue.find(message.destination)
        reason = kept_out(message, queue, self._catalogue)
        if queue is None or reason is not None:
            return self._refuse(message, queue, reason or UNKNOWN_QUEUE)
        now, seen = message.arrived_ms // 1000, _seen_id(message, queue)
        if seen in self.history:  # row 1
            self.history.refresh(seen, message.peer, now)
            self._entries.append(audit.entry_of(message, DUPLICATE))
            return DUPLICATE
        reason = refusal(message, queue) or expiry(message, self._policy)
        if reason is None and self._is_full(message, queue):
            return self._postpone(message)
        if reason is None:
            verdict = self._accept(message, queue, None)
        else:
            verdict = self._refuse(message, queue, reason)
        self.history.add(seen, message.peer, now)
        return verdict

    def _transactional(self, message: Message, tx: Transaction) -> Verdict:
        key = message.source, message.destination
        queue = self._catalogue.find(message.destination)
        outside = kept_out(message, queue, self._catalogue)
        known = self.streams.get(key)
        where, cursor = place(known, tx), Cursor(known.sequence_id, known.number)
        is_local = self._catalogue.is_local(message.destination_qm)
        if where is Place.BEHIND and is_local and outside is not DENIED:
            # Before rows 3 to 10: a late copy of a message that we took must not be refused, or
            # the sender would dead-letter what was delivered. A stranger does not hear of it.
            return self._drop(message, queue, Outcome.DUPLICATE, cursor)
        if outside is not None or queue is None:
            # It moves no stream, and its sender hears its own number, so that it does not send it
            # for ever (MS-MQQB 2.2.4: accepted or rejected). In transit: no order ack (3.1.1.5).
            told = Cursor(tx.sequence_id, tx.number) if is_local else None
            return self._refuse(message, queue, outside or UNKNOWN_QUEUE, told)
        reason = refusal(message, queue) or expiry(message, self._policy)
        if reason is None and self._is_full(message, queue):
            return self._postpone(message)
        if where is Place.AHEAD and reason not in _STRANGER and not self._is_held_back():
            if self._takes_up(known):
                where = Place.NEXT
            else:
                self.waiting.note(message, tx, cursor, self._turn)
        if where is Place.NEXT:
            if not self.streams.has_room(key, message.peer):
                return self._postpone(message, TOO_MANY_STREAMS)
            # Taken or refused for good: the stream moves on, else it would block.
            cursor = Cursor(tx.sequence_id, tx.number)
        if reason is not None:
            verdict = self._refuse(message, queue, reason, cursor)
        elif where is Place.AHEAD:
            return self._drop(message, queue, Outcome.OUT_OF_ORDER, cursor)
        else:
            verdict = self._accept(message, queue, cursor)
        if where is Place.NEXT:
            self._advance(key, cursor, message.peer)
        return verdict

    def _is_held_back(self) -> bool:
        """A message before this one was left to its sender, which sends both again in order."""
        return self._turn is not None and self._turn.held_back

    def _takes_up(self, known: Stream) -> bool:
        """Whether a stream may begin in the middle: at its first contact, if the settings say so.
        Messages that a router hands on may overtake each other, so there the first one that comes
        need not be the oldest."""
        is_new = known.sequence_id == 0 and known.number == 0
        return self._policy.adopts_streams and is_new and not self._is_routed

    def _advance(self, key: StreamKey, cursor: Cursor, peer: str) -> None:
        self.streams.advance(key, cursor, peer)
        if self.waiting:
            self.waiting.pop(key)

    def adopt(self, stream: WaitingStream) -> bool:
        """Take the stream up where it was offered. False: it has moved since, or has no room."""
        known = self.streams.get(stream.key)
        have = Cursor(known.sequence_id, known.number)
        if have != stream.have or not self.streams.has_room(stream.key, stream.peer):
            return False
        self._advance(stream.key, stream.taken_up, stream.peer)
        return True

    def forget_stream(self, key: StreamKey) -> bool:
        """Remove its cursor. False: there is none."""
        self.waiting.pop(key)
        tables = [table for table in (self.streams, self.posted) if key in table]
        for table in tables:
            table.drop(key)
        return bool(tables)

    def _posted(self, message: Message, srmp: Srmp) -> Verdict:
        """Over HTTP, in the order of SR-1. What is refused changes no state: the sender tries
        again, or gives up and bridges the gap (SR-24, SR-26)."""
        if srmp.onward is not None:
            return self._hand_on(message, srmp.onward)
        queue = self._catalogue.find(message.destination)
        if reason := unroutable(message, srmp, queue):
            return self._refuse(message, queue, reason)
        assert queue is not None
        is_denied = queue.access is not None and queue.access.judge(message) is not Access.GRANTED
        if is_denied and not self._is_stream_s_own(message, queue):
            return self._refuse(message, queue, DENIED)
        if verdict := self._out_of_turn(message, srmp, queue):
            return verdict
        if is_denied:
            # MC-MQSRM 3.1.5.1.6: streams come before access (3.1.5.1.12), so a message that may
            # not enter is acknowledged and gone. Its sender goes on with the next one.
            row = self._row_after(message, srmp)
            verdict = self._refuse(message, queue, DENIED)
            if self.posted.has_room(stream_key(message), message.peer, row):
                self._take(message, queue, row)
            return verdict
        if reason := refusal(message, queue):
            return self._refuse(message, queue, reason)
        if self._is_full(message, queue) or self._is_over_quota(message, queue):
            return self._postpone(message)  # SR-6, SR-7
        row = self._row_after(message, srmp)
        if row is not None and not self.posted.has_room(stream_key(message), message.peer, row):
            return self._postpone(message, TOO_MANY_STREAMS)
        receipts = HttpReceipts(message, srmp, self._receipts.local, self._receipts.ordinals)
        if self._policy.discards_expired and is_past(message, self._policy):  # SR-61
            verdict = self._refuse(message, queue, EXPIRED)
            self._owe(receipts.left(MessageClass.NACK_RECEIVE_TIMEOUT, row))
            self._take(message, queue, row)
            return verdict
        verdict = self._accept(message, queue, None, row)
        if verdict.outcome is Outcome.ACCEPTED:
            self._owe(receipts.delivered())
            if not queue.retains:  # a forward queue receives what it takes
                self._owe(receipts.left(MessageClass.ACK_RECEIVE, row))
            self._take(message, queue, row)
        return verdict

    def _is_stream_s_own(self, message: Message, queue: Queue) -> bool:
        """Whether it comes from where its stream is known, in the name of the same source. Only
        then may a message that `allow` keeps out move the stream: it might be a stranger's. Where
        certificates count, an address and a GUID prove too little."""
        if message.transaction is None or (queue.access and queue.access.names_certificates):
            return False
        row = self.posted.get(stream_key(message))
        return bool(row.text) and (row.peer, row.source) == (message.peer, str(message.source))

    def _is_full(self, message: Message, queue: Queue) -> bool:
        """Row 12, and a topic that takes nothing now."""
        if self._catalogue.closed and self._catalogue.is_closed(queue, message):
            return True
        if queue.retains and self.keeper is not None:
            return self.keeper.shortage(queue.name, message) is Shortage.MACHINE
        return is_over_machine_quota(message, self._policy)

    def _is_over_quota(self, message: Message, queue: Queue) -> bool:
        """Row 13"""
        if queue.retains and self.keeper is not None:
            return self.keeper.shortage(queue.name, message) is Shortage.QUEUE
        return is_over_quota(message, queue)

    def _hand_on(self, message: Message, onward: Onward) -> Verdict:
        """SR-15: for another host. It has no queue here, so nothing else is asked of it."""
        local = self._receipts.local
        if len(onward.via) >= MAX_HOPS or any(str(local) in hop for hop in onward.via):
            return self._refuse(message, None, HOPS)
        if self._policy.discards_expired and is_past(message, self._policy):  # SR-61
            return self._refuse(message, None, EXPIRED)
        if self._refused_there.has(message):
            return self._refuse(message, None, NEXT_HOP)
        forward = forwards.make(message, onward, self._policy, local, self._receipts.ordinals())
        if self.forwards.knows(forward):
            self._entries.append(audit.entry_of(message, STILL_WAITING))
            return STILL_WAITING
        if forward.size > forwards.MAX_BYTES:
            return self._refuse(message, None, TOO_LARGE)
        if not self.forwards.has_room(forward):
            return self._postpone(message)  # SR-6
        self.forwards.add(forward)
        self._state[forward.key] = forward.encode()
        self._forwards.append(forward)
        self._entries.append(audit.entry_of(message, WAITING))
        return WAITING

    def _out_of_turn(self, message: Message, srmp: Srmp, queue: Queue) -> Verdict | None:
        """Here before, or ahead of what is missing; None: it may come. SR-21, SR-30, SR-37"""
        tx = message.transaction
        if tx is None:
            seen = _seen_id(message, queue)
            if not is_identified(message) or seen not in self.history:
                return None
            self.history.refresh(seen, message.peer, message.arrived_ms // 1000)
            self._entries.append(audit.entry_of(message, DUPLICATE))
            return DUPLICATE
        key = stream_key(message)
        row = self.posted.get(key)
        where = posted.place(row, tx, srmp)
        if where is Place.NEXT:
            return None
        if row.text:
            self.posted.advance(key, posted.not_taken(row, message))
        outcome = Outcome.OUT_OF_ORDER
        if where is Place.BEHIND:
            outcome = Outcome.DUPLICATE
            self._due.append(posted.repeated(key, row, tx, message.peer))
        return self._drop(message, queue, outcome, Cursor(row.id, row.number))

    def _take(self, message: Message, queue: Queue, row: Posted | None) -> None:
        """It counts as here from now on; `row` is its stream's, if it has one. SR-24, SR-32"""
        if row is None:
            if is_identified(message):
                seen = _seen_id(message, queue)
                self.history.add(seen, message.peer, message.arrived_ms // 1000)
            return
        key = stream_key(message)
        self._due.append(posted.due_of(key, row))
        self.posted.advance(key, row)

    def _row_after(self, message: Message, srmp: Srmp) -> Posted | None:
        """Of its stream, once it is taken."""
        if message.transaction is None:
            return None
        before = self.posted.get(stream_key(message))
        return posted.taken(before, message, message.transaction, srmp)

    def _postpone(self, message: Message, verdict: Verdict = BUSY) -> Verdict:
        """Row 12: no nack; the session ends, and the sender keeps what it has."""
        if self._turn is not None:
            self._turn.held_back = True
        queue = self._catalogue.find(message.destination) if self._catalogue.closed else None
        if verdict is BUSY and queue is not None and self._catalogue.is_closed(queue, message):
            verdict = TOPIC_UNAVAILABLE
        self._entries.append(audit.entry_of(message, verdict))
        return verdict

    def _drop(
        self, message: Message, queue: Queue | None, outcome: Outcome, cursor: Cursor
    ) -> Verdict:
        """Row 11: no record, no nack; the order ack says where the stream stands (QB-83)."""
        verdict = Verdict(outcome, 0, "stream-order", cursor)
        self._entries.append(audit.entry_of(message, verdict, queue.name if queue else ""))
        return verdict

    def _accept(
        self,
        message: Message,
        queue: Queue,
        cursor: Cursor | None,
        stream: Posted | None = None,
    ) -> Verdict:
        if self._doomed is not None:
            return self._refuse(message, queue, self._doomed, cursor)
        if self._is_over_quota(message, queue):
            return self._refuse(message, queue, OVER_QUOTA, cursor)
        if message.time_to_be_received == 0 and not queue.retains:
            # MS-MQDMPR 3.1.2.4: it is in its queue, and leaves it before it can be received. From a
            # retained queue it is removed as any other (`Flights.enter`).
            return self._refuse(message, queue, AT_ONCE, cursor)
        limits: Queue | TopicLimits = queue
        if not queue.is_settled:
            found = self._catalogue.limits_for(queue, message)
            if found is None:
                return self._refuse(message, queue, NO_TOPIC, cursor)
            limits = found
        max_bytes = limits.max_bytes
        text = message.id
        record = self._mapper.record(message, queue, text)
        if record.key is None and limits.wants_key:
            return self._refuse(message, queue, NO_KEY, cursor)
        if record.timestamp_ms < message.arrived_ms - limits.before_ms:
            return self._refuse(message, queue, WRONG_TIME, cursor)
        if queue.retains and self.keeper is not None:
            record, place = self.keeper.keep(record, message, queue.name, self._via, stream)
            self._kept_now.append(place)
        made = [record]
        if _may_be_too_large(record, message, queue, max_bytes) and size_of(record) > max_bytes:
            made = self._shrink(record, queue, max_bytes, text)
            if not made:
                self._let_go_of_last(queue)
                return self._refuse(message, queue, TOO_LARGE, cursor)
        self._records += made
        if queue.journal and not queue.retains and fits_journal(message, queue):
            whole = made[0] is record and is_whole(queue)
            self._records += [self._in_journal(r, message, queue, whole) for r in made]
        verdict = ACCEPTED if cursor is None else Verdict(Outcome.ACCEPTED, 0, "", cursor)
        tx = message.transaction
        if (
            message.ack or (tx is not None and (tx.final_ack or message.journal))
        ) and message.srmp is None:
            told = self._receipts.arrived if queue.retains else self._receipts.accepted
            self._owe(told(message, self._via))
        if message.trace_queue is not None:
            self._owe(self._receipts.report(message))
        partition = -1 if record.partition is None else record.partition
        stamp = record.timestamp_ms
        self._entries.append(
            audit.entry_of(message, verdict, queue.name, record.topic, partition, stamp, text)
        )
        return verdict

    def _in_journal(self, record: Record, message: Message, queue: Queue, whole: bool) -> Record:
        """Readers can have it if it is whole, and if their journal has room: the record is in the
        topic in any case (docs/decisions.md, Q1)."""
        copy = journal_record(record, queue)
        if not whole:
            return copy
        return self._copied(copy, message, journal_of(queue.name.lower())) or copy

    def _copied(self, copy: Record, message: Message, queue: str) -> Record | None:
        """Marked for the readers of a journal or dead-letter queue; None: it has no room."""
        if self.keeper is None:
            return copy
        kept = self.keeper.copy(copy, message, queue)
        if kept is None:
            return None
        self._kept_now.append(kept[1])
        return kept[0]

    def _shrink(self, record: Record, queue: Queue, max_bytes: int, text: str) -> list[Record]:
        """What goes into the topic in place of a record that it does not take; nothing: refuse."""
        made, claims = chunks.fit(record, max_bytes, queue.mapping, text)
        self._claims += claims
        return made

    def _refuse(
        self,
        message: Message,
        queue: Queue | None,
        reason: Refusal,
        cursor: Cursor | None = None,
        stage: bytes = b"ADMISSION",
    ) -> Verdict:
        verdict = _refused(reason, cursor)
        self._entries.append(audit.entry_of(message, verdict, queue.name if queue else ""))
        if message.soap_compound:  # with the body, which it repeats, more than our topics take
            message = msgspec.structs.replace(message, soap_compound=b"")
        record, size = reject_record(message, queue, reason, stage), size_on_wire(message)
        is_kept = self._reject_budget.takes(message.peer, size, message.arrived_ms // 1000)
        self._rejects.append(record if is_kept else without_body(record))
        if (
            _is_letter(message, reason)
            and message.transaction is None
            and (message.journal & JOURNAL_NEGATIVE)
            and self._policy.deadletter_topic not in self._catalogue.closed
            and is_kept
            and self._has_room_for_letter(size)
        ):
            letter = dead_letter(message, reason, self._policy.deadletter_topic)
            properties = len(letter.headers)
            letter = bounded(letter, message)
            copy: Record | None = letter
            if len(letter.headers) == properties and len(letter.value) == len(message.body):
                copy = self._copied(letter, message, DEADLETTER)  # it is whole
            if copy is not None:
                self._records.append(copy)
        if message.srmp is None and reason is AT_ONCE:
            self._owe(self._receipts.expired(message, self._via))
        elif message.srmp is None:
            self._owe(self._receipts.refused(message, reason.message_class, self._via))
        return verdict

    def _has_room_for_letter(self, size: int) -> bool:
        return self.keeper is None or self.keeper.held(DEADLETTER) + size <= DEAD_LETTERS

    def _owe(self, acks: Iterable[OutboxEntry]) -> None:
        for entry in acks:
            if len(entry.packet) > BODY and self.outbox.is_strained(entry.counted_for):
                entry = bare(entry)
            self._state[entry.key] = entry.encode()
            self._acks.append(entry)
            self._unwritten.add(entry.ordinal)
            if gone := self.outbox.add(entry):
                self._give_up(gone)

    def _owed(self) -> list[OutboxEntry]:
        """The acks of the unit, without those that were given up in it."""
        if len(self._unwritten) == len(self._acks):
            return self._acks
        return [entry for entry in self._acks if entry.ordinal in self._unwritten]

    def _give_up(self, entries: Iterable[OutboxEntry]) -> None:
        """An ack of this unit is not in Kafka: nothing is written for it."""
        for entry in entries:
            if entry.ordinal in self._unwritten:
                self._unwritten.remove(entry.ordinal)
                del self._state[entry.key]
            else:
                self._state[entry.key] = None
            self._dropped.append(entry)


def committed_unit(snapshot: Snapshot) -> int:
    """The number of the last unit that Kafka has."""
    return msgspec.json.decode(snapshot.state.get(UNIT_KEY, b"0"), type=int)


def _seen_id(message: Message, queue: Queue) -> SeenId:
    return message.source, queue.name, mark_of(message)


def _refused(reason: Refusal, cursor: Cursor | None) -> Verdict:
    outcome = Outcome.EXPIRED if reason in (EXPIRED, LATE, AT_ONCE) else Outcome.REJECTED
    return Verdict(outcome, reason.message_class, reason.reason, cursor)


def _is_letter(message: Message, reason: Refusal) -> bool:
    """Over HTTP a sender that hears 400 makes the dead letter itself (MC-MQSRM 3.1.5.2.1)."""
    if reason.alone or (message.srmp is not None and reason.reason == TOO_LARGE.reason):
        return False
    return reason.reason in _DEAD_LETTERS


def _may_be_too_large(record: Record, message: Message, queue: Queue, max_bytes: int) -> bool:
    """Spares the counting for most, unless the mapping names or adds headers."""
    if queue.retains or not message.wire or queue.mapping.headers is not _USUAL_HEADERS:
        return True
    return len(record.value) + len(record.key or b"") + most_headers(message) > max_bytes
