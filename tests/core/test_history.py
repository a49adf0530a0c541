"""Duplicates of plain messages: DM-10, QB-70 to QB-72."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bridge.core import history as module
from bridge.core.history import (
    ENTRY_BYTES,
    KEPT_AT_LEAST,
    KEPT_AT_MOST,
    KEPT_S,
    SNAPSHOT_S,
    Mark,
    Part,
    SeenIds,
    mark_of,
)
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


# -- snapshots ------------------------------------------------------------------------------


class Topic:
    """The seen topic of a shard, and the place that its starts read from."""

    def __init__(self, **bounds: int) -> None:
        self._bounds = bounds
        self.values: list[bytes] = []
        self.keys: list[str] = []
        self.start = self.began = 0
        self.history = History(**bounds)

    def commit(self, unit: int, now: int = NOW) -> Part | None:
        fresh, part = self.history.take_fresh(now, unit), self.history.take_part(now, unit)
        if part is not None:
            if part.is_first:
                self.began = len(self.values) + len(fresh)
            fresh[part.key] = part.value
        self.keys += fresh
        self.values += fresh.values()
        if part is not None and part.is_last:
            self.start = self.began
        return part

    def finish(self, unit: int) -> int:
        """Write a snapshot to its end; the number of the unit that follows."""
        while self.history.is_being_written:
            self.commit(unit)
            unit += 1
        return unit

    def restart(self) -> History:
        self.history = History(**self._bounds)
        self.history.restore(self.values[self.start :])
        return self.history


def ids_by_peer(history: History) -> dict[str, list[Any]]:
    return {peer: list(ids) for peer, ids in history._of_peer.items() if ids}


def test_a_flood_of_one_peer_pushes_no_id_of_another_out_of_what_a_start_reads() -> None:
    topic = Topic(at_least=20, at_most=200, snapshot_bytes=5_000, part_ids=30)
    for ordinal in range(20):
        topic.history.record(SENDER, ordinal, NOW)
    topic.commit(1)
    most = 0
    for unit in range(2, 500):
        for ordinal in range(50):
            topic.history.record(OTHER, 50 * unit + ordinal, NOW, peer="10.6.6.6")
        topic.commit(unit)
        most = max(most, sum(map(len, topic.values[topic.start :])))
    assert sum(map(len, topic.values)) > 10 * most  # a start reads little of it
    assert most < 20_000
    after = topic.restart()
    assert all(after.has(SENDER, ordinal) for ordinal in range(20))
    assert len(after) <= 200


def test_ten_thousand_ids_and_a_snapshot_of_many_parts() -> None:
    """E3 with the real bounds, after 300,000 ids of a stranger."""
    topic = Topic(snapshot_bytes=1 << 20)
    for ordinal in range(KEPT_AT_LEAST):
        topic.history.record(SENDER, ordinal, NOW - 5 * KEPT_S)
    topic.commit(1, NOW - 5 * KEPT_S)
    for unit in range(2, 62):
        for ordinal in range(5_000):
            topic.history.record(OTHER, 5_000 * unit + ordinal, NOW, peer="10.6.6.6")
        topic.commit(unit)
    topic.finish(62)
    assert topic.start > 1  # its own entry is not read any more
    after = topic.restart()
    assert all(after.has(SENDER, ordinal) for ordinal in range(KEPT_AT_LEAST))


def test_a_snapshot_is_written_in_parts_one_to_a_unit() -> None:
    topic = Topic(snapshot_bytes=1, part_ids=10)
    for ordinal in range(25):
        topic.history.record(SENDER, ordinal, NOW)
    parts = [topic.commit(unit) for unit in (7, 8, 9, 10)]
    assert [(p.key, p.is_first, p.is_last) for p in parts if p is not None] == [
        ("7.s0", True, False),
        ("7.s1", False, False),
        ("7.s2", False, True),
    ]
    assert parts[3] is None
    assert len(set(topic.keys)) == len(topic.keys)  # the topic is compacted


def test_parts_are_small_enough_for_any_topic() -> None:
    topic = Topic()
    name = 200 * "\u20ac"
    for ordinal in range(20_000):
        source = Guid(ordinal.to_bytes(16, "big"))
        topic.history.record(source, f"{ordinal}@0123456789abcdef", NOW, queue=f"{name}{ordinal}")
    topic.commit(1)
    topic.commit(2, NOW + SNAPSHOT_S)
    topic.finish(3)
    parts = [v for k, v in zip(topic.keys, topic.values, strict=True) if ".s" in k]
    assert max(map(len, parts)) <= ENTRY_BYTES + 10_000
    assert topic.start > 0
    before, after = ids_by_peer(topic.history), ids_by_peer(topic.restart())
    assert before == after


def test_a_snapshot_is_due_by_time_because_the_topic_may_have_a_retention() -> None:
    topic = Topic()
    topic.history.record(SENDER, 1, NOW)
    assert topic.commit(1) is None
    assert topic.commit(2, NOW + SNAPSHOT_S - 1) is None
    assert topic.commit(3, NOW + SNAPSHOT_S) is not None
    assert topic.restart().has(SENDER, 1)
    assert topic.commit(4, NOW + 2 * SNAPSHOT_S - 1) is None  # a restart does not begin anew
    assert topic.commit(5, NOW + 2 * SNAPSHOT_S) is not None
    assert topic.commit(6, NOW) is not None  # the clock was set back


def test_without_ids_there_is_no_snapshot() -> None:
    topic = Topic()
    assert [topic.commit(1), topic.commit(2, NOW + 9 * SNAPSHOT_S)] == [None, None]
    topic.restart()
    assert topic.commit(3, NOW + 20 * SNAPSHOT_S) is None


def test_after_a_start_on_entries_of_an_earlier_version_a_snapshot_begins_at_once() -> None:
    topic = Topic()
    topic.values = [
        msgspec.json.encode({"at": NOW, "ids": {str(SENDER): [7]}}),
        msgspec.json.encode({"at": NOW, "seen": [[PEER, QUEUE, str(OTHER), [8]]]}),
    ]
    topic.restart()
    part = topic.commit(1, NOW + 1)
    assert part is not None
    assert part.is_last
    assert topic.start == 2
    after = topic.restart()
    assert after.knows(SENDER, 7, NOW)  # in every queue, as before
    assert after.has(OTHER, 8)
    assert not after.has(OTHER, 8, queue="private$\\other")


def test_a_snapshot_that_was_not_finished_is_begun_again_at_once() -> None:
    topic = Topic(snapshot_bytes=100, part_ids=10)
    for ordinal in range(25):
        topic.history.record(SENDER, ordinal, NOW)
    assert topic.commit(1) is not None
    assert topic.start == 0
    topic.restart()
    part = topic.commit(2)
    assert part is not None
    assert part.key == "2.s0"
    topic.finish(3)
    assert topic.start > 0
    assert len(topic.restart()) == 25


def test_ages_survive_a_snapshot() -> None:
    """An id that is young stays for its half hour, one that is old goes first."""
    topic = Topic(at_least=2, snapshot_bytes=1)
    topic.history.record(SENDER, 1, NOW - KEPT_S + 60)
    for ordinal in (2, 3, 4):
        topic.history.record(SENDER, ordinal, NOW)
    topic.commit(1)
    after = topic.restart()
    after.record(SENDER, 5, NOW + 61)
    assert [n for n in range(6) if after.has(SENDER, n)] == [2, 3, 4, 5]
    after.record(SENDER, 6, NOW + KEPT_S - 1)
    assert [n for n in range(7) if after.has(SENDER, n)] == [2, 3, 4, 5, 6]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("id"), st.integers(0, 12), st.sampled_from(["a", "b", "c"])),
        st.tuples(st.sampled_from(["unit", "lost", "restart"]), st.just(0), st.just("")),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_a_start_finds_what_all_entries_say(
    steps: list[tuple[str, int, str]],
) -> None:
    """Units that are committed, units that are lost with all that follows, restarts anywhere: a
    start from the newest whole snapshot knows what a start from the beginning would know."""
    topic = Topic(snapshot_bytes=400, part_ids=3)
    everything: list[bytes] = []
    unit, now = 0, NOW
    for step, number, peer in steps:
        if step == "id":
            key = SENDER, QUEUE, number
            if key in topic.history:
                topic.history.refresh(key, peer, now)
            else:
                topic.history.add(key, peer, now)
            continue
        unit, now = unit + 1, now + 1
        if step == "unit":
            place = len(topic.values)
            topic.commit(unit, now)
            everything += [v for v in topic.values[place:] if v.startswith(b"{")]
        elif step == "lost":
            topic.history.take_fresh(now, unit)
            topic.history.take_part(now, unit)
            topic.restart()
        else:
            topic.restart()
        reference = restored({str(n): value for n, value in enumerate(everything)})
        if step != "unit":
            assert ids_by_peer(topic.history) == ids_by_peer(reference)
