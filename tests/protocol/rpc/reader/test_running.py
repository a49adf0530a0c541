from __future__ import annotations

import pytest

from bridge.protocol.rpc.reader.running import Running
from bridge.protocol.rpc.reader.steps import ConnectionLost, Flow, Pause

LOST = ConnectionLost("cut")


def flow() -> Flow[str]:
    yield Pause(1)
    yield Pause(2)
    return "done"


def test_step_by_step() -> None:
    running = Running(flow)
    assert [running.step() for _ in range(3)] == [Pause(1), Pause(2), None]
    assert running.result == "done"


def test_from_the_start_after_a_loss() -> None:
    running = Running(flow)
    assert running.step() == Pause(1)
    assert running.lost(LOST) > 0
    assert running.step() == Pause(1)


def test_longer_rests_and_an_end() -> None:
    running = Running(flow, retries=8)
    rests = [running.lost(LOST) for _ in range(8)]
    assert rests == sorted(rests)
    assert rests[-1] == 10.0
    with pytest.raises(ConnectionLost):
        running.lost(LOST)


def test_progress_makes_it_patient_again() -> None:
    running = Running(flow, retries=1)
    for _ in range(5):
        running.lost(LOST)
        running.progressed()
    running.lost(LOST)
    with pytest.raises(ConnectionLost):
        running.lost(LOST)
