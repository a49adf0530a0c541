"""The short way decides what the long way decides, for any messages and any queue."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from bridge.core.access import AccessList
from bridge.core.catalogue import Queue
from bridge.core.mapping import COMMON
from bridge.core.mapping_headers import HeaderRules
from bridge.core.mapping_words import Key
from bridge.core.ports import Snapshot, Unit
from bridge.core.shard import Shard
from bridge.core.streams import StreamKey
from bridge.model.message import INFINITE, Kind, Message, Transaction
from bridge.model.verdict import Cursor, Outcome, Verdict
from tests.core.messages import (
    NOW,
    ORDERS,
    OTHER,
    PLAIN,
    SENDER,
    SEQUENCE,
    plain,
    queue,
    receipts,
    shard,
    step,
)

WIRE = b"\x10\x00LIOR" * 20


def marked(messages: list[Message]) -> list[Message]:
    """As `Template` marks them: the same mark for what has the same common properties."""
    marks: dict[tuple[object, ...], Kind] = {}
    made = []
    for message in messages:
        common = message.source, message.destination, *astuple(message)[COMMON]
        made.append(replace(message, kind=marks.setdefault(common, Kind())))
    return made


def cursors(messages: list[Message], verdicts: list[Verdict]) -> dict[StreamKey, Cursor]:
    """What the session tells each sender: the last word about its stream."""
    return {
        (message.source, message.destination): verdict.cursor
        for message, verdict in zip(messages, verdicts, strict=True)
        if verdict.cursor is not None
    }


def agree(messages: list[Message], first: Shard, second: Shard, parts: int = 1) -> Unit:
    """`first` gets them marked, `second` without marks; returns what they agree in."""
    short = marked(messages)
    size = max(1, len(messages) // parts)
    units = []
    for start in range(0, max(1, len(messages)), size):
        part = messages[start : start + size]
        quick, slow = first.admit(short[start : start + size]), second.admit(part)
        assert [(v.outcome, v.message_class, v.reason) for v in quick] == [
            (v.outcome, v.message_class, v.reason) for v in slow
        ]
        assert cursors(part, quick) == cursors(part, slow)
        one, two = first.take_unit(NOW), second.take_unit(NOW)
        assert one == two
        for record, other in zip(one[1].records, two[1].records, strict=True):
            assert list(record.headers) == list(other.headers)  # in this order
        units.append(one[1])
    return units[-1]


def test_a_run_is_taken_whole() -> None:  # QB-81
    messages = [step(n, wire=WIRE, label="load", ordinal=100 + n) for n in range(1, 33)]
    unit = agree(messages, shard(), shard())
    assert [record.value for record in unit.records] == [m.body for m in messages]


def test_only_the_last_of_a_run_speaks_for_the_stream() -> None:
    """Cursors for all of them would say nothing more."""
    verdicts = shard().admit(marked([step(n, wire=WIRE) for n in range(1, 9)]))
    assert [v.cursor for v in verdicts[1:-1]] == [None] * 6
    assert verdicts[-1].cursor == Cursor(SEQUENCE, 8)


ENDS = {
    "a gap": step(40, 39, wire=WIRE),
    "a duplicate": step(2, wire=WIRE),
    "another sequence": step(1, 0, sequence=SEQUENCE + 1, wire=WIRE),
    "an older sequence": step(9, 0, sequence=SEQUENCE - 1, wire=WIRE),
    "too late to reach": step(6, 5, wire=WIRE, sent_time=NOW - 345_601),
    "final ack wanted": step(
        6, 5, wire=WIRE, transaction=Transaction(SEQUENCE, 6, 5, final_ack=True)
    ),
    "an ack wanted": step(6, 5, wire=WIRE, ack=0xF, admin_queue="DIRECT=OS:x\\private$\\a"),
    "a dead letter wanted": step(6, 5, wire=WIRE, journal=1),
    "too large": step(6, 5, wire=WIRE, body=bytes(6 << 20)),
    "of another sender": step(1, 0, wire=WIRE, source=OTHER),
    "not transactional": plain(6, wire=WIRE, destination=ORDERS),
    "to an unknown queue": step(1, wire=WIRE, destination="DIRECT=OS:b\\private$\\none"),
    "to another machine": step(6, 5, wire=WIRE, destination_qm=OTHER),
    "encrypted": step(6, 5, wire=WIRE, encrypted=True),
    "traced": step(6, 5, wire=WIRE, trace_queue=OTHER),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_a_run(name: str) -> None:
    run = [step(n, wire=WIRE) for n in range(1, 6)]
    after = [step(n, wire=WIRE) for n in range(7, 10)]
    messages = [*run, ENDS[name], ENDS[name], *after]
    agree(messages, shard(acks=receipts()), shard(acks=receipts()))


QUEUES: dict[str, dict[str, Any]] = {
    "usual": {},
    "journal": {"journal": "journal", "journal_partitions": 3},
    "quota": {"quota_kb": 1},
    "access": {"access": AccessList([str(OTHER)])},
    "signed": {"authenticate": "required"},
    "encrypted": {"encrypt": "required"},
    "small topic": {"max_bytes": 6000},
    "chunks": {"max_bytes": 6000, "oversize": "chunk"},
    "by label": {"key": Key("label")},
    "by key": {"order": "key", "key": Key("label")},
    "sent": {"timestamp": "sent"},
    "text": {"value": "text"},
    "named": {"headers": HeaderRules(add={"env": "prod"})},
}


def queues(name: str) -> list[Queue]:
    settings = QUEUES[name]
    return [queue(**settings), queue("private$\\plain", transactional=False, **settings)]


own: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "label": st.sampled_from(("", "a", "b", "\ud800")),
        "body": st.sampled_from((b"", b"body", bytes(3000))),
        "wire": st.sampled_from((WIRE, WIRE * 2)),  # none that a template reads is without
        "sent_time": st.sampled_from(
            (0, NOW, NOW, NOW - 10, NOW - 345_600, NOW - 345_601, NOW + 9)
        ),
        "arrived_ms": st.sampled_from((NOW * 1000, NOW * 1000 + 999)),
        "correlation_id": st.sampled_from((bytes(20), bytes(range(20)))),
        "extension": st.sampled_from((b"", b"ext")),
    }
)
alike: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "source": st.sampled_from((SENDER, OTHER)),
        "time_to_reach_queue": st.sampled_from((INFINITE, 345_600, 0)),
        "time_to_be_received": st.sampled_from((INFINITE, INFINITE, 5, 0)),
        "ack": st.sampled_from((0, 0, 0, 0xF)),
        "journal": st.sampled_from((0, 0, 0, 1)),
        "admin_queue": st.sampled_from(("", "DIRECT=OS:x\\private$\\a")),
        "delivery": st.integers(0, 1),
    }
)
numbers: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "step": st.sampled_from((1, 1, 1, 1, 0, 2, -1)),
        "back": st.sampled_from((1, 1, 1, 1, 0, 2)),
        "sequence": st.sampled_from((0, 0, 0, 0, 1)),
        "index": st.sampled_from((0, 7)),
        "first": st.booleans(),
        "last": st.booleans(),
        "final_ack": st.sampled_from((False, False, False, True)),
    }
)


@st.composite
def streams(draw: st.DrawFn) -> list[Message]:
    """Runs of messages that are mostly alike and mostly in order."""
    found: list[Message] = []
    for _ in range(draw(st.integers(1, 4))):
        common = draw(alike)
        in_order = draw(st.booleans())
        number, sequence = 0, SEQUENCE
        for ordinal in range(draw(st.integers(1, 8))):
            fields = common | draw(own)
            if not in_order:
                found.append(plain(ordinal % 6, destination=PLAIN, **fields))
                continue
            place = draw(numbers)
            number = max(0, number + place.pop("step"))
            sequence += place.pop("sequence")
            previous = max(0, number - place.pop("back"))
            tx = Transaction(sequence_id=sequence, number=number, previous=previous, **place)
            found.append(step(number, destination=ORDERS, **fields | {"transaction": tx}))
    return found


@given(
    streams(),
    st.sampled_from(sorted(QUEUES)),
    st.integers(1, 3),
    st.sampled_from((0, 5)),
    st.sampled_from((0xFFFFFFFF, 2)),
)
def test_both_ways_agree(
    messages: list[Message], name: str, parts: int, skew: int, quota_kb: int
) -> None:
    pair = [
        shard(*queues(name), clock_skew_s=skew, quota_kb=quota_kb, acks=receipts())
        for _ in range(2)
    ]
    agree(messages, pair[0], pair[1], parts)


def test_other_queues_need_other_lanes() -> None:
    """`use`: the same messages, but their queue is mapped anew."""
    first, second = shard(), shard()
    agree([step(n, wire=WIRE) for n in range(1, 4)], first, second)
    for one in (first, second):
        one.use(shard(queue(topic="moved"))._catalogue)
    unit = agree([step(n, wire=WIRE) for n in range(4, 7)], first, second)
    assert {record.topic for record in unit.records} == {"moved"}


def test_after_a_failure_the_cursor_is_the_one_of_kafka() -> None:
    """The lane keeps no place of its own: `restore` takes the stream back."""
    one = shard()
    messages = marked([step(n, wire=WIRE) for n in range(1, 9)])
    one.admit(messages[:4])
    _, unit = one.take_unit(NOW)
    one.admit(messages[4:])
    one.restore(Snapshot({k: v for k, v in unit.state.items() if v is not None}, []))
    verdicts = one.admit(messages[2:])
    assert [v.outcome for v in verdicts] == [Outcome.DUPLICATE] * 2 + [Outcome.ACCEPTED] * 4


def test_many_senders_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.core.shard._LANES", 3)
    one = shard()
    for n in range(20):
        messages = [step(k, wire=WIRE, destination=f"{ORDERS}{n}") for k in (1, 2)]
        one.admit(marked(messages))
    assert len(one._lanes) <= 3
