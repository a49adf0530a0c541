"""All that one transaction says of messages that leave: fates, copies, acks, verdicts. DM-17

The bytes of the acks are in tests/core/test_shard_retained.py.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from bridge.core.audit import AuditEntry
from bridge.core.mapping import headers_of
from bridge.core.ports import OutboxEntry, Record
from bridge.core.posted import Posted
from bridge.core.retained.effects import Change, Copy, Effect, Owed, Removal
from bridge.core.retained.fates import Fate, Fated
from bridge.core.retained.keeping import HELD, LETTERHEAD, LOOKUP, marked, message_in, row_in
from bridge.core.retained.leaving import Leaving, leave
from bridge.core.retained.letterhead import Letterhead
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.outcomes import owed
from bridge.core.retained.rows import RecordAt, Row, aborted, row_of, wants_of
from bridge.model.classes import MessageClass
from bridge.model.message import Message
from tests.core.messages import LOCAL, NOW, SENDER, plain, receipts, step
from tests.core.posts import RECEIPTS, STREAM, mail, part
from tests.core.retained.world import ORDERS, PLAIN
from tests.core.test_receipts import classes, read

AT = RecordAt("plain", 1, 42)
ADMIN = "DIRECT=TCP:10.1.2.3\\private$\\admin"
COMMITTED = "http://sender01/msmq/private$/committed"
BOTH = {"commitment_to": COMMITTED, "positive": True, "negative": True}
ROW = Posted(id=STREAM, text=f"uid:{SENDER}\\{STREAM}", number=1, receipts_to=RECEIPTS)
PR, NR, JN = 2, 8, 1
LATER_MS = NOW * 1000 + 60_250
JOURNAL = journal_of(PLAIN)
REASONS = (0x4000, 0xC000, 0xC001, 0xC002, 0xC004)


def where(name: str) -> tuple[str, int | None]:
    return {DEADLETTER: ("dead", None), JOURNAL: ("plain.journal", 3)}[name]


def kept(message: Message, stream: Posted | None = None) -> tuple[Row, Record]:
    """A message in its queue, and its record."""
    name = PLAIN if message.transaction is None else ORDERS
    letterhead = Letterhead(message, SENDER, stream).encode() if wants_of(message) else b""
    record = Record(
        "plain", message.body, b"key", headers_of(message), 1, timestamp_ms=message.arrived_ms
    )
    record = marked(record, LOCAL, name, 4 << 56 | 9, letterhead)
    row = row_in(record, AT, LOCAL)
    assert row is not None
    return row, record


def left(message: Message, reason: int, *, has_record: bool = True) -> Leaving:
    row, record = kept(message, ROW if message.srmp and message.transaction else None)
    removal = Removal(row, MessageClass(reason), owed(row, MessageClass(reason)))
    return leave([removal], {AT: record} if has_record else {}, receipts(), where, LATER_MS)


def told(entries: list[OutboxEntry]) -> list[str]:
    """URLs of those that go over HTTP, else classes."""
    return [entry.url or f"{read(entry).message_class:04X}" for entry in entries]


# -- acks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("ack", range(16))
def test_admin_acks_of_a_plain_message(reason: int, ack: int) -> None:
    """Table 2.12: received -> PR; deleted, purged, too old, rejected -> NR."""
    wanted = ack & (PR if reason == 0x4000 else NR)
    leaving = left(plain(5, ack=ack, admin_queue=ADMIN), reason)
    assert classes(leaving.acks) == ([reason] if wanted else [])


@pytest.mark.parametrize("reason", REASONS)
def test_a_final_ack_whatever_the_reason(reason: int) -> None:
    """DM-18: FinalAck on removal iff transactional and (JN or JP or FA)."""
    for journal in (1, 2, 3):
        (final,) = left(step(5, journal=journal), reason).acks
        packet = read(final)
        assert (packet.is_final_ack, packet.message_class) == (True, reason)
    assert left(step(5), reason).acks == []
    both = left(step(5, journal=JN, ack=0xF, admin_queue=ADMIN), reason).acks
    assert [read(entry).is_final_ack for entry in both] == [False, True]


@pytest.mark.parametrize("reason", REASONS)
def test_receipts_over_http(reason: int) -> None:
    """SR-44, SR-45"""
    for positive in (False, True):
        asks = {**BOTH, "positive": positive, "negative": not positive}
        is_heard = positive is (reason == 0x4000)
        told_of = [COMMITTED] if is_heard else []
        assert told(left(mail(5, asks=asks), reason).acks) == told_of
        streamed = part(1, asks=asks, journal=JN)
        assert told(left(streamed, reason).acks) == [*told_of, RECEIPTS]
    assert left(mail(5), reason).acks == []
    assert left(mail(5, ack=0xF, admin_queue=ADMIN, journal=3), reason).acks == []


def test_an_ack_is_as_of_now() -> None:
    (entry,) = left(plain(5, ack=PR, admin_queue=ADMIN), 0x4000).acks
    assert read(entry).sent_time == NOW + 60
    (entry,) = left(mail(5, asks=BOTH), 0x4000).acks
    assert entry.expires == NOW + 60 + 345_600


def test_a_negative_ack_repeats_the_body_if_it_is_still_there() -> None:
    """DM-19; a record that retention has taken is no reason to say nothing."""
    message = plain(5, ack=NR, admin_queue=ADMIN, body=b"body", label="L")
    (entry,) = left(message, 0xC001).acks
    assert (read(entry).body, read(entry).label) == (b"body", "L")
    (entry,) = left(message, 0xC001, has_record=False).acks
    assert (read(entry).body, read(entry).label) == (b"", "L")


def test_nothing_is_owed_without_a_letterhead() -> None:
    row, record = kept(plain(5))
    odd = Removal(row, MessageClass.ACK_RECEIVE, Owed(admin=True, final=True, receipt=True))
    assert leave([odd], {AT: record}, receipts(), where, LATER_MS).acks == []


# -- copies ---------------------------------------------------------------------------------


def copied(message: Message, copy: Copy, reason: int, **changes: Any) -> Record:
    row, record = kept(message)
    record = replace(record, **changes)
    removal = Removal(row, MessageClass(reason), copy=copy)
    (made,) = leave([removal], {AT: record}, receipts(), where, LATER_MS).records
    return made


def test_a_journal_copy_is_the_message_with_marks_of_its_own() -> None:
    """DM-30; 2.6: journal … copies get a new lookup id."""
    message = plain(5, ack=0xF, admin_queue=ADMIN, label="L", priority=3)
    made = copied(message, Copy(JOURNAL, 4 << 56 | 77, LATER_MS), 0x4000)
    assert (made.topic, made.partition, made.key) == ("plain.journal", 3, b"key")
    assert made.headers == headers_of(message) | {
        HELD: f"{LOCAL}/{JOURNAL}".encode(),
        LOOKUP: str(4 << 56 | 77).encode(),
    }
    assert message_in(made) == replace(message, lookup_id=4 << 56 | 77, arrived_ms=LATER_MS)


def test_a_dead_letter_says_what_it_died_of() -> None:
    """2.14: their Class is rewritten to the failure."""
    message = plain(5, journal=JN)
    made = copied(message, Copy(DEADLETTER, 4 << 56 | 77, LATER_MS, 0xC002), 0xC002)
    assert (made.topic, made.partition) == ("dead", None)
    assert made.headers["msmq.outcome"] == b"49154"
    assert LETTERHEAD not in made.headers
    assert message_in(made).message_class == 0xC002


@pytest.mark.parametrize("arrived", [None, b"5"])
def test_a_copy_arrives_when_its_original_leaves(arrived: bytes | None) -> None:
    """`Copy.arrived_ms`; with the old time the topic's retention would take it at once (D7)."""
    message = plain(5)
    row, record = kept(message)
    headers = record.headers | ({} if arrived is None else {"msmq.arrived": arrived})
    copy = Copy(JOURNAL, 4 << 56 | 77, LATER_MS)
    made = copied(message, copy, 0x4000, headers=headers, timestamp_ms=5)
    assert made.timestamp_ms == LATER_MS
    there = RecordAt("plain.journal", 3, 0)
    expected = row_of(
        replace(message, arrived_ms=LATER_MS), queue=JOURNAL, sequential_id=77, at=there
    )
    assert row_in(made, there, LOCAL) == expected
    assert expected.size == row.size


def test_without_its_record_there_is_no_copy() -> None:
    row, _ = kept(plain(5))
    removal = Removal(row, MessageClass.ACK_RECEIVE, copy=Copy(JOURNAL, 77, LATER_MS))
    assert removal.needs_record
    leaving = leave([removal], {}, receipts(), where, LATER_MS)
    assert leaving.records == []
    assert leaving.fates == [Fated(AT, Fate(0x4000))]


# -- fates and verdicts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "verdict", "words"),
    [
        (0x4000, "received", ""),
        (0xC000, "removed", "queue-was-deleted"),
        (0xC001, "removed", "queue-was-purged"),
        (0xC002, "expired", "time-to-be-received-over"),
        (0xC004, "removed", "reader-rejected-it"),
    ],
)
def test_every_removal_has_its_verdict(reason: int, verdict: str, words: str) -> None:
    """D6: nothing vanishes without a trace."""
    (entry,) = left(plain(5), reason).entries
    assert entry == AuditEntry(
        id=f"{SENDER}\\5",
        verdict=verdict,
        at=LATER_MS,
        dest=PLAIN,
        message_class=0 if reason == 0x4000 else reason,
        reason=words,
        queue=PLAIN,
        topic="plain",
        partition=1,
        stamp=NOW * 1000,
    )


def test_a_change_is_a_fate_and_nothing_else() -> None:
    """DM-29: no ack."""
    row, _ = kept(step(5, journal=JN))
    leaving = leave([Change(row, aborted(row))], {}, receipts(), where, LATER_MS)
    assert leaving == Leaving(
        fates=[Fated(AT, Fate.of(aborted(row)))], records=[], acks=[], entries=[]
    )


def test_together_in_their_order() -> None:
    """DM-26: commit is FIFO."""
    effects: list[Effect] = []
    for number in (3, 1, 2):
        row, _ = kept(plain(number, ack=PR, admin_queue=ADMIN))
        there = replace(row, at=RecordAt("plain", 0, number))
        effects.append(Removal(there, MessageClass.ACK_RECEIVE, Owed(admin=True)))
    leaving = leave((effect for effect in effects), {}, receipts(), where, LATER_MS)
    assert [fated.at.offset for fated in leaving.fates] == [3, 1, 2]
    assert [entry.id for entry in leaving.entries] == [f"{SENDER}\\{n}" for n in (3, 1, 2)]
    assert [read(ack).correlation[16:] for ack in leaving.acks] == [
        n.to_bytes(4, "little") for n in (3, 1, 2)
    ]
