from typing import Any

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


def test_a_copy_takes_the_place_of_its_message() -> None:
    """DM-30: over quota the copy is lost."""
    made, shelf, _ = quotas(machine_kb=1, journal_quota_kb=1)
    journal = f"{ORDERS};journal"
    shelf.add([row(1, PLAIN, size=1024)])  # the machine is full
    assert made.reserve_copy(journal, 1000)
    assert not made.reserve_copy(journal, 25)
    made.release(journal, 1000)
    assert made.reserve_copy(journal, 25)
    assert not made.reserve_copy("private$\\unknown;journal", 1)
