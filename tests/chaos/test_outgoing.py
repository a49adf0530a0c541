"""The senders do what MSMQ does; otherwise a clean run would prove nothing."""

import random
from uuid import UUID

import pytest

from tests.chaos.history import History, Mode
from tests.chaos.outgoing import WINDOW, Outgoing, ViolationError
from tests.chaos.senders import Maker
from tests.outside.rawmsmq import SessionHeader, Tx

GUID = UUID(int=7)


def outgoing(kinds: str, count: int) -> Outgoing:
    out = Outgoing(History())
    maker = Maker(GUID, kinds, random.Random(1), "p")
    for _ in range(count):
        out.add(*maker.next())
    out.begin_session(WINDOW)
    return out


def ack(count: int, *, stored: int = 0, base: int = 1) -> SessionHeader:
    flags = (1 << stored) - 1
    return SessionHeader(ack=count, recoverable_ack=base if stored else 0, flags=flags)


def ids(out: Outgoing) -> list[int]:
    return [entry.message.message_id for entry in (*out.table, *out.waiting)]


def sequence(out: Outgoing) -> list[Tx]:
    return [entry.message.tx for entry in out.table if entry.message.tx is not None]


def test_no_more_than_the_window() -> None:  # QB-50
    out = outgoing("r", 100)
    assert out.burst(1.0)
    assert (out.sent, len(out.waiting)) == (WINDOW, 100 - WINDOW)
    assert out.burst(2.0) == b""
    out.on_header(ack(32, stored=32), 3.0)
    out.burst(4.0)
    assert out.sent == WINDOW + 32


def test_a_window_of_one() -> None:  # QB-51
    out = outgoing("r", 10)
    out.peer_window = 1
    out.burst(1.0)
    assert out.sent == 1


def test_recoverable_until_it_is_told_to_be_on_disk() -> None:  # QB-48
    out = outgoing("r", 4)
    out.burst(1.0)
    out.on_header(ack(4), 2.0)  # counted, not stored
    assert ids(out) == [1, 2, 3, 4]
    out.on_header(SessionHeader(ack=4, recoverable_ack=2, flags=0b101), 3.0)
    assert ids(out) == [3]  # 1 is below the base
    assert out.history.done == 3


def test_express_until_it_is_counted_and_gone_with_its_session() -> None:
    out = outgoing("e", 3)
    out.burst(1.0)
    out.on_header(ack(1), 2.0)
    out.end_session()
    assert ids(out) == []
    assert [op.dropped for op in out.history.ops] == [False, True, True]


def test_express_that_was_not_sent_outlives_a_session_but_not_its_host() -> None:
    out = outgoing("e", 3)
    out.end_session()
    assert ids(out) == [1, 2, 3]
    out.forget_memory()
    assert ids(out) == []


def test_resent_in_order_with_the_same_ids() -> None:  # QB-53
    out = outgoing("er", 80)
    out.burst(1.0)
    out.end_session()
    before = [op for op in out.history.ops if not op.dropped]
    out.begin_session(WINDOW)
    out.burst(2.0)
    expected = [int(op.identity.partition("\\")[2]) for op in before]
    assert ids(out) == expected
    again = [op for op in before if op.sends == 2]
    assert again
    assert all((op.mode, op.sent_at, op.session) == (Mode.RECOVERABLE, 1.0, 1) for op in again)


def test_transactional_until_session_acked_and_order_acked() -> None:  # QB-48, QB-98
    out = outgoing("t", 4)
    out.burst(1.0)
    first = sequence(out)[0].sequence_id
    out.on_header(ack(4, stored=3), 2.0)
    assert ids(out) == [1, 2, 3, 4]
    out.on_order_ack(first, 4, 3.0)
    assert ids(out) == [4]  # in order, but nobody said that it is on disk
    out.on_header(ack(4, stored=1, base=4), 4.0)
    assert ids(out) == []


def test_numbers_and_previous_ones() -> None:  # QB-95
    out = outgoing("t", 4)
    out.burst(1.0)
    assert [(tx.number, tx.previous) for tx in sequence(out)] == [(1, 0), (2, 1), (3, 2), (4, 3)]
    out.on_header(ack(4, stored=4), 2.0)
    out.on_order_ack(sequence(out)[0].sequence_id, 2, 2.0)
    out.end_session()
    out.begin_session(WINDOW)
    out.burst(3.0)
    assert [(tx.number, tx.previous) for tx in sequence(out)] == [(3, 0), (4, 3)]


def test_a_new_sequence_when_all_are_order_acked() -> None:  # QB-96
    out = outgoing("t", 2)
    out.burst(1.0)
    old = sequence(out)[0].sequence_id
    out.on_header(ack(2, stored=2), 2.0)
    out.on_order_ack(old, 2, 2.0)
    maker = Maker(GUID, "t", random.Random(2), "p")
    out.add(*maker.next())
    out.burst(3.0)
    [tx] = sequence(out)
    assert tx.sequence_id > old
    assert (tx.number, tx.previous) == (1, 0)


def test_an_order_ack_names_one_stream_only() -> None:
    out = outgoing("tf", 8)
    out.burst(1.0)
    assert len({tx.sequence_id for tx in sequence(out)}) == 2


def test_an_order_ack_counts_for_what_waits_to_be_sent_again() -> None:
    out = outgoing("t", 2)
    out.burst(1.0)
    first = sequence(out)[0].sequence_id
    out.on_header(ack(2, stored=2), 2.0)
    out.end_session()
    out.begin_session(WINDOW)
    out.on_order_ack(first, 2, 3.0)
    assert ids(out) == []
    assert out.history.done == 2


def test_the_resend_timer_keeps_ids_and_order() -> None:  # QB-97
    out = outgoing("t", 3)
    out.burst(1.0)
    assert not out.resend_unordered(2.0)  # no session ack yet
    out.on_header(ack(3, stored=3), 2.0)
    assert out.resend_unordered(3.0)
    assert ids(out) == [1, 2, 3]
    assert [(tx.number, tx.previous) for tx in sequence(out)] == [(1, 0), (2, 1), (3, 2)]
    assert out.sent == 6


def test_a_host_with_an_old_disk_repeats_what_was_acked() -> None:
    out = outgoing("r", 3)
    out.burst(1.0)
    out.on_header(ack(3, stored=3), 2.0)
    out.end_session()
    out.begin_session(WINDOW)
    assert out.replay()
    assert (out.sent, out.sent_recoverable) == (3, 3)
    assert [op.sends for op in out.history.ops] == [2, 2, 2]
    assert not out.table


@pytest.mark.parametrize(
    "header", [ack(4), SessionHeader(ack=3, sent=1), SessionHeader(ack=3, window=0)]
)
def test_what_a_windows_host_would_hang_up_for(header: SessionHeader) -> None:  # QB-49
    out = outgoing("r", 3)
    out.burst(1.0)
    with pytest.raises(ViolationError):
        out.on_header(header, 2.0)
