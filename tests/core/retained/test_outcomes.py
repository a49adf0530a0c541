import pytest

from bridge.core.retained.effects import Owed
from bridge.core.retained.naming import DEADLETTER, journal_of
from bridge.core.retained.outcomes import copy_goes_to, owed
from bridge.core.retained.rows import Wants
from bridge.model.classes import MessageClass
from tests.core.retained.world import PLAIN, row

RECEIVED = MessageClass.ACK_RECEIVE
NEGATIVE = [
    MessageClass.NACK_Q_DELETED,
    MessageClass.NACK_Q_PURGED,
    MessageClass.NACK_RECEIVE_TIMEOUT,
    MessageClass.NACK_RECEIVE_REJECTED,
]
JOURNAL = journal_of(PLAIN)


def test_classes_of_the_receive_stage() -> None:
    """Table 2.12"""
    assert [RECEIVED, *NEGATIVE] == [0x4000, 0xC000, 0xC001, 0xC002, 0xC004]


@pytest.mark.parametrize("reason", NEGATIVE)
def test_its_reason_picks_what_a_sender_hears(reason: MessageClass) -> None:
    """DM-17: every removal raises exactly one outcome; its reason picks the class. Table 2.12:
    received -> bit PR; deleted, purged, TTBR over, rejected -> bit NR."""
    positive, negative = row(wants=Wants.ACK), row(wants=Wants.NACK)
    assert owed(positive, RECEIVED) == owed(negative, reason) == Owed(admin=True)
    assert owed(positive, reason) == owed(negative, RECEIVED) == Owed()
    paid, unpaid = row(wants=Wants.RECEIPT), row(wants=Wants.NEGATIVE_RECEIPT)
    assert owed(paid, RECEIVED) == owed(unpaid, reason) == Owed(receipt=True)
    assert owed(paid, reason) == owed(unpaid, RECEIVED) == Owed()


@pytest.mark.parametrize("reason", [RECEIVED, *NEGATIVE])
def test_a_final_ack_whatever_the_reason(reason: MessageClass) -> None:
    """DM-18: FinalAck on removal iff transactional and (JN or JP or FA)."""
    assert owed(row(wants=Wants.FINAL), reason) == Owed(final=True)
    assert owed(row(), reason) == Owed()


def test_target_journal_on_receive_only() -> None:
    """DM-30: target journal on receive only; T-20. 2.14: not on purge, expiry, delete."""
    assert copy_goes_to(row(), RECEIVED, JOURNAL) == JOURNAL
    assert copy_goes_to(row(), RECEIVED, "") == ""
    for reason in NEGATIVE:
        assert copy_goes_to(row(), reason, JOURNAL) == ""


def test_what_leaves_a_journal_is_not_journaled_again() -> None:
    """2.14: Journaling and not System."""
    assert copy_goes_to(row(queue=JOURNAL), RECEIVED, JOURNAL) == ""


def test_dead_letters() -> None:
    """DM-30: dead letters as 2.14: TTBR over with JN, plain queue -> our DEADLETTER; SRMP plain
    also on purge."""
    plain, posted = (
        row(wants=Wants.DEAD_LETTER),
        row(wants=Wants.DEAD_LETTER | Wants.DEAD_WHEN_PURGED),
    )
    timeout, purged = MessageClass.NACK_RECEIVE_TIMEOUT, MessageClass.NACK_Q_PURGED
    assert copy_goes_to(plain, timeout, JOURNAL) == DEADLETTER
    assert copy_goes_to(plain, purged, JOURNAL) == ""
    assert copy_goes_to(posted, timeout, JOURNAL) == DEADLETTER
    assert copy_goes_to(posted, purged, JOURNAL) == DEADLETTER
    assert copy_goes_to(plain, MessageClass.NACK_Q_DELETED, JOURNAL) == ""


def test_a_transactional_message_dies_at_its_source() -> None:
    """2.14: transactional -> DEADXACT only at the source, on our negative FinalAck."""
    final = row(wants=Wants.FINAL)
    timeout = MessageClass.NACK_RECEIVE_TIMEOUT
    assert copy_goes_to(final, timeout, JOURNAL) == ""
    assert owed(final, timeout) == Owed(final=True)
