from collections.abc import Sequence

from bridge.core.retained.place import END, START
from bridge.core.retained.queues import Queue, Traits
from bridge.core.retained.rows import Row
from bridge.core.retained.shelf import MemoryShelf
from bridge.core.retained.stock import Stock
from tests.core.retained.world import NOW, PLAIN, row


class CountingShelf(MemoryShelf):
    looked = 0

    def after(self, queue: str, place: int, limit: int) -> Sequence[Row]:
        found = super().after(queue, place, limit)
        self.looked += len(found)
        return found


def stock(*rows: Row) -> tuple[Stock, Queue, CountingShelf]:
    shelf = CountingShelf(rows)
    return Stock(shelf), Queue(PLAIN, Traits()), shelf


def test_locked_ones_are_skipped_in_both_directions() -> None:
    """DM-21: Locked messages are invisible."""
    rows = [row(n) for n in range(1, 7)]
    made, queue, _ = stock(*rows)
    for locked in (rows[0], rows[2], rows[3], rows[5]):
        made.lock(locked)
    window = made.window(queue, NOW)
    assert window.after(START) == rows[1]
    assert window.after(rows[1].lookup_id) == rows[4]
    assert window.after(rows[4].lookup_id) is None
    assert window.before(END) == rows[4]
    assert window.before(rows[4].lookup_id) == rows[1]
    assert window.before(rows[1].lookup_id) is None
    assert window.at(rows[2].lookup_id) is None
    assert window.at(rows[1].lookup_id) == rows[1]


def test_too_old_ones_are_not_available() -> None:
    old, fresh = row(1, expires=NOW), row(2, expires=NOW + 1)
    made, queue, _ = stock(old, fresh)
    window = made.window(queue, NOW + 0.5)
    assert window.after(START) == fresh
    assert window.at(old.lookup_id) is None
    assert made.find(queue, old.lookup_id) == old


def test_a_clock_that_goes_back_hides_nothing() -> None:
    old = row(1, expires=NOW)
    made, queue, _ = stock(old)
    assert made.window(queue, NOW).after(START) is None
    assert made.window(queue, NOW - 1).after(START) == old


def test_taking_many_looks_at_each_once() -> None:
    """A transaction may lock ten thousand messages one after the other."""
    many = 2000
    made, queue, shelf = stock(*(row(n) for n in range(1, many + 1)))
    for number in range(1, many + 1):
        found = made.window(queue, NOW).after(START)
        assert found is not None
        assert found.ordinal == number
        made.lock(found)
    assert made.window(queue, NOW).after(START) is None
    assert shelf.looked < 5 * many
