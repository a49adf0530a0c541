"""What every shelf promises, on both of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.adapters.store.retained_view import RetainedView
from bridge.core.retained.naming import DEADLETTER
from bridge.core.retained.place import END, START
from bridge.core.retained.rows import Wants, aborted, moved
from bridge.core.retained.shelf import EMPTY, MemoryShelf, Shelf, Totals
from tests.core.retained.world import ORDERS, PLAIN, RETRY, row

Shelves = Callable[[], Shelf]


@pytest.fixture(params=["memory", "sqlite"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    if request.param == "memory":
        yield MemoryShelf()
        return
    view = RetainedView(tmp_path / "view.db", "test")
    yield view
    view.close()


def test_in_the_order_of_the_queue_whatever_the_order_of_arrival(shelf: Shelf) -> None:
    """DM-20: priority 7 first, then arrival."""
    rows = [row(1, priority=3), row(2, priority=7), row(3, priority=3), row(4, priority=0)]
    shelf.add([rows[2], rows[0], rows[3], rows[1]])
    ordered = [rows[1], rows[0], rows[2], rows[3]]
    assert list(shelf.after(PLAIN, START, 9)) == ordered
    assert list(shelf.after(PLAIN, rows[0].lookup_id, 1)) == [rows[2]]
    assert list(shelf.before(PLAIN, END, 9)) == ordered[::-1]
    assert list(shelf.before(PLAIN, rows[2].lookup_id, 1)) == [rows[0]]
    assert list(shelf.after(ORDERS, START, 9)) == []


def test_by_place(shelf: Shelf) -> None:
    one = row(1)
    shelf.add([one])
    assert shelf.get(PLAIN, one.lookup_id) == one
    assert shelf.get(PLAIN, one.lookup_id + 1) is None
    assert shelf.get(ORDERS, one.lookup_id) is None


def test_a_row_comes_back_as_it_was(shelf: Shelf) -> None:
    full = row(
        5,
        ORDERS,
        expires=7,
        wants=Wants.ACK | Wants.FINAL,
        letterhead=b"\x00head",
        aborts=1,
        moves=2,
        moved_at=3,
    )
    shelf.add([full])
    assert shelf.get(ORDERS, full.lookup_id) == full


def test_totals_change_once_on_entry_once_on_exit(shelf: Shelf) -> None:
    """DM-31: TotalBytes changes once on entry, once on exit."""
    one, two = row(1, size=10), row(2, ORDERS, size=5)
    assert shelf.totals(PLAIN) == shelf.total() == EMPTY
    shelf.add([one, two])
    assert shelf.totals(PLAIN) == Totals(1, 10)
    assert shelf.total() == Totals(2, 15)
    assert set(shelf.queues()) == {PLAIN, ORDERS}
    new = moved(two, queue=RETRY, sequential_id=9, unix=0)
    shelf.replace(two, new)
    assert (shelf.totals(ORDERS), shelf.totals(RETRY)) == (EMPTY, Totals(1, 5))
    shelf.remove(one)
    assert shelf.totals(PLAIN) == EMPTY
    assert shelf.total() == Totals(1, 5)
    assert set(shelf.queues()) == {RETRY}


def test_copies_are_counted_apart(shelf: Shelf) -> None:
    """Journals and the queues of the machine; subqueues are not among them."""
    journal, dead = row(1, f"{ORDERS};journal", size=10), row(2, DEADLETTER, size=5)
    shelf.add([journal, dead, row(3, RETRY, size=7), row(4, size=100)])
    assert shelf.copies() == Totals(2, 15)
    shelf.remove(journal)
    assert shelf.copies() == Totals(1, 5)


def test_counters_change_in_place(shelf: Shelf) -> None:
    one = row(1)
    shelf.add([one])
    shelf.replace(one, aborted(one))
    assert list(shelf.after(PLAIN, START, 9)) == [aborted(one)]


def test_expiring_ones_of_all_queues(shelf: Shelf) -> None:
    soon, later, never = row(1, expires=50), row(2, ORDERS, expires=60), row(3)
    as_soon = row(4, expires=50)
    shelf.add([never, later, as_soon, soon])
    assert list(shelf.expiring((-1, START), 99, 9)) == [soon, as_soon, later]
    assert list(shelf.expiring((-1, START), 55, 9)) == [soon, as_soon]
    assert list(shelf.expiring((-1, START), 99, 1)) == [soon]
    assert list(shelf.expiring((50, soon.lookup_id), 99, 1)) == [as_soon]
    assert list(shelf.expiring((50, END), 99, 9)) == [later]
    shelf.remove(soon)
    assert list(shelf.expiring((-1, START), 49, 9)) == []


def test_one_place_and_one_record_for_each_message(shelf: Shelf) -> None:
    one = row(1)
    shelf.add([one])
    with pytest.raises(ValueError, match=r"already|two"):
        shelf.add([row(1, at=row(2).at)])
    with pytest.raises(ValueError, match=r"already|two"):
        shelf.add([row(3, at=one.at)])
    assert shelf.total() == Totals(1, 100)
