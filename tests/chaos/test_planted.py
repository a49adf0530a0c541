"""Bugs that are planted in a running bridge: the verdict has the right name."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.bugs import BUGS
from tests.chaos.run import Settings, run
from tests.chaos.schedule import Step
from tests.support.marks import some_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
# What makes the bug show, where load alone does not.
FREEZE = [Step(action="freeze broker", gap=0.2, seconds=1.5)]
LONG_FREEZE = [Step(action="freeze broker", gap=0.2, seconds=3)]  # a receipt takes half a second
KILL_BEFORE_ACKS = [Step(action="kill bridge", gap=0.2, point="after-commit", count=2)]
NEEDED = {
    "ack-before-commit": FREEZE,
    "forget-after-restart": KILL_BEFORE_ACKS,
    "swap": FREEZE,  # what piles up meanwhile becomes a transaction with many of each sender
    "receipt-before-commit": LONG_FREEZE,
    "stream-row-apart": 2 * KILL_BEFORE_ACKS,
}
# Without express messages, whose last acks take ten seconds.
BINARY = ("rt", "t", "r")
BOTH = ("rt", "T", "t", "R")
STREAMS = ("T",)
KINDS = {
    "swap": BINARY,  # over HTTP a transaction has few messages of one sender
    "receipt-before-commit": STREAMS,
    "stream-row-apart": STREAMS,
    "no-receipts": STREAMS,
}


def settings(bug: str, kinds: Sequence[str]) -> Settings:
    usual = Settings(seed=1801, seconds=20, senders=4, rate=80, kinds=kinds, patience_s=5, bug=bug)
    if kinds == STREAMS:
        # The receipt of a stream that never rests may take ten seconds (SR-34): who waits less
        # would call a bridge silent that has no bug.
        usual = replace(usual, patience_s=15)
    if bug == "receipt-before-commit":
        # A sender that waits for an answer sends nothing, and only what is sent during the freeze
        # proves anything; so they are at rest most of the time.
        return replace(usual, senders=8, rate=12)
    return usual


# Theirs are tests of their own; one needs a second bridge, one strangers: test_handover.py,
# test_hostile.py.
APART = {"repeat-express", "ack-when-fenced", "move-before-access"}


SHORT = {"ack-before-commit", "forget-after-restart", "no-receipts", "swap"}  # one of each sort


@pytest.mark.parametrize("bug", some_of(set(BUGS) - APART, SHORT))
def test_a_planted_bug_is_named(broker: EmbeddedKafka, tmp_path: Path, bug: str) -> None:
    wanted = settings(bug, KINDS.get(bug, BOTH))
    verdict = asyncio.run(run(broker, tmp_path, NEEDED.get(bug, []), wanted))
    assert verdict.names == {BUGS[bug][0]}, "\n".join(verdict.lines())


def test_an_express_message_twice(broker: EmbeddedKafka, tmp_path: Path) -> None:
    verdict = asyncio.run(run(broker, tmp_path, [], settings("repeat-express", ("er",))))
    assert verdict.names == {"express-twice"}, "\n".join(verdict.lines())
