"""The schedule is the seed's, and a block of it has everything."""

from itertools import islice
from uuid import UUID

from tests.chaos.faults import ACTIONS
from tests.chaos.launcher import POINTS, Control, point_of
from tests.chaos.schedule import BINARY, FARTHEST_AHEAD_S, HOSTILE, HTTP, Step, steps
from tests.outside.rawmsmq import SessionHeader, cp_request, ec_request, session_ack

BLOCK = 37


def first(seed: int, count: int = BLOCK) -> list[Step]:
    return list(islice(steps(seed), count))


def test_the_schedule_is_the_seeds() -> None:
    assert first(5, 200) == first(5, 200)
    assert first(5) != first(6)


def test_a_block_has_every_fault_and_every_crash_point() -> None:
    block = first(1)
    assert {step.action for step in block} == set(ACTIONS)
    assert {step.point for step in block if step.point} == set(POINTS)
    assert {step.action for step in first(1, 2 * BLOCK)[BLOCK:]} == set(ACTIONS)


def test_a_hundred_kills_of_the_bridge_and_twenty_of_the_broker_in_ten_blocks() -> None:
    many = first(3, 10 * BLOCK)
    assert sum("bridge" in step.action and "kill" in step.action for step in many) >= 100
    assert sum("kill broker" in step.action or "both" in step.action for step in many) >= 20


def test_senders_of_one_kind_meet_what_can_hit_them() -> None:
    mine = list(islice(steps(4, BINARY), 200))
    assert mine == [step for step in first(4, 400) if step.only in ("", BINARY)][:200]
    assert not {"receipts lost", "answers lost", "requests twice"} & {s.action for s in mine}
    assert {step.point for step in mine} >= {"", "after-ack", "after-commit"}
    theirs = {step.point for step in islice(steps(4, HTTP), 200)}
    assert theirs >= {"after-answer", "after-receipt", "after-commit"}
    assert "after-ack" not in theirs


def test_strangers_alone_meet_kills_too() -> None:
    mine = list(islice(steps(4, HOSTILE), 100))
    actions = {step.action for step in mine}
    assert actions == {step.action for step in mine if step.only == HOSTILE} | {
        *("kill bridge", "kill broker"),
    }
    assert {"spoofed sources", "invented names", "poison", "topic deleted"} < actions
    assert "right taken away" in actions


def test_no_clock_is_farther_ahead_than_kafka_takes() -> None:
    assert all(step.seconds <= FARTHEST_AHEAD_S for step in first(2, 500))


def test_a_step_tells_what_it_does() -> None:
    step = Step(action="kill bridge", gap=0, point="after-ack", count=3, flag=True)
    assert str(step) == "kill bridge, at after-ack #3, on empty data"
    assert str(Step(action="freeze broker", gap=0, seconds=1.5)) == "freeze broker, +1.50 s"


def test_a_crash_point_is_reached_at_its_count() -> None:
    control = Control()
    assert not control.reach("after-commit")
    control.obey(["arm", "after-commit", "2", "17"])
    assert not control.reach("before-begin")
    assert [control.reach("after-commit") for _ in range(3)] == [False, True, False]
    control.obey(["clock", "-3.5"])
    assert control.ahead_s == -3.5


def test_what_is_an_ack() -> None:
    assert point_of(session_ack(SessionHeader(ack=1))) == "after-ack"
    assert not point_of(cp_request())
    assert not point_of(ec_request(UUID(int=1)))


def test_what_is_an_answer_or_a_receipt() -> None:
    assert point_of(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == "after-answer"
    assert not point_of(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    assert not point_of(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n")
    assert point_of(b"POST /MSMQ/PRIVATE$/order_queue$ HTTP/1.1\r\n") == "after-receipt"
