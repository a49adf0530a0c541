"""A sender over HTTP does what MSMQ does; otherwise a clean run would prove nothing."""

from collections.abc import Sequence
from itertools import count
from uuid import UUID

import pytest

from tests.chaos.history import History, Mode, Op
from tests.chaos.outgoing import ViolationError
from tests.chaos.postbox import RECENT_STREAMS, WAITS_S, BusyError, Letter, Postbox
from tests.outside.srmp.wire import Mail, Receipt, url

GUID = UUID(int=7)
TO = url("orders")
E, R, T = Mode.EXPRESS, Mode.RECOVERABLE, Mode.TRANSACTIONAL


def postbox(modes: Sequence[Mode], *, final: bool = False) -> Postbox:
    ordinals = count(1)
    box = Postbox("orders", History(), lambda: next(ordinals))
    box.receipts_to = "http://sender/receipts"
    add(box, modes, final=final)
    box.begin_session()
    return box


def add(box: Postbox, modes: Sequence[Mode], *, final: bool = False) -> None:
    for mode in modes:
        number = len(box.history.ops) + 1
        op = Op(
            identity=f"{GUID}\\{number}",
            mode=mode,
            stream="s",
            topic="t",
            number=number,
            digest=b"",
        )
        box.add(op, Mail(to=TO, source=GUID, number=number), final=final)


def post(box: Postbox, now: float = 1.0, status: int = 200) -> Letter:
    letter = box.next(now)
    assert letter is not None
    box.on_answer(letter, status, now)
    return letter


def post_all(box: Postbox, now: float = 1.0) -> list[Letter]:
    posted = []
    while box.unsent:
        posted.append(post(box, now))
    return posted


def receipt(letter: Letter, type: str = "stream", decision: str = "") -> Receipt:
    return Receipt(
        type=type,
        action="",
        to="",
        via="",
        number=1,
        source=GUID,
        sent=0,
        kind=255,
        priority=0,
        correlation="",
        stream=letter.stream,
        last=letter.number,
        decision=decision,
    )


def ids(letters: Sequence[Letter]) -> list[int]:
    return [letter.mail.number for letter in letters]


@pytest.mark.parametrize("mode", [E, R])
def test_plain_until_the_answer_is_200(mode: Mode) -> None:  # 1.4
    box = postbox([mode, mode])
    first = box.next(1.0)
    assert first is not None
    with pytest.raises(BusyError):
        box.on_answer(first, 503, 2.0)
    box.begin_session()
    assert post(box, 3.0) is first
    assert (first.op.sent_at, first.op.sends, first.op.stored_at) == (1.0, 2, 3.0)
    assert ids(box.kept) == [2]
    assert box.history.done == 1


def test_of_a_stream_until_its_receipt_comes() -> None:  # SR-51
    box = postbox([T] * 3)
    first, second, third = post_all(box)
    assert ids(box.kept) == [1, 2, 3]
    assert first.op.stored_at is None  # 200 promises nothing
    box.on_receipt(receipt(second), 5.0)
    assert ids(box.kept) == [3]
    assert (first.op.ordered_at, second.op.done_at, third.op.ordered_at) == (5.0, 5.0, None)


def test_numbers_start_and_previous_ones() -> None:  # SR-72
    box = postbox([T] * 3)
    steps = [letter.mail.step for letter in post_all(box)]
    assert [(s.current, s.previous) for s in steps if s] == [(1, None), (2, 1), (3, 2)]
    assert [s.receipts for s in steps if s] == ["http://sender/receipts", None, None]
    box.on_receipt(receipt(box.kept[1]), 2.0)
    box.begin_session()
    [again] = post_all(box)
    assert again.mail.step is not None
    assert (again.mail.step.current, again.mail.step.previous) == (3, None)  # 2 is no longer here


def test_all_again_after_a_break_with_the_same_ids_and_numbers() -> None:  # 5.2, Inactive
    box = postbox([T] * 4)
    before = [(letter.mail.number, letter.stream, letter.number) for letter in post_all(box)]
    box.begin_session()
    assert [(o.mail.number, o.stream, o.number) for o in post_all(box)] == before
    assert [op.sends for op in box.history.ops] == [2] * 4


def test_all_again_when_the_receipt_is_late() -> None:  # SR-76, SR-52
    box = postbox([T] * 2)
    post_all(box, 1.0)
    box.tick(1.0 + WAITS_S[0] - 0.1)
    assert not box.unsent
    box.tick(1.0 + WAITS_S[0])
    assert ids(post_all(box, 20.0)) == [1, 2]
    box.on_receipt(receipt(box.kept[0]), 21.0)
    box.tick(21.0 + WAITS_S[0])
    assert ids(post_all(box, 30.0)) == [2]


def test_a_new_stream_when_nothing_is_kept() -> None:  # SR-54
    box = postbox([T])
    [old] = post_all(box)
    box.on_receipt(receipt(old), 2.0)
    add(box, [T])
    [new] = post_all(box)
    assert new.number == 1
    assert new.stream != old.stream
    box.on_receipt(receipt(old), 3.0)  # late
    assert ids(box.kept) == [2]


def test_a_receipt_may_be_faster_than_the_answer() -> None:
    box = postbox([T])
    letter = box.next(1.0)
    assert letter is not None
    box.on_receipt(receipt(letter), 2.0)
    box.on_answer(letter, 200, 3.0)
    assert box.size == 0
    assert box.history.done == 1


def test_a_receipt_of_what_was_never_sent() -> None:
    box = postbox([T] * 2)
    letter = post(box)
    letter.number = 2
    with pytest.raises(ViolationError, match="never sent"):
        box.on_receipt(receipt(letter), 2.0)


def test_a_final_receipt_beside_that_of_the_stream() -> None:  # SR-53
    box = postbox([T, T], final=True)
    first, second = post_all(box)
    box.on_receipt(receipt(second), 2.0)
    assert (box.kept, box.finals) == ([], [first, second])
    box.on_receipt(receipt(first, "final", "positive"), 3.0)
    assert box.finals == [second]
    assert first.op.done_at == 3.0
    with pytest.raises(ViolationError, match="refused"):
        box.on_receipt(receipt(second, "final", "negative"), 4.0)


def test_the_second_before_the_first() -> None:
    box = postbox([T] * 3)
    box.swaps = 1
    assert [letter.number for letter in post_all(box)] == [2, 1, 3]
    box.begin_session()
    assert [letter.number for letter in post_all(box)] == [1, 2, 3]


def test_a_refused_message_is_gone() -> None:  # 1.4: 400 is for good
    box = postbox([R])
    with pytest.raises(ViolationError, match="400"):
        post(box, status=400)
    assert box.size == 0
    assert box.history.ops[0].done_at is None


def test_a_host_with_an_old_disk_repeats_what_was_acknowledged() -> None:
    box = postbox([E, R, R])
    post(box)
    post(box)
    add(box, [E])
    box.restart()
    assert [op.dropped for op in box.history.ops] == [False, False, False, True]
    assert ids(post_all(box)) == [2, 3]
    assert box.history.done == 3
    assert box.history.ops[1].sends == 2


def test_only_the_latest_streams_are_repeated() -> None:  # SR-38
    box = postbox([])
    for _ in range(RECENT_STREAMS + 2):
        add(box, [T])
        [letter] = post_all(box)
        box.on_receipt(receipt(letter), 2.0)
    box.restart()
    assert ids(post_all(box)) == [3, 4, 5, 6]
