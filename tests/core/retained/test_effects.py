from bridge.core.retained.effects import Copy, Owed, Removal
from bridge.model.classes import MessageClass
from tests.core.retained.world import row


def test_when_the_record_must_be_read() -> None:
    """DM-19: a positive ack carries no body, a negative one the original's."""
    one, received = row(), MessageClass.ACK_RECEIVE
    purged = MessageClass.NACK_Q_PURGED
    assert not Removal(one, received, Owed(admin=True, final=True, receipt=True)).needs_record
    assert not Removal(one, purged, Owed(final=True, receipt=True)).needs_record
    assert Removal(one, purged, Owed(admin=True)).needs_record
    assert Removal(one, received, copy=Copy("journal", 1, 0)).needs_record
