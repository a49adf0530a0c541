"""When stream receipts leave: SR-34, SR-35, SR-37; column T of table 5.1."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core import receipt_timers
from bridge.core.posted import Due
from bridge.core.receipt_timers import DELAY_S, LONGEST_S, ReceiptTimers
from bridge.core.streams import StreamKey
from tests.core.messages import OTHER, SENDER

A: StreamKey = (SENDER, "DIRECT=http://bridge/msmq/private$/a")
B: StreamKey = (OTHER, "DIRECT=http://bridge/msmq/private$/a")


def due(number: int, key: StreamKey = A, *, stream: int = 1, again: bool = False) -> Due:
    return Due(
        key=key,
        id=stream,
        text=f"uid:{key[0]}\\{stream}",
        number=number,
        receipts_to="http://sender/o",
        peer="10.0.0.1",
        is_repeated=again,
    )


def test_the_times_of_the_digest() -> None:  # srmp.md 4.1
    assert (DELAY_S, LONGEST_S) == (0.5, 10.0)


def test_half_a_second_after_a_message() -> None:  # SR-34, SR-35
    timers = ReceiptTimers()
    assert timers.next_wakeup() is None
    assert timers.add(due(1), 100.0) == []
    assert timers.next_wakeup() == 100.5
    assert timers.fire(100.49) == []
    assert timers.fire(100.5) == [due(1)]
    assert timers.fire(200.0) == []  # idle again
    assert timers.next_wakeup() is None


def test_each_message_starts_it_anew() -> None:  # SR-34: stop the timer, start it with 500 ms
    timers = ReceiptTimers()
    for number in range(1, 6):
        assert timers.add(due(number), number * 0.4) == []
        assert timers.fire(number * 0.4 + 0.39) == []
    assert timers.next_wakeup() == 2.5
    assert timers.fire(2.5) == [due(5)]  # SR-36: one receipt for all


def test_after_ten_seconds_at_once() -> None:  # SR-34
    timers = ReceiptTimers()
    times = [100.0 + 0.25 * n for n in range(41)]  # the last one is 10 s after the first
    sent = [timers.add(due(n), now) for n, now in enumerate(times, 1)]
    assert sent == [[]] * 40 + [[due(41)]]
    assert timers.next_wakeup() is None  # T stopped, t0 = 0


def test_the_ten_seconds_begin_anew_with_the_next_message() -> None:  # SR-34, SR-35: t0 = 0
    timers = ReceiptTimers()
    timers.add(due(1), 0.0)
    assert timers.add(due(2), 10.0) == [due(2)]
    assert timers.add(due(3), 10.1) == []
    assert timers.fire(10.6) == [due(3)]
    assert timers.add(due(4), 11.0) == []
    assert timers.add(due(5), 20.9) == []  # 9.9 s since t0, though 20.9 since the first
    assert timers.add(due(6), 21.0) == [due(6)]


def test_just_before_ten_seconds_the_timer_still_runs() -> None:  # SR-34, literally
    timers = ReceiptTimers()
    timers.add(due(1), 0.0)
    assert timers.add(due(2), 9.999) == []
    assert timers.fire(10.4) == []
    assert timers.fire(10.499) == [due(2)]


def test_a_duplicate_starts_an_idle_timer() -> None:  # SR-37
    timers = ReceiptTimers()
    again = due(3, again=True)
    assert timers.add(again, 0.0) == []
    assert timers.fire(0.5) == [again]


def test_duplicates_do_not_put_off_a_receipt() -> None:  # SR-37: only if idle
    timers = ReceiptTimers()
    timers.add(due(3), 0.0)
    for tenth in range(1, 5):
        assert timers.add(due(3, again=True), tenth / 10) == []
    assert timers.fire(0.5) == [due(3)]
    timers.add(due(3, again=True), 1.0)
    timers.add(due(3, again=True), 1.4)
    assert len(timers.fire(1.5)) == 1


def test_a_duplicate_is_not_what_the_ten_seconds_count_from() -> None:  # t0: of what was accepted
    timers = ReceiptTimers()
    timers.add(due(3, again=True), 0.0)
    assert timers.add(due(4), 0.4) == []  # starts anew, and t0
    assert timers.fire(0.5) == []
    for step in range(24):
        assert timers.add(due(5 + step), 0.8 + step * 0.4) == []
    assert timers.add(due(40), 10.4) == [due(40)]


def test_last_ordinal_never_falls() -> None:  # srmp.md 8.1
    timers = ReceiptTimers()
    timers.add(due(7), 0.0)
    timers.add(due(5), 0.1)
    timers.add(due(6, again=True), 0.2)
    assert [one.number for one in timers.fire(9.0)] == [7]


def test_streams_do_not_touch_each_other() -> None:  # SR-36: one receipt names one stream
    timers = ReceiptTimers()
    timers.add(due(1), 0.0)
    timers.add(due(5, B), 0.2)
    timers.add(due(2), 0.3)
    assert timers.next_wakeup() == 0.7
    assert timers.fire(0.7) == [due(5, B)]
    assert timers.next_wakeup() == 0.8
    assert timers.fire(0.8) == [due(2)]


def test_at_the_bound_the_first_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_timers, "MOST", 2)
    timers = ReceiptTimers()
    keys = [(SENDER, f"DIRECT=http://bridge/msmq/private$/{number}") for number in range(4)]
    assert timers.add(due(1, keys[0]), 0.0) == []
    assert timers.add(due(1, keys[1]), 0.1) == []
    assert timers.add(due(2, keys[0]), 0.2) == []  # put off: the second is first now
    assert timers.add(due(1, keys[2]), 0.3) == [due(1, keys[1])]
    assert timers.add(due(1, keys[3], again=True), 0.3) == [due(2, keys[0])]
    assert len(timers) == 2
    assert len(timers.fire(9.0)) == 2
    assert (len(timers), timers._waiting) == (0, {})


def test_a_busy_stream_among_thousands_costs_no_search() -> None:
    timers = ReceiptTimers()
    for number in range(4_000):
        timers.add(due(1, (SENDER, f"DIRECT=http://bridge/msmq/private$/{number}")), 1e6)
    before = timers._times.steps
    for number in range(50_000):
        timers.add(due(number, B), number / 1000)
        timers.next_wakeup()
        timers.fire(number / 1000)
    assert timers._times.steps - before < 3 * 50_000


def test_all_that_are_due_fire_together() -> None:
    timers = ReceiptTimers()
    timers.add(due(1), 0.0)
    timers.add(due(2, B), 0.1)
    assert timers.fire(5.0) == [due(1), due(2, B)]
    assert timers.next_wakeup() is None


def test_a_following_stream_flushes_the_one_before() -> None:  # 5.1: send receipt now if Pending
    timers = ReceiptTimers()
    timers.add(due(4, stream=1), 0.0)
    timers.add(due(9, B, stream=1), 0.0)
    assert timers.add(due(1, stream=2), 0.1) == [due(4, stream=1)]
    assert timers.fire(0.5) == [due(9, B, stream=1)]
    assert timers.fire(0.6) == [due(1, stream=2)]
    assert timers.add(due(1, stream=3), 1.0) == []  # the one before was Idle


def test_an_archived_stream_is_acknowledged_beside_the_present_one() -> None:  # SR-38
    timers = ReceiptTimers()
    old = due(9, stream=1, again=True)
    timers.add(due(2, stream=2), 0.0)
    assert timers.add(old, 0.2) == []
    assert timers.fire(0.5) == [due(2, stream=2)]
    assert timers.fire(0.7) == [old]


def test_a_flush_and_the_ten_seconds_at_once() -> None:
    timers = ReceiptTimers()
    old = due(9, stream=1, again=True)
    timers.add(due(2, stream=2), 0.0)
    timers.add(old, 9.9)
    assert timers.add(due(3, stream=2), 10.0) == [old, due(3, stream=2)]
    assert timers.next_wakeup() is None


# -- any schedule ---------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sampled_from((A, B)),
        st.sampled_from(("next", "again", "follow", "fire")),
        st.sampled_from((0.0, 0.1, 0.3, 0.5, 0.6, 4.0)),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_every_message_is_acknowledged_in_time(steps: list[tuple[StreamKey, str, float]]) -> None:
    """Whoever calls `fire` when `next_wakeup` says so: within 10.5 s, upwards, no stream lost."""
    timers = ReceiptTimers()
    now = 0.0
    at = {A: (1, 0), B: (1, 0)}  # id and number of each key
    owed: dict[tuple[StreamKey, int], tuple[int, float]] = {}  # number, and since when
    heard: dict[tuple[StreamKey, int], int] = {}

    def tell(dues: list[Due]) -> None:
        for one in dues:
            name = one.key, one.id
            assert one.number >= heard.get(name, 0)
            heard[name] = one.number
            number, since = owed.pop(name, (0, now))
            assert one.number >= number
            assert now - since <= 10.5 + 1e-6

    for key, what, pause in steps:
        stop = now + pause
        while (wakeup := timers.next_wakeup()) is not None and wakeup <= stop:
            now = wakeup
            tell(timers.fire(now))
        now = stop
        stream, number = at[key]
        if what == "fire":
            tell(timers.fire(now))
            continue
        if what == "again" and not number:
            continue
        if what == "follow" and number:
            stream, number = stream + 1, 0
        if what != "again":
            number += 1
        at[key] = stream, number
        _, since = owed.get((key, stream), (0, now))
        owed[key, stream] = number, since
        tell(timers.add(due(number, key, stream=stream, again=what == "again"), now))
    while (wakeup := timers.next_wakeup()) is not None:
        now = wakeup
        tell(timers.fire(now))
    assert owed == {}


@pytest.mark.parametrize("field", ["text", "receipts_to", "peer"])
def test_what_it_was_given_comes_back(field: str) -> None:
    changed: dict[str, Any] = {field: "other"}
    one = msgspec.structs.replace(due(1), **changed)
    timers = ReceiptTimers()
    timers.add(one, 0.0)
    assert timers.fire(0.5) == [one]


def test_streams_are_known_by_the_text_of_their_id() -> None:
    timers = ReceiptTimers()
    text = due(1).text
    assert not timers.has_text(text)
    timers.add(due(1), 100.0)
    timers.add(due(2), 100.1)
    timers.add(due(2, again=True), 100.2)
    other = msgspec.structs.replace(due(1, B), text=text)  # of another sender
    timers.add(other, 100.3)
    assert timers.has_text(text)
    timers.fire(100.7)
    assert timers.has_text(text)
    timers.fire(100.8)
    assert not timers.has_text(text)
