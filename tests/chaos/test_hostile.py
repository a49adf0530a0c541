"""Strangers and a hostile Kafka, in short: `make soak ONLY=hostile` has more of it."""

import asyncio
from pathlib import Path

import pytest

from bridge.adapters.kafka.embedded import EmbeddedKafka
from tests.chaos.checker import Kind
from tests.chaos.run import Settings, run
from tests.chaos.schedule import Step

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]
STEPS = [
    Step(action="spoofed sources", gap=0.2, share=0.5),
    Step(action="poison", gap=0),
    Step(action="invented names", gap=0, count=3),
    Step(action="kill bridge", gap=0.1, flag=True),
    Step(action="topic deleted", gap=0.1, seconds=0.3),
    Step(action="right taken away", gap=0.1, seconds=0.3),
    Step(action="spoofed sources", gap=0, share=0.3),
]


def settings(**changes: object) -> Settings:
    usual: dict[str, object] = {"seed": 1801, "seconds": 300, "senders": 6, "rate": 60}
    usual |= {"kinds": ("t", "T", "rt", "R"), "patience_s": 30, "is_hostile": True}
    return Settings(**(usual | changes))  # type: ignore[arg-type]


def test_strangers_touch_no_honest_sender(broker: EmbeddedKafka, tmp_path: Path) -> None:
    verdict = asyncio.run(run(broker, tmp_path, STEPS, settings()))
    assert verdict.passed, "\n".join(verdict.lines())


def test_a_stream_that_a_stranger_moves_is_found(broker: EmbeddedKafka, tmp_path: Path) -> None:
    """A bug is planted: the place of a stream moves although its message is refused. What comes
    behind it is taken for a duplicate; or, in another sequence, is never acknowledged in order."""
    steps = [Step(action="spoofed sources", gap=0.2, share=0.5)]
    wanted = settings(bug="move-before-access", kinds=("t",), senders=4, patience_s=10)
    verdict = asyncio.run(run(broker, tmp_path, steps, wanted))
    assert verdict.names, "\n".join(verdict.lines())
    assert verdict.names <= {Kind.LOST_ACKED, Kind.NEVER_ACKED}, "\n".join(verdict.lines())
