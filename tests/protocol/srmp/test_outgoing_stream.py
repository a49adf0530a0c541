"""Numbers and receipts of one stream."""

from __future__ import annotations

import pytest

from bridge.model.message import JOURNAL_NEGATIVE
from bridge.protocol.srmp.outgoing_stream import Entry, OutgoingStream
from bridge.wire.srmp.values import make_stream_id, parse_stream_id
from tests.protocol.srmp.peer import LOCAL, step

ID = make_stream_id(LOCAL, 4839986701558349830)


@pytest.fixture
def stream() -> OutgoingStream:
    """Four messages; the second wants to know what becomes of it."""
    made = OutgoingStream(ID)
    for ordinal in range(1, 5):
        journal = JOURNAL_NEGATIVE if ordinal == 2 else 0
        made.append(Entry(ordinal, step(ordinal, journal=journal)))
    return made


def leave(stream: OutgoingStream, number: int) -> None:
    entry = stream.find(number)
    assert entry is not None
    entry.gone = True
    stream.remove(entry)


def bridges(stream: OutgoingStream) -> dict[int, int]:
    return {number: stream.previous(entry) for number, entry in stream.unacked.items()}


def test_numbers_count_from_1(stream: OutgoingStream) -> None:  # SR-72
    assert bridges(stream) == {1: 0, 2: 1, 3: 2, 4: 3}
    assert stream.first_unacked == 1


def test_previous_bridges_those_that_left(stream: OutgoingStream) -> None:  # SR-72
    leave(stream, 2)
    assert bridges(stream) == {1: 0, 3: 1, 4: 3}
    leave(stream, 3)
    assert bridges(stream) == {1: 0, 4: 1}
    leave(stream, 1)
    assert bridges(stream) == {4: 0}


def test_previous_after_a_receipt_is_what_arrived(stream: OutgoingStream) -> None:
    stream.acknowledge(2, 10.0)
    leave(stream, 3)
    assert bridges(stream) == {4: 2}


def test_a_receipt_covers_all_up_to_it(stream: OutgoingStream) -> None:  # SR-51
    assert [entry.number for entry in stream.acknowledge(3, 10.0)] == [1, 2, 3]
    assert stream.acknowledge(1, 11.0) == []  # EodLastAck only upwards
    assert (stream.last_ack, stream.ack_count, stream.last_ack_time) == (3, 2, 11.0)
    assert (list(stream.unacked), stream.first_unacked, stream.unread_count) == ([4], 4, 1)


def test_a_receipt_for_what_was_never_sent(stream: OutgoingStream) -> None:
    stream.acknowledge(1000, 10.0)
    assert (stream.last_ack, stream.first_unacked) == (4, 0)
    stream.append(Entry(5, step(5)))
    assert bridges(stream) == {5: 4}


def test_it_is_over_when_nothing_waits(stream: OutgoingStream) -> None:  # MC-MQSRM 3.1.7.6
    stream.acknowledge(4, 10.0)
    assert not stream.is_over  # the final receipt of 2
    leave(stream, 2)
    assert stream.is_over
    assert stream.find(2) is None


def test_waits_get_longer_until_a_receipt(stream: OutgoingStream) -> None:  # SR-52, 4.1
    waits = []
    for _ in range(12):
        waits.append(stream.patience_s)
        stream.lose_patience()
    assert waits == [30.0] * 3 + [300.0] * 3 + [1800.0] * 3 + [21600.0] * 3
    stream.acknowledge(0, 10.0)
    assert stream.patience_s == 30.0


def test_its_name(stream: OutgoingStream) -> None:
    assert stream.is_named(parse_stream_id("streamId", ID.text.upper().replace("UID", "uid")))
    assert not stream.is_named(make_stream_id(LOCAL, 1))
