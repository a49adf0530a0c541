import pytest

from bridge.core.retained.naming import (
    DEADLETTER,
    DEADXACT,
    MACHINE_JOURNAL,
    is_subqueue,
    is_system,
    journal_of,
    parent_of,
    subqueue_of,
)

ORDERS = "private$\\orders"


def test_a_family_is_a_queue_its_journal_and_its_subqueues() -> None:
    assert journal_of(ORDERS) == "private$\\orders;journal"
    assert subqueue_of(ORDERS, "Retry") == "private$\\orders;retry"
    for name in (ORDERS, journal_of(ORDERS), subqueue_of(ORDERS, "Retry")):
        assert parent_of(name) == ORDERS


@pytest.mark.parametrize("name", [DEADLETTER, DEADXACT, MACHINE_JOURNAL, journal_of(ORDERS)])
def test_only_the_queue_manager_fills_system_queues(name: str) -> None:
    """DM-14: those … accept no application send."""
    assert is_system(name)
    assert not is_subqueue(name)


def test_the_queues_of_the_machine_have_no_parent() -> None:
    assert parent_of(DEADLETTER) == DEADLETTER


def test_a_subqueue_is_no_system_queue() -> None:
    assert is_subqueue(subqueue_of(ORDERS, "poison"))
    assert not is_system(subqueue_of(ORDERS, "poison"))
    assert not is_subqueue(ORDERS)
