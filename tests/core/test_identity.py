"""Ids that never come twice: DM-1."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.adapters.intake import MAX_PENDING
from bridge.core import identity
from bridge.core.identity import (
    BLOCK,
    IDENTITY_KEY,
    Ordinals,
    SequentialIds,
    identity_entry,
    known_identity,
)
from tests.core.messages import LOCAL


class Kafka:
    """What is asked for becomes durable with a later commit, or never."""

    def __init__(self) -> None:
        self.durable: bytes | None = None
        self.asked: list[bytes] = []

    def commit(self) -> None:
        if self.asked:
            self.durable = self.asked[-1]
            self.asked.clear()

    def start(self) -> Ordinals:
        """As the appliance does: the first mark is durable before any id is given out."""
        self.asked.clear()  # whatever a dead process had asked for
        ordinals = Ordinals(self.durable, self.asked.append)
        self.commit()
        return ordinals

    def start_sequential(self) -> SequentialIds:
        self.asked.clear()
        ids = SequentialIds(self.durable, self.asked.append, lambda: not self.asked)
        self.commit()
        return ids


def test_an_identity_is_kept() -> None:  # DM-1, design 3.2
    assert known_identity({}) is None
    assert known_identity({IDENTITY_KEY: identity_entry(LOCAL)}) == LOCAL


def test_the_first_id_is_1_and_its_mark_is_ahead() -> None:
    asked: list[bytes] = []
    ordinals = Ordinals(None, asked.append)
    assert asked == [b"%d" % (BLOCK + 1)]
    assert [ordinals(), ordinals(), ordinals()] == [1, 2, 3]


def test_a_restart_begins_at_the_mark() -> None:
    assert Ordinals(b"1000", lambda _: None)() == 1000


def test_the_next_block_is_asked_for_in_good_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "BLOCK", 10)
    asked: list[bytes] = []
    ordinals = Ordinals(None, asked.append)  # 1 to 10
    given_out = [ordinals() for _ in range(4)]
    assert asked == [b"11"]
    given_out.append(ordinals())  # 5: half of the block is left
    assert asked == [b"11", b"21"]
    assert given_out == [1, 2, 3, 4, 5]


def test_a_whole_unit_can_be_acknowledged_before_the_next_mark_is_durable() -> None:
    """Acks leave after a commit, the mark goes with the next one: what one unit can hold must
    not use up the half block that is left."""
    assert BLOCK // 2 >= 2 * MAX_PENDING


HALF = 8


@given(st.lists(st.one_of(st.integers(1, HALF), st.sampled_from(("commit", "crash")))))
def test_no_id_twice_whenever_the_process_dies(steps: list[int | str]) -> None:  # DM-1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "BLOCK", 2 * HALF)
        kafka = Kafka()
        ordinals: Callable[[], int] = kafka.start()
        seen: set[int] = set()
        since_commit = 0
        for action in steps:
            if action == "crash":
                ordinals, since_commit = kafka.start(), 0
            elif action == "commit":
                kafka.commit()
                since_commit = 0
            elif since_commit + int(action) <= HALF:
                since_commit += int(action)
                for _ in range(int(action)):
                    ordinal = ordinals()
                    assert ordinal not in seen
                    seen.add(ordinal)


@given(st.lists(st.one_of(st.integers(1, HALF // 2), st.sampled_from(("commit", "crash")))))
def test_whoever_waits_while_ids_are_short_never_passes_the_mark(steps: list[int | str]) -> None:
    """DM-1: the shard that commits the marks may hang for as long as it likes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "BLOCK", 2 * HALF)
        kafka = Kafka()
        ids, seen = kafka.start_sequential(), set[int]()
        for action in steps:
            if action == "crash":
                ids = kafka.start_sequential()
            elif action == "commit":
                kafka.commit()
            elif not ids.is_short:
                given_out = [ids() for _ in range(int(action))]
                assert kafka.durable is not None
                assert max(given_out) < int(kafka.durable)
                assert seen.isdisjoint(given_out)
                seen.update(given_out)
        kafka.commit()
        assert not ids.is_short  # nobody waits for ever


def test_short_of_ids_before_the_mark_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "BLOCK", 16)
    kafka = Kafka()
    ids = kafka.start_sequential()  # the mark that Kafka has is 17
    taken = 0
    while not ids.is_short:
        taken = ids()
    assert taken == 13  # a quarter of the block is left for who decides right now
    kafka.commit()
    assert not ids.is_short


def test_what_is_decided_at_once_fits_in_what_is_left() -> None:
    """Whoever found enough ids decides on one submission; readers' copies come with the mark."""
    assert BLOCK // 4 >= MAX_PENDING


def test_the_wrap_skips_0() -> None:  # 2.13: u32, may wrap
    ordinals = Ordinals(b"%d" % (2**32 - 2), lambda _: None)
    assert [ordinals() for _ in range(4)] == [2**32 - 2, 2**32 - 1, 1, 2]


def test_a_restart_right_at_the_wrap() -> None:
    assert Ordinals(b"%d" % 2**32, lambda _: None)() == 1
    assert Ordinals(b"%d" % (2**32 + 5), lambda _: None)() == 5


def test_marks_go_on_beyond_the_wrap() -> None:
    asked: list[bytes] = []
    Ordinals(b"%d" % (2**32 - 1), asked.append)
    assert int(asked[0]) > 2**32
