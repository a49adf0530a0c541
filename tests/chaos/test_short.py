"""`make soak` in short: a fault of each kind that is quick, under load, and nothing is wrong."""

import asyncio
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.run import Settings, run
from tests.chaos.schedule import Step

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
# What leaves receipts undelivered comes before the first kill: a bridge waits for twenty seconds
# before it tries a host again, one that has just been started does not.
STEPS = [
    Step(action="cut mid-packet", gap=0.3, share=0.5),
    Step(action="receipts lost", gap=0, seconds=1.5, share=1),
    Step(action="receipts to a dead host", gap=0, seconds=0.7, share=0.5),
    Step(action="requests out of order", gap=0, count=1, share=1),
    Step(action="kill bridge", gap=0.2, point="commit-unread", count=2, flag=True),
    Step(action="requests twice", gap=0, count=3, share=1),
    Step(action="delayed and split segments", gap=0, seconds=0.2),
    Step(action="kill bridge", gap=0.3, point="after-commit", count=2),
    Step(action="swallow acks, then cut", gap=0.2, share=0.5, seconds=0.7),
    Step(action="answers lost", gap=0, share=0.7),
    Step(action="freeze broker", gap=0, seconds=1.5),
    Step(action="senders restart", gap=0.2, share=0.5),
    Step(action="kill broker, then bridge", gap=0.2, seconds=0.3),
    Step(action="clock jump", gap=0, seconds=3000),
    Step(action="kill bridge", gap=0.3, point="before-commit", count=1),
]


def test_nothing_is_wrong_after_some_of_everything(broker: EmbeddedKafka, tmp_path: Path) -> None:
    settings = Settings(seed=1801, seconds=22, senders=8, rate=120)
    verdict = asyncio.run(run(broker, tmp_path, STEPS, settings))
    assert verdict.passed, "\n".join(verdict.lines())
