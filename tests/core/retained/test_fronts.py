"""What a compacted topic keeps of messages that left or changed. Design D5: a removal is an entry
of its own, the record stays in the topic; the view can be rebuilt."""

from collections.abc import Iterable, Mapping
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core.retained.effects import Change, Effect, Removal
from bridge.core.retained.fates import Fate, Fated, fates_of
from bridge.core.retained.fronts import Fronts, Partition
from bridge.core.retained.rows import RecordAt, Row, aborted, moved
from bridge.model.classes import MessageClass
from tests.core.retained.world import NOW, ORDERS, RETRY, row

RECEIVED, PURGED = MessageClass.ACK_RECEIVE, MessageClass.NACK_Q_PURGED
DATA: Partition = ("data", 0)


def gone(offset: int, topic: str = "data", reason: int = RECEIVED) -> Fated:
    return Fated(RecordAt(topic, 0, offset), Fate(reason))


def restored(state: Mapping[str, bytes]) -> Fronts:
    fronts = Fronts()
    for key, value in state.items():
        fronts.restore(key, value)
    return fronts


# -- entries --------------------------------------------------------------------------------


def test_in_order_one_number_is_enough() -> None:
    fronts = Fronts()
    assert fronts.commit([gone(0)], {DATA: 1}) == {"retained-front/data/0": b"1"}
    assert fronts.commit([gone(1), gone(2)], {DATA: 3}) == {"retained-front/data/0": b"3"}
    assert list(fronts) == [(DATA, 3)]


def test_out_of_turn_it_has_an_entry_of_its_own() -> None:
    fronts = Fronts()
    assert fronts.commit([gone(2, reason=PURGED)], {DATA: 0}) == {
        "retained/data/0/2": Fate(0xC001).encode()
    }
    assert list(fronts) == []


def test_what_the_front_passes_is_dropped() -> None:
    fronts = Fronts()
    fronts.commit([gone(1), gone(2), gone(5)], {})
    assert fronts.commit([gone(0)], {DATA: 3}) == {
        "retained-front/data/0": b"3",
        "retained/data/0/1": None,
        "retained/data/0/2": None,
    }
    assert fronts.commit([gone(3), gone(4)], {DATA: 6}) == {
        "retained-front/data/0": b"6",
        "retained/data/0/5": None,
    }


def test_a_change_is_dropped_once_the_record_is_gone() -> None:
    fronts = Fronts()
    one = row(3, ORDERS)
    new = moved(one, queue=RETRY, sequential_id=77, unix=NOW)
    key = "retained/data/0/3"
    assert fronts.commit(fates_of([Change(one, new)]), {DATA: 3}) == {
        "retained-front/data/0": b"3",
        key: Fate.of(new).encode(),
    }
    assert fronts.commit(fates_of([Removal(new, RECEIVED)]), {DATA: 4}) == {
        "retained-front/data/0": b"4",
        key: None,
    }


def test_a_front_never_goes_back() -> None:
    fronts = Fronts()
    fronts.commit([], {DATA: 5})
    assert fronts.commit([], {DATA: 4}) == {}
    assert fronts.commit([], {DATA: 5}) == {}
    assert list(fronts) == [(DATA, 5)]


def test_what_lies_before_the_front_needs_no_entry() -> None:
    """Whoever says once more that it is gone, and says nothing of the front."""
    fronts = Fronts()
    fronts.commit([], {DATA: 5})
    assert fronts.commit([gone(4), gone(5)], {}) == {"retained/data/0/5": Fate(0x4000).encode()}


def test_partitions_do_not_mix() -> None:
    fronts = Fronts()
    fronts.commit([gone(1, "a.b-c_d"), gone(1)], {})
    told = fronts.commit([], {("a.b-c_d", 0): 2, ("a.b-c_d", 1): 9})
    assert told == {
        "retained-front/a.b-c_d/0": b"2",
        "retained/a.b-c_d/0/1": None,
        "retained-front/a.b-c_d/1": b"9",
    }


def test_after_a_restart_entries_are_still_dropped() -> None:
    state = {
        "retained/data/0/7": Fate(0x4000).encode(),
        "retained-front/data/0": b"5",
        "retained/data/0/6": Fate(0xC001).encode(),
    }
    fronts = restored(state)
    assert dict(fronts) == {DATA: 5}
    assert sorted(fated.at.offset for fated in fronts.fates()) == [6, 7]
    assert list(fronts.fates()) == []  # after that the shelf knows
    assert fronts.commit([gone(5)], {DATA: 8}) == {
        "retained-front/data/0": b"8",
        "retained/data/0/6": None,
        "retained/data/0/7": None,
    }


def test_a_message_that_is_aborted_again_and_again_is_one_entry() -> None:
    """A poison message must not fill the memory."""
    fronts, one = Fronts(), row(3, ORDERS)
    for _ in range(100):
        fronts.commit(fates_of([Change(one, aborted(one))]), {DATA: 3})
        one = aborted(one)
    assert fronts._behind == {DATA: [3]}
    assert fronts.commit(fates_of([Removal(one, RECEIVED)]), {DATA: 4}) == {
        "retained-front/data/0": b"4",
        "retained/data/0/3": None,
    }
    assert (fronts._behind, fronts._keys) == ({}, set())


# -- any history ----------------------------------------------------------------------------

Step = tuple[str, int]
_steps = st.tuples(st.sampled_from(("remove", "remove", "move", "abort")), st.integers(0, 99))


class Topic:
    """Records in two partitions, the state topic compacted, and what should be on the shelf."""

    def __init__(self) -> None:
        self.log: list[Row] = []
        self.ends: dict[Partition, int] = {("data", 0): 0, ("data", 1): 0}
        self.waiting: dict[RecordAt, Row] = {}
        self.state: dict[str, bytes] = {}
        self.fronts = Fronts()
        self.ids = count(1000)

    def arrive(self, number: int, gap: int) -> None:
        """Markers of transactions, and records of nobody, leave gaps."""
        at = RecordAt("data", number, self.ends["data", number] + gap)
        self.ends["data", number] = at.offset + 1
        self.waiting[at] = row(len(self.log) + 1, ORDERS, at=at)
        self.log.append(self.waiting[at])

    def unit(self, steps: Iterable[Step], tells: bool, end: str) -> None:
        waiting, state = dict(self.waiting), dict[str, bytes | None]()
        for kind, index in steps:
            if not waiting:
                break
            effect = self.effect(kind, list(waiting.values())[index % len(waiting)])
            if isinstance(effect, Removal):
                del waiting[effect.row.at]
            else:
                waiting[effect.row.at] = effect.to
            state |= self.fronts.commit(fates_of([effect]), self.first(waiting) if tells else {})
        if tells:
            state |= self.fronts.commit([], self.first(waiting))
        if end == "lost":
            self.fronts = restored(self.state)
            return
        self.waiting = waiting
        for key, value in state.items():
            self.state.pop(key, None)
            if value is not None:
                self.state[key] = value
        if end == "restart":
            self.fronts = restored(self.state)

    def effect(self, kind: str, one: Row) -> Effect:
        if kind == "remove":
            return Removal(one, RECEIVED)
        if kind == "abort":
            return Change(one, aborted(one))
        to = RETRY if one.queue == ORDERS else ORDERS
        return Change(one, moved(one, queue=to, sequential_id=next(self.ids), unix=NOW))

    def first(self, waiting: Mapping[RecordAt, Row]) -> dict[Partition, int]:
        """In each partition, that waits."""
        return {
            partition: min(
                (at.offset for at in waiting if (at.topic, at.partition) == partition), default=end
            )
            for partition, end in self.ends.items()
        }

    def rebuilt(self) -> dict[RecordAt, Row]:
        """Below the front or with a gone fate: gone. Every other is there, with its last change."""
        again = restored(self.state)
        fronts, fates = dict(again), {fated.at: fated.fate for fated in again.fates()}
        rows: dict[RecordAt, Row] = {}
        for one in self.log:
            new: Row | None = one
            if one.at in fates:
                new = fates[one.at].applied_to(one)
            if new is not None and one.at.offset >= fronts.get((one.at.topic, one.at.partition), 0):
                rows[one.at] = new
        return rows

    def entries(self, partition: Partition) -> list[int]:
        topic, number = partition
        prefix = f"retained/{topic}/{number}/"
        return sorted(int(key.removeprefix(prefix)) for key in self.state if prefix in key)


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), max_size=4),
            st.lists(_steps, max_size=4),
            st.booleans(),
            st.sampled_from(("committed", "committed", "lost", "restart")),
        ),
        max_size=20,
    )
)
@settings(max_examples=200, deadline=None)
def test_the_shelf_is_what_the_compacted_topic_says(
    history: list[tuple[list[tuple[int, int]], list[Step], bool, str]],
) -> None:
    topic = Topic()
    for arrivals, steps, tells, end in history:
        for number, gap in arrivals:
            topic.arrive(number, gap)
        topic.unit(steps, tells, end)
        assert topic.rebuilt() == topic.waiting
        told = dict(restored(topic.state))
        for partition, last in topic.ends.items():
            entries, front = topic.entries(partition), told.get(partition, 0)
            assert all(front <= offset < last for offset in entries)  # so they are that few
            assert sorted(topic.fronts._behind.get(partition, [])) == entries
    topic.unit([("remove", 0)] * len(topic.waiting), True, "committed")
    assert topic.rebuilt() == {}
    assert all(key.startswith("retained-front/") for key in topic.state)
