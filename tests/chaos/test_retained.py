"""Readers of a retained queue while the bridge is killed at every point, and worse."""

import asyncio
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.read_bugs import READ_BUGS
from tests.chaos.run import Settings, run
from tests.chaos.schedule import Step
from tests.chaos.senders import RETAINED_KINDS
from tests.support.marks import some_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
LOST_VIEW = Step(action="kill bridge", gap=1.0, flag=True)
# What waits long enough to be overtaken; after a kill nobody knows who had what.
BACKLOG = Step(action="senders restart", gap=4.0)
NEEDED = {"release-held": [BACKLOG], "latest-first": [BACKLOG]}
FASTER = {"latest-first": 120.0}  # than readers are
STEPS = [
    Step(action="kill bridge", gap=0.5, point="before-commit", count=2),
    Step(action="kill bridge", gap=0.3, point="commit-unread", count=3, flag=True),
    Step(action="kill bridge", gap=0.3, point="after-commit", count=2),
    Step(action="second bridge", gap=0.5),
    Step(action="freeze broker", gap=0.2, seconds=1.0),
    Step(action="kill bridge", gap=0.3, point="after-produce", count=15),
    LOST_VIEW,
]


def settings(bug: str = "") -> Settings:
    rate = FASTER.get(bug, 40.0)
    return Settings(
        seed=1801, seconds=40, senders=3, rate=rate, kinds=RETAINED_KINDS, patience_s=15, bug=bug
    )


def test_nothing_is_wrong_with_what_readers_are_told(broker: EmbeddedKafka, tmp_path: Path) -> None:
    verdict = asyncio.run(run(broker, tmp_path, STEPS, settings()))
    assert verdict.passed, "\n".join(verdict.lines())


@pytest.mark.parametrize("bug", some_of(READ_BUGS, {"end-before-commit", "forget-removals"}))
def test_a_planted_bug_is_named(broker: EmbeddedKafka, tmp_path: Path, bug: str) -> None:
    """One bug may break several promises; the one that it was made for is among them."""
    steps = NEEDED.get(bug, [LOST_VIEW])
    verdict = asyncio.run(run(broker, tmp_path, steps, settings(bug)))
    assert READ_BUGS[bug][0] in verdict.names, "\n".join(verdict.lines())
