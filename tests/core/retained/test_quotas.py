from typing import Any

from bridge.core.retained.naming import DEADLETTER
from bridge.core.retained.queues import QueueTable, Traits
from bridge.core.retained.quotas import Quotas, Shortage
from bridge.core.retained.shelf import MemoryShelf
from tests.core.retained.world import ORDERS, PLAIN, RETRY, row


def quotas(machine_kb: int | None = None, **traits: Any) -> tuple[Quotas, MemoryShelf, QueueTable]:
    shelf, table = MemoryShelf(), QueueTable()
    table.define(ORDERS, Traits(**traits))
    table.define(PLAIN, Traits())
    return Quotas(shelf, table, machine_kb), shelf, table


def test_no_quota_no_limit() -> None:
    made, _, _ = quotas()
    assert made.shortage(ORDERS, 1 << 40) is None


def test_what_a_queue_holds_and_what_is_on_its_way() -> None:
    """data-model.md 2.5: queue quota -> 1."""
    made, shelf, _ = quotas(quota_kb=1)
    shelf.add([row(1, ORDERS, size=500)])
    assert made.shortage(ORDERS, 524) is None
    made.reserve(ORDERS, 524)
    assert made.shortage(ORDERS, 1) is Shortage.QUEUE
    assert made.shortage(PLAIN, 9999) is None
    made.release(ORDERS, 524)
    assert made.shortage(ORDERS, 1) is None


def test_a_move_to_a_subqueue_frees_nothing() -> None:
    made, shelf, table = quotas(quota_kb=1)
    table.find(RETRY)
    shelf.add([row(1, RETRY, size=1000)])
    assert made.shortage(ORDERS, 100) is Shortage.QUEUE


def test_the_machine_is_asked_first() -> None:
    """data-model.md 2.5: Throttled or QM quota -> 2; queue quota -> 1. T-12: own setting in KB."""
    made, shelf, _ = quotas(machine_kb=1, quota_kb=1)
    shelf.add([row(1, PLAIN, size=600)])
    made.reserve(ORDERS, 300)
    assert made.shortage(ORDERS, 200) is Shortage.MACHINE
    assert made.shortage(ORDERS, 124) is None


JOURNAL = f"{ORDERS};journal"


def test_a_copy_that_does_not_fit_is_not_made() -> None:
    """MS-MQDMPR 3.1.1.12: "If the quota for the dead-letter queue is exceeded, the message MUST be
    discarded"; the system journal likewise."""
    made, _, _ = quotas(journal_quota_kb=1)
    assert made.reserve_copy(JOURNAL, 1000)
    assert not made.reserve_copy(JOURNAL, 25)
    made.release(JOURNAL, 1000)
    assert made.reserve_copy(JOURNAL, 25)
    assert made.reserve_copy("private$\\just-made;journal", 1)
    assert made.copies_left_out == 1


def test_a_copy_counts_against_the_machine() -> None:
    """MS-MQDMPR 3.1.1.1: QueueManagerQuota is for "all queues hosted by the queue manager"."""
    made, shelf, _ = quotas(machine_kb=1)
    shelf.add([row(1, PLAIN, size=1000)])
    assert not made.reserve_copy(JOURNAL, 25)
    assert made.reserve_copy(JOURNAL, 24)
    assert made.shortage(PLAIN, 1) is Shortage.MACHINE


def test_the_copy_of_a_message_that_leaves_takes_its_place() -> None:
    made, shelf, _ = quotas(machine_kb=1)
    shelf.add([row(1, ORDERS, size=400), row(2, PLAIN, size=624)])  # the machine is full
    assert not made.reserve_copy(JOURNAL, 400)
    assert made.reserve_copy(JOURNAL, 400, freed=400)


def test_copies_leave_half_of_the_machine_to_messages() -> None:
    """Else what nobody reads would end the arrivals for good."""
    made, shelf, _ = quotas(machine_kb=1)
    shelf.add([row(1, JOURNAL, size=300), row(2, DEADLETTER, size=100)])
    made.reserve(JOURNAL, 100)
    assert made.copies() == 500
    assert not made.reserve_copy(DEADLETTER, 13)
    assert not made.reserve_copy(DEADLETTER, 13, freed=13)
    assert made.reserve_copy(DEADLETTER, 12)
    assert made.shortage(PLAIN, 513) is Shortage.MACHINE
    assert made.shortage(PLAIN, 512) is None


def test_too_many_copies_of_an_earlier_build_do_not_stop_arrivals() -> None:
    made, shelf, _ = quotas(machine_kb=1)
    shelf.add([row(1, JOURNAL, size=5000)])
    assert made.shortage(PLAIN, 512) is None
    assert made.shortage(PLAIN, 513) is Shortage.MACHINE
