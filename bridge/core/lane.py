"""The short way into the unit, for messages that need nothing special.

Most messages of a sender to a queue have the same properties and differ in ids, times and body.
What the rules say of the first of them, they say of all (`Kind`), so a lane asks them once. What is
left is each message's own: is it next in its stream, in time, small enough. One that is not, or
that wants an answer of its own, ends the run; `Shard` decides it the long way, where every rule
stands. tests/core/test_lane.py compares both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from bridge.core.admission import Policy, kept_out, refusal
from bridge.core.audit import AuditEntry, shown
from bridge.core.catalogue import Catalogue, Queue
from bridge.core.history import History, Mark
from bridge.core.mapper import Mapper
from bridge.core.ports import Record
from bridge.model.message import INFINITE, NO_CORRELATION, Message, Transaction
from bridge.model.verdict import Cursor, Outcome

OTHER_HEADERS: Final = 4096  # bytes of those that are not made from a packet's headers

_FOREVER: Final = 1 << 40  # seconds
_ACCEPTED: Final = Outcome.ACCEPTED


def most_headers(message: Message) -> int:
    """Bytes that they can take: what a packet's headers become is at most three times as large as
    they are, and `msmq.wire` repeats them."""
    return 4 * len(message.wire) + OTHER_HEADERS


def sequence_of(message: Message) -> int:
    return 0 if message.transaction is None else message.transaction.sequence_id


class Lane:
    """For messages of one kind to `queue`, and of one sequence if they are in order."""

    def __init__(
        self,
        message: Message,
        queue: Queue | None,
        catalogue: Catalogue,
        mapper: Mapper,
        policy: Policy,
    ) -> None:
        self.kind, self.queue, self.sequence = message.kind, queue, sequence_of(message)
        self.is_open = False
        if queue is None or not _is_usual(message, queue, catalogue):
            return
        common = mapper.common(message, queue)
        if common is None:
            return
        self.is_open = True
        self._topic, self._queue_name = queue.topic, queue.name
        self._key, self._partition, self._headers, self._own = common
        self._source, self._peer = message.source, message.peer
        self._destination = shown(message.destination)
        self._prefix = f"{message.source}\\"
        self._skew = policy.clock_skew_s
        self._lasts = min(_lasts(message.time_to_reach_queue), _lasts(message.time_to_be_received))
        self._most = min(queue.max_bytes - len(self._key) - OTHER_HEADERS, policy.quota_kb * 1024)

    def take_in_order(
        self,
        messages: Sequence[Message],
        start: int,
        cursor: Cursor,
        records: list[Record],
        entries: list[AuditEntry],
    ) -> Cursor:
        """Add those that are next in their stream; returns where it stands then. QB-81"""
        kind, sequence, last = self.kind, cursor.sequence_id, cursor.number
        skew, lasts, most = self._skew, self._lasts, self._most
        for message in messages[start:] if start else messages:
            tx = message.transaction
            if (
                message.kind is not kind
                or tx is None
                or tx.sequence_id != sequence
                or tx.number <= last
                or tx.previous > last
                or tx.final_ack
                or message.arrived_ms // 1000 - message.sent_time - skew > lasts
                or len(message.body) + 4 * len(message.wire) > most
            ):
                break
            self._add(message, tx, records, entries)
            last = tx.number
        return Cursor(sequence, last)

    def take_plain(
        self,
        messages: Sequence[Message],
        start: int,
        history: History,
        records: list[Record],
        entries: list[AuditEntry],
    ) -> None:
        """Add those that were not here before. Row 1"""
        kind, skew, lasts, most = self.kind, self._skew, self._lasts, self._most
        source, queue, now = self._source, self._queue_name, 0
        is_known, taken = history.known_of(source, queue), dict[Mark, None]()
        try:
            for message in messages[start:] if start else messages:
                ordinal = message.ordinal
                if (
                    message.kind is not kind
                    or ordinal in taken
                    or is_known(ordinal)
                    or message.arrived_ms // 1000 - message.sent_time - skew > lasts
                    or len(message.body) + 4 * len(message.wire) > most
                ):
                    break
                self._add(message, None, records, entries)
                taken[ordinal], now = None, message.arrived_ms // 1000
        finally:
            if taken:
                history.add_run(source, queue, list(taken), self._peer, now)

    def _add(
        self,
        message: Message,
        tx: Transaction | None,
        records: list[Record],
        entries: list[AuditEntry],
    ) -> None:
        text = f"{self._prefix}{message.ordinal}"
        headers = self._headers.copy()
        self._own.add(headers, message, text)
        arrived, correlation = message.arrived_ms, message.correlation_id
        records.append(
            Record(self._topic, message.body, self._key, headers, self._partition, arrived)
        )
        entries.append(
            AuditEntry(
                text,
                _ACCEPTED,
                arrived,
                self._destination,
                0,
                "",
                self._queue_name,
                self._topic,
                self._partition,
                0,
                self._peer,
                "binary",
                message.label,
                "" if correlation == NO_CORRELATION else correlation.hex(),
                tx.sequence_id if tx else 0,
                tx.number if tx else 0,
                tx.previous if tx else 0,
                crc32(message.body),
            )
        )


def _is_usual(message: Message, queue: Queue, catalogue: Catalogue) -> bool:
    """Whether the rules have nothing to say about messages of this kind, now or at the commit."""
    return (
        kept_out(message, queue, catalogue) is None
        and refusal(message, queue) is None
        and queue.is_settled
        and not queue.retains
        and not queue.journal
        and not (catalogue.closed and catalogue.is_closed(queue, message))
        and queue.mapping.quota_kb is None
        and not message.ack
        and not message.journal
        and message.trace_queue is None
        and message.time_to_be_received > 0
        and message.destination_multi == ""
        and message.transport == "binary"
        and message.wire != b""
    )


def _lasts(seconds: int) -> int:
    return _FOREVER if seconds == INFINITE else seconds
