"""Streams that begin in the middle: which wait, what is kept of them, how they are taken up.

MS-MQQB 3.1.5.8.6: a message is accepted if TxSequenceID is the known one, TxSequenceNumber is
greater than the known number and PreviousTxSequenceNumber is not; or if TxSequenceID is greater
and PreviousTxSequenceNumber is 0.
"""

from typing import Any

import pytest

from bridge.core.access import AccessList
from bridge.core.admission import Policy
from bridge.core.ports import Snapshot
from bridge.core.shard import Shard
from bridge.core.waiting_streams import (
    MOST_BYTES,
    MOST_FRESH,
    MOST_OF_PEER,
    Turn,
    WaitingStream,
    WaitingStreams,
)
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.model.verdict import Cursor, Outcome, Verdict
from tests.core.messages import (
    NOW,
    ORDERS,
    OTHER,
    SENDER,
    SEQUENCE,
    catalogue,
    plain,
    queue,
    shard,
    step,
)
from tests.core.units import restarted

KEY = SENDER, ORDERS
LATER = SEQUENCE + 1


def decide(one: Shard, *messages: Message, **session: Any) -> list[Verdict]:
    return one.admit(messages, **session)


def outcomes(one: Shard, *messages: Message, **session: Any) -> list[str]:
    return [str(verdict.outcome) for verdict in decide(one, *messages, **session)]


def offered(one: Shard) -> list[tuple[int, int, int]]:
    return [(w.sequence_id, w.number, w.previous) for w in one.waiting]


def waiting(one: Shard) -> WaitingStream:
    (found,) = one.waiting
    return found


# -- which streams wait ---------------------------------------------------------------------


def test_a_stream_that_begins_in_the_middle_waits() -> None:
    one = shard()
    assert outcomes(one, step(7), step(8), step(9)) == ["out_of_order"] * 3
    found = waiting(one)
    assert (found.source, found.destination, found.have) == (SENDER, ORDERS, Cursor())
    assert offered(one) == [(SEQUENCE, 7, 6)]
    assert (found.since, found.last) == (NOW, NOW)
    assert len(one.streams) == 0


def test_a_gap_and_a_new_sequence_in_the_middle_wait_too() -> None:
    one = shard()
    decide(one, step(1), step(4, 3))
    assert (waiting(one).have, offered(one)) == (Cursor(SEQUENCE, 1), [(SEQUENCE, 4, 3)])
    decide(one, step(9, 8, sequence=LATER), turn=Turn())
    assert offered(one) == [(LATER, 9, 8)]


def test_a_session_offers_its_oldest_message_first() -> None:
    one, session = shard(), Turn()
    decide(one, step(7), turn=session)
    decide(one, step(8), step(9), turn=session)
    assert offered(one) == [(SEQUENCE, 7, 6)]
    late = {"arrived_ms": (NOW + 60) * 1000}
    decide(one, step(9, 6, **late), turn=Turn())  # the others expired at their sender
    assert offered(one) == [(SEQUENCE, 9, 6)]
    assert (waiting(one).since, waiting(one).last) == (NOW, NOW + 60)


@pytest.mark.parametrize(
    "message",
    [
        step(7, destination="DIRECT=OS:bridge01\\private$\\nobody"),
        step(7, destination_qm=OTHER),
        step(7, destination="DIRECT=OS:bridge01\\private$\\bynet"),
        step(7, destination="DIRECT=OS:bridge01\\private$\\byuser"),
        step(7, destination="DIRECT=OS:bridge01\\private$\\signed"),
    ],
)
@pytest.mark.parametrize("adopts", [False, True])
def test_only_what_may_come_in_can_wait(message: Message, adopts: bool) -> None:
    """`allow`, unknown queues and other queue managers are looked at before."""
    queues = (
        queue(),
        queue("private$\\bynet", access=AccessList(["192.0.2.0/24"])),
        queue("private$\\byuser", access=AccessList(["S-1-5-21-1-2-3-1000"])),
        queue("private$\\signed", authenticate="required"),
    )
    one = shard(*queues, adopts_streams=adopts)
    assert outcomes(one, message)[0] in ("rejected", "busy")
    assert (len(one.waiting), one.waiting.bytes, len(one.streams)) == (0, 0, 0)


def test_a_message_of_another_than_the_session_does_not_wait() -> None:
    one = shard(adopts_streams=True)
    assert outcomes(one, step(7), via=OTHER) == ["busy"]
    assert (len(one.waiting), len(one.streams)) == (0, 0)


def test_what_comes_behind_a_message_that_was_left_to_its_sender_does_not_wait() -> None:
    """The sender sends both again, in order. Taken up here, the first one would be lost."""
    one, session = shard(quota_kb=1, adopts_streams=True), Turn()
    large = step(1, body=bytes(2000))
    assert outcomes(one, large, step(2), turn=session) == ["busy", "out_of_order"]
    assert outcomes(one, step(3), turn=session) == ["out_of_order"]  # of the next read
    assert (len(one.waiting), len(one.streams)) == (0, 0)
    assert outcomes(one, step(1), step(2), turn=Turn()) == ["accepted"] * 2


# -- how they are taken up ------------------------------------------------------------------


def test_an_adopted_stream_goes_on_with_the_offered_message() -> None:
    one = shard()
    decide(one, step(7), step(8))
    assert one.adopt(waiting(one))
    assert len(one.waiting) == 0
    unit = one.take_unit(NOW)[1]
    assert f"stream/{SENDER}/{ORDERS}" in unit.state
    assert outcomes(one, step(7), step(8), step(7)) == ["accepted", "accepted", "duplicate"]
    assert one.streams.get(KEY).number == 8


def test_an_adopted_stream_is_known_after_a_restart() -> None:
    one = shard()
    decide(one, step(7))
    one.adopt(waiting(one))
    again = restarted(one, [one.take_unit(NOW)[1]])
    assert outcomes(again, step(6), step(7)) == ["duplicate", "accepted"]


def test_a_stream_that_moved_meanwhile_is_not_adopted() -> None:
    one = shard()
    decide(one, step(7))
    found = waiting(one)
    decide(one, step(1))  # it came from the beginning after all
    assert len(one.waiting) == 0
    assert not one.adopt(found)
    assert one.streams.get(KEY).number == 1


def test_an_adoption_that_was_not_committed_is_done_again() -> None:
    one = shard()
    decide(one, step(7))
    found = waiting(one)
    assert one.adopt(found)
    one.restore(Snapshot({}, []))
    assert len(one.streams) == 0
    assert one.adopt(found)
    assert outcomes(one, step(7)) == ["accepted"]


def test_adoption_needs_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.core.streams.MOST_OF_PEER", 0)
    one = shard()
    decide(one, step(7))
    assert not one.adopt(waiting(one))


def test_first_takes_a_stream_up_at_once() -> None:
    one = shard(adopts_streams=True)
    verdicts = decide(one, step(7), step(8))
    assert [v.outcome for v in verdicts] == [Outcome.ACCEPTED] * 2
    assert verdicts[-1].cursor == Cursor(SEQUENCE, 8)
    assert len(one.waiting) == 0


def test_first_moves_on_behind_an_expired_message() -> None:
    one = shard(adopts_streams=True)
    late = {"sent_time": NOW - 100, "time_to_reach_queue": 10}
    assert outcomes(one, step(7, **late), step(8)) == ["expired", "accepted"]


def test_first_is_for_streams_that_were_never_seen() -> None:
    one = shard(adopts_streams=True)
    assert outcomes(one, step(1), step(4, 3)) == ["accepted", "out_of_order"]
    assert outcomes(one, step(9, 8, sequence=LATER)) == ["out_of_order"]
    assert len(one.waiting) == 1


def test_first_asks_for_what_a_router_hands_on() -> None:
    """By two ways, messages may overtake each other."""
    one = shard(adopts_streams=True)
    assert outcomes(one, step(7), via=OTHER, is_routed=True) == ["out_of_order"]
    assert len(one.waiting) == 1


def test_first_takes_no_stream_of_a_peer_that_has_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridge.core.streams.MOST_OF_PEER", 0)
    one = shard(adopts_streams=True)
    assert outcomes(one, step(7)) == ["busy"]
    assert (len(one.waiting), len(one.streams)) == (0, 0)


def test_forget() -> None:
    one = shard()
    decide(one, step(1), step(2))
    one.take_unit(NOW)
    assert one.forget_stream(KEY)
    unit = one.take_unit(NOW)[1]
    assert unit.state[f"stream/{SENDER}/{ORDERS}"] is None
    assert outcomes(one, step(3)) == ["out_of_order"]
    assert outcomes(one, step(1)) == ["accepted"]  # a second time: the danger of it
    assert not one.forget_stream((OTHER, ORDERS))


def test_a_stream_that_is_asleep_is_forgotten_too() -> None:
    one = shard()
    decide(one, step(1))
    again = restarted(one, [one.take_unit(NOW)[1]])
    assert again.forget_stream(KEY)
    assert again.take_unit(NOW)[1].state[f"stream/{SENDER}/{ORDERS}"] is None
    assert (len(again.streams), again.streams.size) == (0, 0)


# -- what is kept ---------------------------------------------------------------------------


def note(table: WaitingStreams, number: int, peer: str = "10.0.0.1", name: str = "q") -> None:
    message = step(7, source=Guid(number.to_bytes(16, "big")), peer=peer, destination=name)
    assert message.transaction is not None
    table.note(message, message.transaction, Cursor(), None)


@pytest.mark.parametrize("name", ["q", "n" * 32_000])
def test_an_address_has_room_for_so_much(name: str) -> None:
    table = WaitingStreams()
    note(table, 0, "10.0.0.2", name)
    for number in range(1, 2000):
        note(table, number, "10.0.0.1", f"{name}{number}")
    of_peer = [row for row in table if row.peer == "10.0.0.1"]
    assert 0 < len(of_peer) * (600 + len(name)) <= MOST_OF_PEER
    assert of_peer[-1].destination == f"{name}1999"  # the newest is there
    assert any(row.peer == "10.0.0.2" for row in table)  # others do not notice


def test_all_of_them_have_room_for_so_much() -> None:
    table = WaitingStreams()
    for number in range(20_000):
        note(table, number, f"10.0.{number >> 8 & 255}.{number & 255}")
    assert table.bytes <= MOST_BYTES
    assert 1000 < len(table) < 20_000
    assert len(table.fresh) == MOST_FRESH
    for row in list(table):
        table.pop(row.key)
    assert (len(table), table.bytes, table._of_peer, table._peer_bytes) == (0, 0, {}, {})


def test_the_one_that_was_offered_longest_ago_gives_way() -> None:
    one = WaitingStreams()
    note(one, 1)
    table = WaitingStreams(most_bytes=3 * one.bytes)
    for number in (1, 2, 1, 3, 4):
        note(table, number)
    assert [int.from_bytes(row.source, "big") for row in table] == [1, 3, 4]


def test_each_is_fresh_once() -> None:
    one = shard()
    for _ in range(3):
        decide(one, step(7), plain(1), turn=Turn())
    assert [row.number for row in one.waiting.fresh] == [7]


def test_a_shard_keeps_what_waits_when_it_is_restored() -> None:
    one = Shard(catalogue(), Policy())
    decide(one, step(7))
    one.restore(Snapshot({}, []))
    assert len(one.waiting) == 1
