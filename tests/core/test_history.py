"""Duplicates of plain messages: DM-10, QB-70 to QB-72."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.history import KEPT_AT_LEAST, KEPT_AT_MOST, KEPT_S, History, mark_of
from bridge.model.guid import Guid
from tests.core.messages import NOW, OTHER, SENDER, guids, plain, u32

LONG_AGO = NOW - KEPT_S - 1


def restored(*units: dict[str, bytes]) -> History:
    history = History()
    history.restore([value for unit in units for value in unit.values()])
    return history


def test_the_promise_is_ten_thousand_ids_and_half_an_hour() -> None:  # DM-10
    assert KEPT_AT_LEAST >= 10_000
    assert KEPT_S >= 30 * 60


def test_an_id_is_guid_and_ordinal() -> None:  # QB-70, T-13
    history = History()
    history.add(SENDER, 1, NOW)
    assert history.knows(SENDER, 1, NOW)
    assert not history.knows(SENDER, 2, NOW)
    assert not history.knows(OTHER, 1, NOW)


def test_asking_adds_nothing() -> None:
    history = History()
    assert not history.knows(SENDER, 1, NOW)
    assert not history.knows(SENDER, 1, NOW)
    assert len(history) == 0
    assert history.take_fresh(NOW, 1) == {}


def test_what_is_discarded_was_never_there() -> None:  # DM-11
    history = History()
    history.add(SENDER, 1, NOW)
    history.discard(SENDER, 1)
    assert len(history) == 0
    assert history.take_fresh(NOW, 1) == {}
    history.add(SENDER, 1, NOW)
    history.add(SENDER, 2, NOW)
    history.discard(SENDER, 1)
    again = restored(history.take_fresh(NOW, 2))
    assert (again.knows(SENDER, 1, NOW), again.knows(SENDER, 2, NOW)) == (False, True)


def test_a_mark_is_the_ordinal_and_the_queue_of_one_copy() -> None:  # QB-70, 2.16
    assert mark_of(plain(7)) == 7
    several = plain(7, destination_multi="DIRECT=OS:a\\q,DIRECT=OS:b\\q")
    assert mark_of(several) == f"7@{several.destination}"
    history = History()
    history.add(SENDER, mark_of(several), NOW)
    again = restored(history.take_fresh(NOW, 1))
    assert again.knows(SENDER, mark_of(several), NOW)
    assert not again.knows(SENDER, 7, NOW)


def test_ten_thousand_old_ids_are_kept() -> None:  # QB-72: by number, however old they are
    history = History()
    for ordinal in range(KEPT_AT_LEAST):
        history.add(SENDER, ordinal, 0)
    for ordinal in range(5):  # far younger ones: each may push out one old id, not more
        history.add(OTHER, ordinal, NOW)
        assert len(history) == KEPT_AT_LEAST
    assert all(history.knows(SENDER, n, NOW) for n in range(5, KEPT_AT_LEAST))


def test_half_an_hour_is_kept_however_many_they_are() -> None:  # QB-72: by age
    history = History()
    count = 3 * KEPT_AT_LEAST
    for ordinal in range(count):
        history.add(SENDER, ordinal, NOW)
    history.add(OTHER, 0, NOW + KEPT_S)
    assert all(history.knows(SENDER, n, NOW + KEPT_S) for n in range(0, count, 97))


def test_what_is_too_old_goes_while_new_ones_come() -> None:  # QB-72
    history = History(at_least=10)
    for ordinal in range(100):
        history.add(SENDER, ordinal, LONG_AGO)
    for ordinal in range(100):
        history.add(OTHER, ordinal, NOW)
    assert not any(history.knows(SENDER, n, NOW) for n in range(100))
    assert all(history.knows(OTHER, n, NOW) for n in range(100))


def test_memory_is_bounded() -> None:
    assert KEPT_AT_MOST >= KEPT_AT_LEAST
    history = History(at_least=10, at_most=50)
    for ordinal in range(1000):
        history.add(SENDER, ordinal, NOW)
        assert len(history) <= 50
    assert history.knows(SENDER, 999, NOW)
    assert history.knows(SENDER, 950, NOW)
    assert not history.knows(SENDER, 949, NOW)


def test_a_hit_starts_its_time_anew() -> None:  # QB-71
    history = History(at_least=2)
    history.add(SENDER, 1, LONG_AGO)
    history.add(SENDER, 2, LONG_AGO)
    assert history.knows(SENDER, 1, NOW)
    for ordinal in range(3, 10):
        history.add(SENDER, ordinal, NOW)
    assert history.knows(SENDER, 1, NOW)
    assert not history.knows(SENDER, 2, NOW)


def test_fresh_ids_become_one_entry() -> None:
    history = History()
    history.add(SENDER, 1, NOW)
    history.add(OTHER, 7, NOW)
    history.add(SENDER, 2, NOW)
    (value,) = history.take_fresh(NOW + 1, 5).values()
    assert msgspec.json.decode(value) == {
        "at": NOW + 1,
        "ids": {str(SENDER): [1, 2], str(OTHER): [7]},
    }
    assert history.take_fresh(NOW, 6) == {}


def test_a_refreshed_id_is_written_again() -> None:  # QB-71: else a restart would forget it early
    history = History()
    history.add(SENDER, 1, NOW)
    history.take_fresh(NOW, 1)
    assert history.knows(SENDER, 1, NOW + 60)
    (value,) = history.take_fresh(NOW + 60, 2).values()
    assert msgspec.json.decode(value) == {"at": NOW + 60, "ids": {str(SENDER): [1]}}


def test_no_entry_replaces_another_by_its_key() -> None:
    """DM-10 across restarts. The seen topic is compacted: an entry whose key comes again is lost
    with every id in it."""
    history = History()
    for ordinal in (1, 2, 3):
        history.add(SENDER, ordinal, NOW)
    kept = history.take_fresh(NOW, 1)
    assert history.knows(SENDER, 1, NOW)  # the first id of the first entry is sent again
    kept |= history.take_fresh(NOW, 2)
    after = restored(kept)
    assert all(after.knows(SENDER, ordinal, NOW) for ordinal in (1, 2, 3))


@given(st.lists(st.lists(st.tuples(guids, u32), max_size=5), max_size=5))
def test_a_restart_forgets_nothing(units: list[list[tuple[Guid, int]]]) -> None:  # DM-10
    before = History()
    kept: dict[str, bytes] = {}
    for number, ids in enumerate(units):
        for source, ordinal in ids:
            if not before.knows(source, ordinal, NOW):
                before.add(source, ordinal, NOW)
        kept |= before.take_fresh(NOW, number)
    after = restored(kept)
    assert len(after) == len(before)
    assert after.take_fresh(NOW, 9) == {}  # what was read is not written again
    for ids in units:
        assert all(after.knows(source, ordinal, NOW) for source, ordinal in ids)


def test_a_restart_keeps_order_and_bounds() -> None:
    before = History(at_least=10)
    entries: list[bytes] = []
    for number in range(10):
        before.add(SENDER, number, LONG_AGO + number)
        entries += before.take_fresh(LONG_AGO + number, number).values()
    after = History(at_least=10)
    after.restore(entries)
    after.add(OTHER, 1, NOW + 100)
    assert not after.knows(SENDER, 0, NOW)  # the oldest went first
    assert after.knows(SENDER, 9, NOW)


def test_a_restart_reads_no_more_than_it_keeps() -> None:
    """Newest first: what could not be kept anyway may even be unreadable."""
    before = History()
    entries: list[bytes] = [b"not JSON"]
    for number in range(100):
        before.add(SENDER, number, NOW)
        entries += before.take_fresh(NOW, number).values()
    after = History(at_least=10, at_most=50)
    after.restore(entries)
    assert [n for n in range(100) if (SENDER, n) in after] == list(range(50, 100))


def test_a_restart_forgets_what_is_too_old() -> None:  # QB-72
    before = History()
    before.add(SENDER, 1, LONG_AGO)
    entries = [b"not JSON", *before.take_fresh(LONG_AGO, 1).values()]
    for number in range(10):
        before.add(OTHER, number, NOW)
        entries += before.take_fresh(NOW, 2 + number).values()
    after = History(at_least=10)
    after.restore(entries)
    assert (SENDER, 1) not in after
    assert len(after) == 10


def test_a_restart_knows_when_an_id_was_seen_last() -> None:  # QB-71
    before = History()
    entries: list[bytes] = []
    for unit, mark in enumerate((1, 2, 3, 1)):
        if not before.knows(SENDER, mark, NOW):
            before.add(SENDER, mark, NOW)
        entries += before.take_fresh(NOW, unit).values()
    after = History(at_least=1, at_most=3)
    after.restore(entries)
    after.add(OTHER, 1, NOW)
    assert [(SENDER, n) in after for n in (1, 2, 3)] == [True, False, True]
