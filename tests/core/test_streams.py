"""Exactly once and in order: QB-80 to QB-83, DM-7 to DM-9."""

import pytest
from hypothesis import given

from bridge.core import streams as module
from bridge.core.streams import PREFIX, Place, Stream, Streams, place, stream_key
from bridge.model.guid import Guid
from bridge.model.message import Transaction
from bridge.model.verdict import Cursor
from tests.core.messages import ORDERS, OTHER, PLAIN, SENDER, guids, plain, step, texts, u32, u64
from tests.core.posts import TO, TO_PLAIN, mail, part

KEY = SENDER, ORDERS
TOP = (1 << 64) - 1


def tx(sequence_id: int, number: int, previous: int) -> Transaction:
    return Transaction(sequence_id=sequence_id, number=number, previous=previous)


@pytest.mark.parametrize(
    ("cursor", "message", "expected"),
    [
        # The same sequence: QB-81, first half.
        (Cursor(7, 3), tx(7, 4, 3), Place.NEXT),
        (Cursor(7, 3), tx(7, 3, 2), Place.BEHIND),
        (Cursor(7, 3), tx(7, 1, 0), Place.BEHIND),
        (Cursor(7, 3), tx(7, 5, 4), Place.AHEAD),
        # Gaps are legal: expiry at the sender bridges `previous`. QB-82
        (Cursor(7, 3), tx(7, 9, 3), Place.NEXT),
        (Cursor(7, 3), tx(7, 9, 1), Place.NEXT),
        (Cursor(7, 3), tx(7, 9, 0), Place.NEXT),
        (Cursor(7, 3), tx(7, 9, 8), Place.AHEAD),
        # A new sequence: QB-81, second half.
        (Cursor(7, 3), tx(8, 1, 0), Place.NEXT),
        (Cursor(7, 3), tx(8, 5, 0), Place.NEXT),
        (Cursor(7, 3), tx(8, 2, 1), Place.AHEAD),
        (Cursor(7, 3), tx(8, 4, 3), Place.AHEAD),
        # An older sequence is never taken. QB-83
        (Cursor(7, 3), tx(6, 1, 0), Place.BEHIND),
        (Cursor(7, 3), tx(6, 4, 3), Place.BEHIND),
        # The start is (0, 0): QB-80.
        (Cursor(), tx(7, 1, 0), Place.NEXT),
        (Cursor(), tx(7, 5, 0), Place.NEXT),
        (Cursor(), tx(7, 2, 1), Place.AHEAD),
        (Cursor(), tx(0, 1, 0), Place.NEXT),
        (Cursor(), tx(0, 0, 0), Place.BEHIND),
        # The extremes of both fields.
        (Cursor(TOP, 0xFFFFFFFE), tx(TOP, 0xFFFFFFFF, 0xFFFFFFFE), Place.NEXT),
        (Cursor(TOP, 0xFFFFFFFF), tx(TOP, 0xFFFFFFFF, 0), Place.BEHIND),
        (Cursor(TOP - 1, 0xFFFFFFFF), tx(TOP, 1, 0), Place.NEXT),
    ],
)
def test_the_rule(cursor: Cursor, message: Transaction, expected: Place) -> None:
    assert place(cursor, message) is expected


def test_sequence_ids_compare_with_the_time_stamp_high() -> None:  # 2.9: u64, TimeStamp high
    older = (0x10 << 32) | 0xFFFFFFFF  # an older time stamp with a larger ordinal
    newer = (0x11 << 32) | 0x1
    assert place(Cursor(older, 9), tx(newer, 1, 0)) is Place.NEXT
    assert place(Cursor(newer, 1), tx(older, 10, 9)) is Place.BEHIND
    late = 0x80000000 << 32  # no sign: after 2038 the top bit is set
    assert place(Cursor(newer, 1), tx(late, 1, 0)) is Place.NEXT
    assert place(Cursor(late, 1), tx(newer, 1, 0)) is Place.BEHIND


@given(u64, u32, u64, u32, u32)
def test_next_is_exactly_what_the_specification_accepts(
    last_id: int, last: int, sequence_id: int, number: int, previous: int
) -> None:  # QB-81, word by word
    accepts = (sequence_id == last_id and number > last and previous <= last) or (
        sequence_id > last_id and previous == 0
    )
    where = place(Cursor(last_id, last), tx(sequence_id, number, previous))
    assert (where is Place.NEXT) == accepts


def test_a_stream_is_source_and_name_byte_for_byte() -> None:  # DM-8
    streams = Streams()
    streams.advance(KEY, Cursor(7, 3))
    assert streams.get(KEY) == Stream(7, 3)
    assert streams.get((OTHER, ORDERS)) == Stream()
    assert streams.get((SENDER, ORDERS.upper())) == Stream()
    assert streams.get((SENDER, ORDERS + " ")) == Stream()
    assert len(streams) == 1


def test_asking_for_a_stream_does_not_make_one() -> None:
    streams = Streams()
    streams.get(KEY)
    assert len(streams) == 0
    assert streams.take_changes() == {}


def test_changes_are_told_once_and_only_the_last() -> None:
    streams = Streams()
    streams.advance(KEY, Cursor(7, 1))
    streams.advance(KEY, Cursor(7, 2))
    assert streams.take_changes() == {f"stream/{SENDER}/{ORDERS}": b'{"sequence_id":7,"number":2}'}
    assert streams.take_changes() == {}
    streams.advance(KEY, Cursor(7, 3))
    assert len(streams.take_changes()) == 1


@given(guids, texts, u64, u32)
def test_a_cursor_survives_a_restart(source: Guid, name: str, sequence: int, number: int) -> None:
    """QB-80: whatever the name holds, slashes and half surrogate pairs too."""
    before, after = Streams(), Streams()
    before.advance((source, f"{name}/a/b"), Cursor(sequence, number))
    for key, value in before.take_changes().items():
        assert key.startswith(PREFIX)
        assert value is not None
        after.restore(key, value)
    assert dict(after.items()) == {(source, f"{name}/a/b"): Stream(sequence, number)}
    assert after.take_changes() == {}  # what was read is not written again


def test_a_stream_that_sleeps_counts_and_wakes_as_it_was() -> None:
    """Entries are read when they are needed; nobody outside can tell."""
    before = Streams()
    keys = [(SENDER, f"DIRECT=OS:b\\q/{n}") for n in range(3)]
    for number, key in enumerate(keys, 1):
        before.advance(key, Cursor(7, number))
    after = Streams()
    for text, value in before.take_changes().items():
        assert value is not None
        after.restore(text, value)
    assert len(after) == 3
    assert dict(after.items()) == {key: Stream(7, n) for n, key in enumerate(keys, 1)}
    assert sorted(after) == keys
    assert after.get(keys[1]) == Stream(7, 2)
    after.advance(keys[1], Cursor(7, 9))
    assert len(after) == 3
    assert dict(after.items())[keys[1]] == Stream(7, 9)
    assert list(after.take_changes()) == [f"stream/{SENDER}/DIRECT=OS:b\\q/1"]
    assert after.get((SENDER, "DIRECT=OS:b\\unknown")) == Stream()
    assert len(after) == 3


def test_whose_stream_it_is() -> None:  # DM-8; srmp.md 3.5
    assert stream_key(plain()) == (SENDER, PLAIN)
    assert stream_key(step(1)) == (SENDER, ORDERS)
    assert stream_key(mail()) == (SENDER, f"DIRECT={TO_PLAIN}")
    redirected = part(1, qm=OTHER, source=SENDER, destination="DIRECT=http://elsewhere/msmq/q")
    assert stream_key(redirected) == (OTHER, f"DIRECT={TO}")


def test_a_stream_that_is_dropped_is_gone_everywhere() -> None:
    before = Streams()
    for number in range(3):
        before.advance((SENDER, f"q{number}"), Cursor(7, number))
    streams = Streams()
    for text, value in before.take_changes().items():
        assert value is not None
        streams.restore(text, value)
    assert streams.get((SENDER, "q0")) == Stream(7, 0)  # awake
    streams.advance((SENDER, "q3"), Cursor(7, 3))  # only here so far
    for number in (0, 1, 3, 9):
        streams.drop((SENDER, f"q{number}"))
    assert list(streams.items()) == [((SENDER, "q2"), Stream(7, 2))]
    assert len(streams) == 1
    assert streams.get((SENDER, "q0")) == Stream()
    gone = {f"stream/{SENDER}/q{number}": None for number in (0, 1, 3, 9)}
    assert streams.take_changes() == gone
    assert streams.take_changes() == {}
    streams.drop((SENDER, "q2"))
    streams.advance((SENDER, "q2"), Cursor(8, 1))  # begun anew
    assert streams.take_changes() == {f"stream/{SENDER}/q2": b'{"sequence_id":8,"number":1}'}


def test_a_snapshot_is_of_its_moment() -> None:
    streams = Streams()
    streams.restore(f"{PREFIX}{SENDER}/{PLAIN}", b'{"sequence_id":1,"number":2}')
    streams.advance(KEY, Cursor(7, 3))
    snapshot = streams.snapshot()
    streams.advance(KEY, Cursor(7, 4))
    streams.advance((OTHER, ORDERS), Cursor(1, 1))
    assert dict(snapshot.items()) == {KEY: Stream(7, 3), (SENDER, PLAIN): Stream(1, 2)}
    assert len(streams) == 3


ROOM = module.ROW_BYTES + 20


def test_one_peer_has_room_for_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the bound of a peer its new streams are not taken; others go on."""
    monkeypatch.setattr(module, "MOST_OF_PEER", 3 * ROOM)
    streams = Streams()
    for number in range(3):
        key = SENDER, f"q{number}"
        assert streams.has_room(key, "10.0.0.1")
        streams.advance(key, Cursor(7, 1), "10.0.0.1")
    assert not streams.has_room((SENDER, "q3"), "10.0.0.1")
    assert streams.has_room((SENDER, "q0"), "10.0.0.1")  # known ones go on
    assert streams.has_room((SENDER, "q3"), "10.0.0.2")
    streams.drop((SENDER, "q0"))
    assert streams.has_room((SENDER, "q3"), "10.0.0.1")


def test_long_names_take_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_PEER", 3 * ROOM)
    assert not Streams().has_room((SENDER, "q" * 3 * ROOM), "10.0.0.1")


def test_in_a_full_table_who_has_little_may_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10 * ROOM)
    streams = Streams()
    for number in range(12):
        streams.advance((SENDER, f"q{number}"), Cursor(7, 1), "10.0.0.1")
    assert not streams.has_room((SENDER, "more"), "10.0.0.1")
    assert streams.has_room((OTHER, "more"), "10.0.0.2")


def test_a_full_table_ends_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10 * ROOM)
    streams = Streams()
    for number in range(22):
        streams.advance((SENDER, f"q{number}"), Cursor(7, 1), f"10.0.0.{number}")
    assert not streams.has_room((OTHER, "more"), "10.0.1.1")


def test_a_restart_counts_the_same() -> None:
    before, after = Streams(), Streams()
    for number in range(5):
        before.advance((SENDER, f"q{number}"), Cursor(7, 1), f"10.0.0.{number % 2}")
    for text, value in before.take_changes().items():
        assert value is not None
        after.restore(text, value)
    assert (after.size, after._shares.of_peer) == (before.size, before._shares.of_peer)
    after.get((SENDER, "q1"))  # it wakes, and is counted once
    after.advance((SENDER, "q1"), Cursor(7, 2), "10.9.9.9")  # the first peer counts
    assert (after.size, after._shares.of_peer) == (before.size, before._shares.of_peer)


def test_a_cursor_of_an_earlier_version() -> None:
    streams = Streams()
    streams.restore(f"{PREFIX}{SENDER}/{ORDERS}", b'{"sequence_id":7,"number":3}')
    assert streams.get(KEY) == Stream(7, 3)
