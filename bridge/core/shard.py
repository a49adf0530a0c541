"""What happens to a message: the whole decision on one screen.

A shard decides as messages come and collects every effect in the unit that is being filled. Its
memory runs ahead of Kafka by the units that are not committed yet; when one of them fails, the
shard is thrown away and built anew from what Kafka says (`restore`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from zlib import crc32

import msgspec

from bridge.core import audit, chunks, forwards, posted
from bridge.core.admission import (
    EXPIRED,
    HOPS,
    LATE,
    MAX_HOPS,
    NEXT_HOP,
    NO_TOPIC,
    OVER_QUOTA,
    TOO_LARGE,
    Policy,
    Refusal,
    expiry,
    fits_journal,
    foreign,
    is_identified,
    is_over_machine_quota,
    is_over_quota,
    is_past,
    refusal,
    unroutable,
)
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.copies import bounded, dead_letter, is_whole, journal_record, reject_record
from bridge.core.forwards import Ending, Forwards, Room
from bridge.core.history import History, mark_of
from bridge.core.http_receipts import HttpReceipts
from bridge.core.lane import Lane, most_headers, sequence_of
from bridge.core.mapper import Mapper
from bridge.core.mapping import Traces, size_of
from bridge.core.mapping_rules import QueueSettings
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
from bridge.core.receipts import Receipts
from bridge.core.retained.fates import PREFIX as FATES
from bridge.core.retained.fronts import FRONT, Fronts
from bridge.core.retained.keeping import Keeper
from bridge.core.retained.leaving import Leaving
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.quotas import Shortage
from bridge.core.streams import PREFIX, Place, StreamKey, Streams, place, stream_key
from bridge.model.classes import MessageClass
from bridge.model.guid import NULL_GUID, Guid
from bridge.model.message import JOURNAL_NEGATIVE, NO_KIND, Message, Onward, Srmp, Transaction
from bridge.model.verdict import (
    ACCEPTED,
    BUSY,
    DUPLICATE,
    HANDED_ON,
    STILL_WAITING,
    WAITING,
    Cursor,
    Outcome,
    Verdict,
)

UNIT_KEY: Final = "unit"
_DEAD_LETTERS: Final = (OVER_QUOTA, EXPIRED, LATE, NEXT_HOP)
_LANES: Final = 10_000
SWEEP_S: Final = 86_400
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
    ) -> None:
        """`room` is for what waits to go to other hosts, `keeper` for what waits for readers; all
        shards of a process share them."""
        self._policy = policy
        self._receipts = receipts or Receipts()
        self.use(catalogue)
        self.streams = Streams()
        self.posted = PostedStreams()
        self.history = History()
        self.kept: dict[str, bytes] = {}  # state entries that are not streams
        self.outbox: dict[int, OutboxEntry] = {}
        self.forwards = Forwards(room or Room(policy.quota_kb * 1024))
        self.fronts = Fronts()
        self.keeper = keeper  # set before the first message comes
        self._kept_now: list[int] = []  # lookup ids of messages in the unit that fills
        self._kept_before: list[int] = []  # and in the one that may be under way
        self._unit_number = 0
        self._swept = 0
        self._via = NULL_GUID
        self._begin()

    def _begin(self) -> None:
        self._records: list[Record] = []
        self._rejects: list[Record] = []
        self._entries: list[audit.AuditEntry] = []
        self._state: dict[str, bytes | None] = {}
        self._acks: list[OutboxEntry] = []
        self._claims: list[Claim] = []
        self._due: list[Due] = []
        self._forwards: list[Forward] = []

    # -- state ------------------------------------------------------------------------------

    def use(self, catalogue: Catalogue) -> None:
        """From now on these are the queues; what was decided stays."""
        self._catalogue = catalogue
        traces = Traces.CONTINUED if self._policy.continues_traces else Traces.PASSED
        self._mapper = Mapper(catalogue, traces)
        self._lanes: dict[StreamKey, Lane] = {}

    def restore(self, snapshot: Snapshot) -> None:
        """Become what the shard's committed transactions made of it."""
        self.streams, self.history, self.kept, self.outbox = Streams(), History(), {}, {}
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
                entry = decode_entry(value)
                self.outbox[entry.ordinal] = entry
            elif key.startswith(FORWARDS):
                self.forwards.restore(value)
            elif key.startswith((FRONT, FATES)):
                self.fronts.restore(key, value)
            else:
                self.kept[key] = value
        self.history.restore(snapshot.seen)
        self._unit_number = committed_unit(snapshot)
        self._begin()

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

    def put(self, key: str, value: bytes) -> None:
        """A state entry of the owner's, to be committed with the next unit."""
        self.kept[key] = self._state[key] = value

    def forget(self, ordinals: Iterable[int]) -> None:
        """The peer has taken these acks of ours."""
        for ordinal in ordinals:
            if (entry := self.outbox.pop(ordinal, None)) is not None:
                self._state[entry.key] = None

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
        unit = Unit(
            records=self._records,
            state=self._state
            | self.streams.take_changes()
            | self.posted.take_changes()
            | {UNIT_KEY: msgspec.json.encode(self._unit_number)},
            seen=self.history.take_fresh(now_s, self._unit_number),
            audit=list(audit.encode(self._entries)),
            rejects=self._rejects,
            acks=self._acks,
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

    # -- decisions --------------------------------------------------------------------------

    def unknown_topics(self, messages: Sequence[Message]) -> set[str]:
        """Topics that somebody must look at, or make, before these messages can be decided."""
        catalogue, found = self._catalogue, set[str]()
        for message in messages if catalogue.is_open_ended else ():
            queue = catalogue.find(message.destination)
            if queue and not self._is_refused(message, queue):
                found.update(catalogue.unknown_topics(queue, message))
        return found

    def _is_refused(self, message: Message, queue: Queue) -> bool:
        """Whatever its stream says: no topic is made for it."""
        if message.srmp is not None and unroutable(message, message.srmp, queue):
            return True
        return bool(foreign(message, self._catalogue) or refusal(message, queue))

    def admit(self, messages: Sequence[Message], via: Guid = NULL_GUID) -> list[Verdict]:
        """`via` is the queue manager that handed them to us."""
        self._via = via
        if messages and messages[0].srmp is not None:  # those that come so come alone
            return [self._posted(m, m.srmp) for m in messages if m.srmp is not None]
        verdicts: list[Verdict] = []
        while (position := len(verdicts)) < len(messages):
            message = messages[position]
            if message.kind is not NO_KIND:
                self._take_run(messages, position, verdicts)
            if len(verdicts) == position:
                verdicts.append(self._decide(message))
        return verdicts

    def _decide(self, message: Message) -> Verdict:
        tx = message.transaction
        return self._plain(message) if tx is None else self._transactional(message, tx)

    def _take_run(self, messages: Sequence[Message], start: int, verdicts: list[Verdict]) -> None:
        """The short way: as many as look alike and need nothing special; maybe none."""
        first, before = messages[start], len(self._records)
        lane = self._lane(first)
        if not lane.is_open:
            return
        if first.transaction is None:
            lane.take_plain(messages, start, self.history, self._records, self._entries)
            verdicts += [ACCEPTED] * (len(self._records) - before)
            return
        key = first.source, first.destination
        cursor = lane.take_in_order(
            messages, start, self.streams.get(key), self._records, self._entries
        )
        if taken := len(self._records) - before:
            self.streams.advance(key, cursor)
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
            if len(self._lanes) >= _LANES:
                self._lanes.clear()
            lane = Lane(message, queue, self._catalogue, self._mapper, self._policy)
            self._lanes[key] = lane
        return lane

    def _plain(self, message: Message) -> Verdict:
        now, mark = message.arrived_ms // 1000, mark_of(message)
        if self.history.knows(message.source, mark, now):  # row 1
            self._entries.append(audit.entry_of(message, DUPLICATE))
            return DUPLICATE
        self.history.add(message.source, mark, now)
        if reason := foreign(message, self._catalogue):
            return self._refuse(message, None, reason)
        queue = self._catalogue.find(message.destination)
        if reason := refusal(message, queue) or expiry(message, self._policy):
            return self._refuse(message, queue, reason)
        assert queue is not None
        if self._is_full(message, queue):
            self.history.discard(message.source, mark)
            return self._postpone(message)
        return self._accept(message, queue, None)

    def _transactional(self, message: Message, tx: Transaction) -> Verdict:
        if reason := foreign(message, self._catalogue):  # transit keeps no sequence state (QB-88)
            return self._refuse(message, None, reason)
        key = message.source, message.destination
        cursor = self.streams.get(key)
        where = place(cursor, tx)
        queue = self._catalogue.find(message.destination)
        if where is Place.BEHIND:
            # Before rows 3 to 10: a late copy of a message that we took must not be refused, or
            # the sender would dead-letter what was delivered.
            return self._drop(message, queue, Outcome.DUPLICATE, cursor)
        reason = refusal(message, queue) or expiry(message, self._policy)
        if reason is None and queue is not None and self._is_full(message, queue):
            return self._postpone(message)
        if where is Place.NEXT:
            # Taken or refused for good: the stream moves on, else it would block (DM-9).
            cursor = Cursor(tx.sequence_id, tx.number)
            self.streams.advance(key, cursor)
        if reason is not None:
            return self._refuse(message, queue, reason, cursor)
        if where is Place.AHEAD:
            return self._drop(message, queue, Outcome.OUT_OF_ORDER, cursor)
        assert queue is not None
        return self._accept(message, queue, cursor)

    def _posted(self, message: Message, srmp: Srmp) -> Verdict:
        """Over HTTP, in the order of SR-1. What is refused changes no state: the sender tries
        again, or gives up and bridges the gap (SR-24, SR-26)."""
        if srmp.onward is not None:
            return self._hand_on(message, srmp.onward)
        queue = self._catalogue.find(message.destination)
        if reason := unroutable(message, srmp, queue):
            return self._refuse(message, queue, reason)
        assert queue is not None
        if verdict := self._out_of_turn(message, srmp, queue):
            return verdict
        if reason := refusal(message, queue):
            return self._refuse(message, queue, reason)
        if self._is_full(message, queue) or self._is_over_quota(message, queue):
            return self._postpone(message)  # SR-6, SR-7
        receipts = HttpReceipts(message, srmp, self._receipts.local, self._receipts.ordinals)
        if self._policy.discards_expired and is_past(message, self._policy):  # SR-61
            verdict = self._refuse(message, queue, EXPIRED)
            self._owe(receipts.left(MessageClass.NACK_RECEIVE_TIMEOUT, self._take(message, srmp)))
            return verdict
        stream = self._row_after(message, srmp)
        verdict = self._accept(message, queue, None, stream)
        if verdict.outcome is Outcome.ACCEPTED:
            row = self._take(message, srmp)
            self._owe(receipts.delivered())
            if not queue.retains:  # a forward queue receives what it takes (design D5, SR-46)
                self._owe(receipts.left(MessageClass.ACK_RECEIVE, row))
        return verdict

    def _is_full(self, message: Message, queue: Queue) -> bool:
        """Row 12"""
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
            now = message.arrived_ms // 1000
            if not is_identified(message) or not self.history.knows(
                message.source, mark_of(message), now
            ):
                return None
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
            self._due.append(posted.repeated(key, row, tx))
        return self._drop(message, queue, outcome, Cursor(row.id, row.number))

    def _take(self, message: Message, srmp: Srmp) -> Posted | None:
        """It counts as here from now on; the row of its stream, if it has one. SR-24, SR-32"""
        row = self._row_after(message, srmp)
        if row is None:
            if is_identified(message):
                self.history.add(message.source, mark_of(message), message.arrived_ms // 1000)
            return None
        key = stream_key(message)
        self.posted.advance(key, row)
        self._due.append(posted.due_of(key, row))
        return row

    def _row_after(self, message: Message, srmp: Srmp) -> Posted | None:
        """Of its stream, once it is taken."""
        if message.transaction is None:
            return None
        before = self.posted.get(stream_key(message))
        return posted.taken(before, message, message.transaction, srmp)

    def _postpone(self, message: Message) -> Verdict:
        """Row 12, DM-11: no nack; the session ends, and the sender keeps what it has."""
        self._entries.append(audit.entry_of(message, BUSY))
        return BUSY

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
        if self._is_over_quota(message, queue):
            return self._refuse(message, queue, OVER_QUOTA, cursor)
        max_bytes = queue.max_bytes
        if not queue.is_settled:
            limits = self._catalogue.limits_for(queue, message)
            if limits is None:
                return self._refuse(message, queue, NO_TOPIC, cursor)
            max_bytes = limits.max_bytes
        text = message.id
        record = self._mapper.record(message, queue, text)
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
        """Readers can have it if it is whole."""
        copy = journal_record(record, queue)
        if self.keeper is None or not whole:
            return copy
        return self.keeper.copy(copy, message, journal_of(queue.name.lower()))

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
        outcome = Outcome.EXPIRED if reason in (EXPIRED, LATE) else Outcome.REJECTED
        verdict = Verdict(outcome, reason.message_class, reason.reason, cursor)
        self._entries.append(audit.entry_of(message, verdict, queue.name if queue else ""))
        if message.soap_compound:  # with the body, which it repeats, more than our topics take
            message = msgspec.structs.replace(message, soap_compound=b"")
        self._rejects.append(reject_record(message, queue, reason, stage))
        if (
            reason in _DEAD_LETTERS
            and message.transaction is None
            and (message.journal & JOURNAL_NEGATIVE)
        ):
            letter = dead_letter(message, reason, self._policy.deadletter_topic)
            properties = len(letter.headers)
            letter = bounded(letter, message)
            if self.keeper is not None and len(letter.headers) == properties:  # it is whole
                letter = self.keeper.copy(letter, message, DEADLETTER)
            self._records.append(letter)
        if message.srmp is None:
            self._owe(self._receipts.refused(message, reason.message_class, self._via))
        return verdict

    def _owe(self, acks: Iterable[OutboxEntry]) -> None:
        for entry in acks:
            self.outbox[entry.ordinal] = entry
            self._state[entry.key] = entry.encode()
            self._acks.append(entry)


def committed_unit(snapshot: Snapshot) -> int:
    """The number of the last unit that Kafka has."""
    return msgspec.json.decode(snapshot.state.get(UNIT_KEY, b"0"), type=int)


def _may_be_too_large(record: Record, message: Message, queue: Queue, max_bytes: int) -> bool:
    """Spares the counting for most, unless the mapping names or adds headers."""
    if queue.retains or not message.wire or queue.mapping.headers is not _USUAL_HEADERS:
        return True
    return len(record.value) + len(record.key or b"") + most_headers(message) > max_bytes
