"""Holds what remote readers were given against each other.

| name | what is wrong |
|---|---|
| held-by-two | two readers of one bridge have the same message at one moment |
| out-of-turn | given after a later one of its stream, and nobody had it when that was given |

A reader surely has a message from the moment it is given until its End goes out, if that End is
answered: then its connection was there all the time (RR-20, RR-28). A message that comes back after
a NACK, or after a reader was lost, may come after later ones; so may one that a Start held of which
nobody heard.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tests.chaos.checker import Fault, Kind
from tests.chaos.history import History, Read, Take

GRACE_S: Final = 5.0  # until a bridge has seen that a reader is gone; it only excuses
Span = tuple[float, float]


def check_takes(history: History, topic: str) -> list[Fault]:
    return [*_held_by_two(history), *_out_of_turn(history, topic)]


def _held_by_two(history: History) -> Iterator[Fault]:
    holds: dict[tuple[int, str], list[Span]] = defaultdict(list)
    for take in history.takes:
        if take.is_ended and take.given_at is not None and take.left_at is not None:
            holds[take.server, take.identity].append((take.given_at, take.left_at))
    for (_, identity), spans in holds.items():
        for (_, left), (given, _) in pairwise(sorted(spans)):
            if given < left:
                yield Fault(Kind.HELD_BY_TWO, identity, f"for {left - given:.3f} s")
                break


def _out_of_turn(history: History, topic: str) -> Iterator[Fault]:
    """Of each message its first time counts: the later ones come after it was given back."""
    numbers = {op.identity: (op.stream, op.number) for op in history.ops if op.topic == topic}
    streams: dict[str, list[tuple[int, Take]]] = defaultdict(list)
    seen: set[str] = set()
    for take in history.takes:
        if take.given_at is not None and take.identity in numbers and take.identity not in seen:
            seen.add(take.identity)
            stream, number = numbers[take.identity]
            streams[stream].append((number, take))
    unknown = _unknown_holds(history)
    for row in streams.values():
        for earlier, later in _overtaken(row):
            if not any(_overlap(span, later) for span in unknown):
                yield Fault(Kind.OUT_OF_TURN, earlier.identity, f"after {later.identity}")


def _overtaken(row: list[tuple[int, Take]]) -> Iterator[tuple[Take, Take]]:
    """Each message that was asked for when a later one of its stream had been given."""
    first: Take | None = None  # of all later ones the one that was given first
    for _, take in sorted(row, key=lambda pair: pair[0], reverse=True):
        assert take.given_at is not None
        if first is None or first.given_at is None:
            first = take
            continue
        if take.asked_at > first.given_at:
            yield take, first
        if take.given_at < first.given_at:
            first = take


def _unknown_holds(history: History) -> list[Span]:
    """When somebody may have had a message that nobody can name."""
    asked: list[Take | Read] = []
    asked += [take for take in history.takes if take.given_at is None and not take.is_empty]
    asked += [read for read in history.reads if read.is_cut_off and not read.identity]
    return [(one.asked_at, (one.over_at or one.asked_at) + GRACE_S) for one in asked]


def _overlap(span: Span, take: Take) -> bool:
    assert take.given_at is not None
    return span[0] <= take.given_at and take.asked_at <= span[1]
