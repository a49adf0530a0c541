"""Duplicates of plain messages: DM-10, QB-70 to QB-72."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import history as module
from bridge.core.history import KEPT_AT_LEAST, KEPT_AT_MOST, KEPT_S, Mark, SeenIds, mark_of
from bridge.model.guid import Guid
from tests.core.messages import NOW, OTHER, SENDER, guids, plain, u32
from tests.core.posts import mail

LONG_AGO = NOW - KEPT_S - 1
QUEUE = "private$\\plain"
PEER = "10.1.2.3"


class History(module.History):
    """With the ids of one queue, brought by one peer."""

    def record(
        self, source: Guid, mark: Mark, now: int, peer: str = PEER, queue: str = QUEUE
    ) -> None:
        self.add((source, queue, mark), peer, now)

    def has(self, source: Guid, mark: Mark, queue: str = QUEUE) -> bool:
        return (source, queue, mark) in self

    def knows(self, source: Guid, mark: Mark, now: int) -> bool:
        """As a shard asks for a message that comes."""
        known = self.has(source, mark)
        if known:
            self.refresh((source, QUEUE, mark), PEER, now)
        return known


def restored(*units: dict[str, bytes]) -> History:
    history = History()
    history.restore([value for unit in units for value in unit.values()])
    return history


def test_the_promise_is_ten_thousand_ids_and_half_an_hour() -> None:  # DM-10
    assert KEPT_AT_LEAST >= 10_000
    assert KEPT_S >= 30 * 60


def test_an_id_is_guid_and_ordinal() -> None:  # QB-70, T-13
    history = History()
    history.record(SENDER, 1, NOW)
    assert history.knows(SENDER, 1, NOW)
    assert not history.knows(SENDER, 2, NOW)
    assert not history.knows(OTHER, 1, NOW)


def test_asking_adds_nothing() -> None:
    history = History()
    assert not history.knows(SENDER, 1, NOW)
    assert not history.knows(SENDER, 1, NOW)
    assert len(history) == 0
    assert history.take_fresh(NOW, 1) == {}


def test_a_mark_tells_the_copies_of_one_message_apart_in_a_fixed_size() -> None:
    assert mark_of(plain(7)) == 7
    one, two = (
        mark_of(plain(7, destination=name, destination_multi="DIRECT=OS:a\\q,DIRECT=OS:b\\q"))
        for name in ("DIRECT=OS:a\\q", "DIRECT=OS:b\\" + 60_000 * "q")
    )
    assert one != two
    assert isinstance(two, str)
    assert len(two) == len("7@") + 16
    history = History()
    history.record(SENDER, one, NOW)
    again = restored(history.take_fresh(NOW, 1))
    assert again.knows(SENDER, one, NOW)
    assert not again.knows(SENDER, two, NOW)
    assert not again.knows(SENDER, 7, NOW)


def test_over_http_an_id_counts_for_the_address_it_came_from() -> None:
    """A source in an envelope is a claim of whoever can connect."""
    marks = {mark_of(mail(7, peer=peer)) for peer in ("10.1.2.3", "10.1.2.4")}
    assert len(marks) == 2
    assert 7 not in marks


def test_an_id_counts_in_its_queue() -> None:
    history = History()
    history.record(SENDER, 7, NOW, queue="private$\\other")
    assert not history.knows(SENDER, 7, NOW)
    again = restored(history.take_fresh(NOW, 1))
    assert again.has(SENDER, 7, queue="private$\\other")
    assert not again.knows(SENDER, 7, NOW)


def test_a_flood_pushes_out_its_own_ids() -> None:
    """The peer that holds the most gives way, whatever GUIDs it uses."""
    history = History(at_least=10, at_most=100)
    for ordinal in range(20):
        history.record(SENDER, ordinal, NOW)
    for ordinal in range(5_000):
        history.record(Guid(ordinal.to_bytes(16, "big")), ordinal, NOW, peer="10.6.6.6")
        assert len(history) <= 100
    assert all(history.has(SENDER, ordinal) for ordinal in range(20))


def test_a_flood_from_many_addresses_leaves_each_its_share() -> None:
    history = History(at_least=1, at_most=100)
    for ordinal in range(8):
        history.record(SENDER, ordinal, NOW)
    for ordinal in range(5_000):
        history.record(OTHER, ordinal, NOW, peer=f"10.6.6.{ordinal % 10}")
        assert len(history) <= 100
    assert all(history.has(SENDER, ordinal) for ordinal in range(8))


def test_a_restart_after_a_flood_is_as_fair() -> None:
    before = History(at_least=10, at_most=100)
    kept: dict[str, bytes] = {}
    for unit in range(50):
        before.record(SENDER, unit % 20, NOW)
        for ordinal in range(100):
            before.record(OTHER, 100 * unit + ordinal, NOW, peer="10.6.6.6")
        kept |= before.take_fresh(NOW, unit)
    after = History(at_least=10, at_most=100)
    after.restore(kept.values())
    assert len(after) <= 100
    assert all(after.has(SENDER, ordinal) for ordinal in range(20))


def test_a_record_is_small_enough_for_any_topic() -> None:
    """A unit has tens of thousands of ids, and senders choose names."""
    history = History()
    name = 200 * "\u20ac"
    for ordinal in range(60_000):
        history.record(SENDER, f"{ordinal}@0123456789abcdef", NOW, queue=f"{name}{ordinal % 999}")
    kept = history.take_fresh(NOW, 5)
    assert all(len(value) < 1_000_000 for value in kept.values())
    assert list(kept)[:2] == ["5", "5.1"]
    again = restored(kept)
    assert again.has(SENDER, "59999@0123456789abcdef", queue=f"{name}{59_999 % 999}")


def test_ids_of_an_earlier_version_count_in_every_queue() -> None:
    """They were written without a queue."""
    earlier = msgspec.json.encode({"at": NOW, "ids": {str(SENDER): [7]}})
    history = History()
    history.restore([earlier])
    assert history.knows(SENDER, 7, NOW)
    assert not history.knows(SENDER, 8, NOW)
    assert msgspec.json.decode(earlier, type=SeenIds).ids == {str(SENDER): [7]}


def test_ten_thousand_old_ids_of_a_peer_are_kept() -> None:  # by number, however old they are
    history = History()
    for ordinal in range(KEPT_AT_LEAST):
        history.record(SENDER, ordinal, 0)
    for ordinal in range(5):  # far younger ones: each may push out one old id, not more
        history.record(OTHER, ordinal, NOW)
        assert len(history) == KEPT_AT_LEAST
    assert all(history.knows(SENDER, n, NOW) for n in range(5, KEPT_AT_LEAST))


def test_half_an_hour_is_kept_however_many_they_are() -> None:  # QB-72: by age
    history = History()
    count = 3 * KEPT_AT_LEAST
    for ordinal in range(count):
        history.record(SENDER, ordinal, NOW)
    history.record(OTHER, 0, NOW + KEPT_S)
    assert all(history.knows(SENDER, n, NOW + KEPT_S) for n in range(0, count, 97))


def test_what_is_too_old_goes_while_new_ones_come() -> None:  # QB-72
    history = History(at_least=10)
    for ordinal in range(100):
        history.record(SENDER, ordinal, LONG_AGO)
    for ordinal in range(100):
        history.record(OTHER, ordinal, NOW)
    assert not any(history.knows(SENDER, n, NOW) for n in range(100))
    assert all(history.knows(OTHER, n, NOW) for n in range(100))


def test_memory_is_bounded() -> None:
    assert KEPT_AT_MOST >= KEPT_AT_LEAST
    history = History(at_least=10, at_most=50)
    for ordinal in range(1000):
        history.record(SENDER, ordinal, NOW)
        assert len(history) <= 50
    assert history.knows(SENDER, 999, NOW)
    assert history.knows(SENDER, 950, NOW)
    assert not history.knows(SENDER, 949, NOW)


def test_a_hit_starts_its_time_anew() -> None:  # QB-71
    history = History(at_least=2)
    history.record(SENDER, 1, LONG_AGO)
    history.record(SENDER, 2, LONG_AGO)
    assert history.knows(SENDER, 1, NOW)
    for ordinal in range(3, 10):
        history.record(SENDER, ordinal, NOW)
    assert history.knows(SENDER, 1, NOW)
    assert not history.knows(SENDER, 2, NOW)


def test_fresh_ids_become_one_entry() -> None:
    history = History()
    history.record(SENDER, 1, NOW)
    history.record(OTHER, 7, NOW)
    history.record(SENDER, 2, NOW)
    (value,) = history.take_fresh(NOW + 1, 5).values()
    assert msgspec.json.decode(value) == {
        "at": NOW + 1,
        "seen": [[PEER, QUEUE, str(SENDER), [1, 2]], [PEER, QUEUE, str(OTHER), [7]]],
    }
    assert history.take_fresh(NOW, 6) == {}


def test_a_refreshed_id_is_written_again() -> None:  # QB-71: else a restart would forget it early
    history = History()
    history.record(SENDER, 1, NOW)
    history.take_fresh(NOW, 1)
    assert history.knows(SENDER, 1, NOW + 60)
    (value,) = history.take_fresh(NOW + 60, 2).values()
    assert msgspec.json.decode(value) == {
        "at": NOW + 60,
        "seen": [[PEER, QUEUE, str(SENDER), [1]]],
    }


def test_no_entry_replaces_another_by_its_key() -> None:
    """DM-10 across restarts. The seen topic is compacted: an entry whose key comes again is lost
    with every id in it."""
    history = History()
    for ordinal in (1, 2, 3):
        history.record(SENDER, ordinal, NOW)
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
                before.record(source, ordinal, NOW)
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
        before.record(SENDER, number, LONG_AGO + number)
        entries += before.take_fresh(LONG_AGO + number, number).values()
    after = History(at_least=10)
    after.restore(entries)
    after.record(OTHER, 1, NOW + 100)
    assert not after.knows(SENDER, 0, NOW)  # the oldest went first
    assert after.knows(SENDER, 9, NOW)


def test_a_restart_reads_no_more_than_it_keeps() -> None:
    before = History()
    entries: list[bytes] = []
    for number in range(100):
        before.record(SENDER, number, NOW)
        entries += before.take_fresh(NOW, number).values()
    after = History(at_least=10, at_most=50)
    after.restore(entries)
    assert [n for n in range(100) if after.has(SENDER, n)] == list(range(50, 100))


def test_a_restart_forgets_what_is_too_old() -> None:  # QB-72
    before = History()
    before.record(SENDER, 1, LONG_AGO)
    entries = [*before.take_fresh(LONG_AGO, 1).values()]
    for number in range(10):
        before.record(OTHER, number, NOW)
        entries += before.take_fresh(NOW, 2 + number).values()
    after = History(at_least=10)
    after.restore(entries)
    assert not after.has(SENDER, 1)
    assert len(after) == 10


def test_a_restart_knows_when_an_id_was_seen_last() -> None:  # QB-71
    before = History()
    entries: list[bytes] = []
    for unit, mark in enumerate((1, 2, 3, 1)):
        if not before.knows(SENDER, mark, NOW):
            before.record(SENDER, mark, NOW)
        entries += before.take_fresh(NOW, unit).values()
    after = History(at_least=1, at_most=3)
    after.restore(entries)
    after.record(OTHER, 1, NOW)
    assert [after.has(SENDER, n) for n in (1, 2, 3)] == [True, False, True]
