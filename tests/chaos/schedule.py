"""What is done to the bridge and its world: a list of steps that a seed makes, and nothing else.

Steps come in blocks. A block has every kind of fault in it, in an order of its own, so that a run
of any length meets all of them; kills of the bridge are the most frequent. The steps do not depend
on what happens in between: the same seed gives the same list on any machine, `--plan` prints it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tests.chaos.launcher import POINTS

BINARY, HTTP = "binary", "srmp"  # the two protocols of senders
RETAINED = "retained"  # binary ones, to a queue with readers
HOSTILE = "hostile"  # strangers, poison, topics that go away
RANDOM_KILLS: Final = 4  # in a block, beside one for each named point
# Kafka refuses records that are more than an hour ahead (message.timestamp.after.max.ms).
FARTHEST_AHEAD_S: Final = 3_300.0
FARTHEST_BACK_S: Final = 3 * 86_400.0
_PROTOCOLS: Final = {"after-ack": BINARY, "after-answer": HTTP, "after-receipt": HTTP}

_PLAIN_KILLS: Final = ("kill bridge", "kill broker")
_FLAGS: Final = {"new topics": "right after a kill of the broker"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`gap` seconds of quiet, then the fault."""

    action: str
    gap: float
    point: str = ""  # a named crash point
    count: int = 0  # the how manieth time it is reached
    seconds: float = 0.0  # how long it lasts, or how far the clock jumps
    share: float = 0.0  # of the sessions
    flag: bool = False  # see _FLAGS; bridge: on an empty data folder
    only: str = ""  # the protocol without which it makes no sense

    def __str__(self) -> str:
        parts = [self.action]
        parts += [f"at {self.point} #{self.count}"] if self.point else []
        parts += [f"{self.count} of them"] if self.count and not self.point else []
        parts += [f"{self.seconds:+.2f} s"] if self.seconds else []
        parts += [f"{self.share:.0%} of the sessions"] if self.share else []
        parts += [_FLAGS.get(self.action, "on empty data")] if self.flag else []
        return ", ".join(parts)


def steps(seed: int, only: str = "") -> Iterator[Step]:
    """Without end; `only` leaves out what touches the senders of the other protocol alone."""
    rng = random.Random(seed)
    while True:
        block = _block(rng)
        rng.shuffle(block)
        yield from (step for step in block if not only or _is_wanted(step, only))


def _is_wanted(step: Step, only: str) -> bool:
    if only == HOSTILE:  # and a kill now and then: what strangers have left is loaded again
        return step.only == HOSTILE or (step.action in _PLAIN_KILLS and not step.point)
    return step.only in ("", BINARY if only == RETAINED else only)


def _block(rng: random.Random) -> list[Step]:
    kills = [
        Step(
            action="kill bridge",
            gap=rng.uniform(0.0, 0.8),
            point=point,
            count=rng.randrange(1, 120) if point == "after-produce" else rng.randrange(1, 8),
            flag=rng.random() < 0.5,
            only=_PROTOCOLS.get(point, ""),
        )
        for point in POINTS
    ]
    kills += [
        Step(action="kill bridge", gap=rng.uniform(0.0, 2.0), flag=rng.random() < 0.5)
        for _ in range(RANDOM_KILLS)
    ]
    return (
        kills
        + _broker_steps(rng)
        + _network_steps(rng)
        + _http_steps(rng)
        + _other_steps(rng)
        + _topic_steps(rng)
        + _hostile_steps(rng)
    )


def _broker_steps(rng: random.Random) -> list[Step]:
    gap = rng.uniform(0.0, 1.0)
    return [
        Step(action="kill broker", gap=gap, seconds=rng.uniform(0.1, 2.0)),
        Step(action="kill both", gap=gap, flag=rng.random() < 0.5),
        Step(action="kill broker, then bridge", gap=gap, seconds=rng.uniform(0.1, 2.0)),
        Step(action="freeze broker", gap=gap, seconds=_freeze(rng)),
        Step(action="kill bridge while the broker is frozen", gap=gap, seconds=rng.uniform(0.2, 2)),
    ]


def _freeze(rng: random.Random) -> float:
    """Now and then longer than the bridge waits for a commit: what became of it nobody knows."""
    return rng.uniform(21, 24) if rng.random() < 0.08 else rng.uniform(0.5, 4.0)


def _network_steps(rng: random.Random) -> list[Step]:
    return [
        Step(action="cut mid-packet", gap=rng.uniform(0, 1), share=rng.uniform(0.2, 1.0)),
        Step(
            action="swallow acks, then cut",
            gap=rng.uniform(0, 1),
            share=rng.uniform(0.2, 0.8),
            seconds=rng.uniform(0.3, 2.0),
        ),
        Step(action="delayed and split segments", gap=0.2, seconds=rng.uniform(0.05, 0.8)),
        Step(action="senders restart", gap=rng.uniform(0, 1), share=rng.uniform(0.2, 0.6)),
    ]


def _http_steps(rng: random.Random) -> list[Step]:
    """What only senders over HTTP can suffer from."""
    steps = [
        Step(action="receipts lost", gap=0, seconds=rng.uniform(1, 6), share=rng.uniform(0.3, 1)),
        Step(action="receipts to a dead host", gap=0, seconds=rng.uniform(1, 6), share=0.5),
        Step(action="answers lost", gap=rng.uniform(0, 1), share=rng.uniform(0.3, 1)),
        Step(action="requests twice", gap=rng.uniform(0, 1), count=3, share=rng.uniform(0.3, 1)),
        Step(action="requests out of order", gap=0, count=2, share=rng.uniform(0.3, 1)),
    ]
    return [replace(step, only=HTTP) for step in steps]


def _topic_steps(rng: random.Random) -> list[Step]:
    """Now and then on a broker that has just been started."""
    return [
        Step(
            action="new topics",
            gap=rng.uniform(0, 1),
            count=rng.randrange(2, 9),
            share=rng.uniform(0.3, 1.0),
            flag=rng.random() < 0.5,
        )
    ]


def _hostile_steps(rng: random.Random) -> list[Step]:
    """What strangers do, and Kafka's administrators."""
    gap = rng.uniform(0, 0.5)
    steps = [
        Step(action="spoofed sources", gap=gap, share=rng.uniform(0.1, 0.4)),
        Step(action="spoofed sources", gap=gap, share=rng.uniform(0.1, 0.4)),
        Step(action="invented names", gap=gap, count=rng.randrange(5, 30)),
        Step(action="poison", gap=gap),
        Step(action="topic deleted", gap=gap, seconds=rng.uniform(0.2, 3.0)),
        Step(action="right taken away", gap=gap, seconds=rng.uniform(0.2, 3.0)),
    ]
    return [replace(step, only=HOSTILE) for step in steps]


def _other_steps(rng: random.Random) -> list[Step]:
    return [
        Step(action="second bridge", gap=rng.uniform(0, 1), share=0.5),
        Step(action="disk full", gap=0.2, seconds=rng.uniform(0.5, 2.0), flag=rng.random() < 0.5),
        Step(action="clock jump", gap=0.2, seconds=rng.uniform(1, FARTHEST_AHEAD_S)),
        Step(action="clock jump", gap=0.2, seconds=-rng.uniform(1, FARTHEST_BACK_S)),
    ]
