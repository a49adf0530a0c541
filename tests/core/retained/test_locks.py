from bridge.core.retained.locks import Lock, Operation, Transaction
from bridge.model.classes import MessageClass
from tests.core.retained.world import UOW, row


def test_a_transaction_is_first_in_first_out() -> None:
    """data-model.md 1.7: FIFO of operations."""
    transaction = Transaction(UOW)
    for number in (3, 1, 2):
        lock = Lock(row(number), transaction)
        transaction.operations[lock.row.lookup_id] = Operation(lock)
    assert [each.lock.row.ordinal for each in transaction.operations.values()] == [3, 1, 2]


def test_what_is_dequeued_is_received_unless_somebody_says_otherwise() -> None:
    """data-model.md 2.7: Transaction -> Locked + Dequeue(AckReceive)."""
    assert Operation(Lock(row())).reason is MessageClass.ACK_RECEIVE
