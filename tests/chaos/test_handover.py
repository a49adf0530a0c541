"""A leader and its standby, handed over in every way, under load: nothing is wrong afterwards."""

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.bugs import BUGS
from tests.chaos.handover import HANDOVERS, Pair, handovers
from tests.chaos.history import Break, Handover, History, Mode, Op
from tests.chaos.report import summary
from tests.chaos.run import Settings, run
from tests.chaos.schedule import Step
from tests.support.kafka import unique
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(240)
BLOCK = 20
LEASE_S = 2.0
IN_SIGHT = "is in sight"
QUICK_KINDS = ("k", "rt", "T", "f", "R", "t")  # without express ones, whose last acks take 10 s
FREEZE = Step(action="freeze leader", gap=0.3)
STEPS = [
    Step(action="hand over", gap=0.5),
    FREEZE,
    Step(action="kill bridge", gap=0.2, point="after-commit", count=2, flag=True),
]


@pytest.mark.kafka
def test_nothing_is_wrong_after_hand_overs(broker: EmbeddedKafka, tmp_path: Path) -> None:
    settings = Settings(
        seed=1801, seconds=150, senders=6, rate=90, kinds=QUICK_KINDS, lease_s=LEASE_S
    )
    verdict = asyncio.run(run(broker, tmp_path, STEPS, settings))
    assert verdict.passed, "\n".join(verdict.lines())


@pytest.mark.kafka
def test_the_first_retry_finds_an_open_door(broker: EmbeddedKafka, tmp_path: Path) -> None:
    """A session that broke is tried again after 5 s (MS-MQQB 3.1.6.1, QB-27): somebody listens.

    Told to stop or killed: the lease of a minute is not what it waits for."""

    async def test() -> None:
        pair = Pair(broker, tmp_path, unique("retry"), 1801, senders=1, lease_s=60)
        breaks = pair.history.breaks
        try:
            await pair._start()
            await pair._act(Step(action="hand over", gap=0))  # SIGTERM
            await until(lambda: breaks)
            # A leader that its standby has never seen is missed only when its lease runs out.
            standby = pair._other
            await until(lambda: any(IN_SIGHT in line for line in standby.lines[standby._begun :]))
            await pair._act(Step(action="kill bridge", gap=0))  # SIGKILL
            await until(lambda: len(breaks) > 1)
            assert [each.tries for each in breaks] == [1, 1]
            assert pair.history.surprises == []
        finally:
            await pair.stop()

    asyncio.run(test())


@pytest.mark.kafka
def test_who_goes_on_acking_is_found(broker: EmbeddedKafka, tmp_path: Path) -> None:
    """One that leads no more and does not care: its acks are of what is nowhere."""
    bug = "ack-when-fenced"
    settings = Settings(
        seed=1801,
        seconds=60,
        senders=4,
        rate=80,
        kinds=("r",),
        patience_s=5,
        bug=bug,
        lease_s=LEASE_S,
    )
    verdict = asyncio.run(run(broker, tmp_path, [FREEZE], settings))
    assert verdict.names == {BUGS[bug][0]}, "\n".join(verdict.lines())


def test_a_block_has_every_way() -> None:
    block = list(islice(handovers(7), BLOCK))
    assert {step.action for step in block} >= set(HANDOVERS)
    assert block == list(islice(handovers(7), BLOCK))
    assert list(islice(handovers(7), 2 * BLOCK))[BLOCK:] != block


def test_the_first_ack_is_one_of_the_new_leader() -> None:
    def op(at: float) -> Op:
        return Op(
            identity=str(at), mode=Mode.RECOVERABLE, stream="", topic="", number=1, digest=b""
        )

    history = History(handovers=[Handover("planned", 10.0, 11.0, 12.0)])
    for at in (10.5, 12.25, 13.0):  # the first is one of the leader that goes
        history.ops.append(op(at))
        history.ops[-1].stored_at = at
    assert list(summary(history, {}, set()))[-2] == (
        "hand-overs, planned: 1; seconds until the next one listens 2.0 (2.0 to 2.0), "
        "until its first ack 2.2 (2.2 to 2.2)"
    )


def test_what_a_patient_sender_saw_is_told_by_kind() -> None:
    handovers = [Handover("planned", 10.0, 11.0, 12.0), Handover("killed", 20.0, 21.0, 22.0)]
    breaks = [Break(10.1, 1, 15.2), Break(16.0, 2, 26.0), Break(19.9, 1, 25.0)]
    assert list(summary(History(handovers=handovers, breaks=breaks), {}, set()))[-3:-1] == [
        "a sender with MSMQ's retry timer of 5 s, killed: 1 breaks, "
        "its first retry got in 1 times; longest silence 5.1 s",
        "a sender with MSMQ's retry timer of 5 s, planned: 2 breaks, its first retry got in "
        "1 times, ran into the next hand-over 1 times; longest silence 10.0 s",
    ]
