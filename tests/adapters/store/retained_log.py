"""A Kafka with arrivals and fates, what a view must make of it, and a child that replays it.

Run as a program it replays the log of a seed in small steps and says after each one that it is
committed, so that somebody can kill it between two steps or in the middle of one.
"""

import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from hypothesis import strategies as st

from bridge.adapters.store.retained_view import Partition, RetainedView
from bridge.core.retained.fates import Fate, Fated
from bridge.core.retained.rows import Row, aborted, moved
from tests.core.retained.world import ORDERS, PLAIN, RETRY, row

DATA: Partition = ("data", 0)
STATE: Partition = ("state", 0)
Log = dict[Partition, list[Row | Fated]]

_STEP = 23


def logs() -> st.SearchStrategy[Log]:
    return st.builds(random_log, st.integers(0, 10**6), st.integers(0, 30))


def random_log(seed: int, length: int) -> Log:
    """Messages arrive, are moved, given back and removed."""
    dice = random.Random(seed)
    log: Log = {DATA: [], STATE: []}
    here: list[Row] = []
    ids = iter(range(10_000, 10**7))
    for _ in range(length):
        if not here or dice.random() < 0.5:
            made = _arrival(dice, len(log[DATA]))
            log[DATA].append(made)
            here.append(made)
            continue
        chosen = here.pop(dice.randrange(len(here)))
        if dice.random() < 0.5:
            log[STATE].append(Fated(chosen.at, Fate(0x4000)))
            continue
        new = aborted(chosen)
        if dice.random() < 0.5:
            queue = dice.choice((ORDERS, RETRY))
            new = moved(chosen, queue=queue, sequential_id=next(ids), unix=dice.randrange(99))
        log[STATE].append(Fated(new.at, Fate.of(new)))
        here.append(new)
    return log


def _arrival(dice: random.Random, offset: int) -> Row:
    number = offset + 1
    queue = dice.choice((PLAIN, ORDERS))
    made = row(number, queue, dice.choice((0, 3, 7)), size=dice.randrange(1, 500))
    return row(
        number,
        queue,
        lookup_id=made.lookup_id,
        size=made.size,
        at=type(made.at)("data", 0, offset),
        expires=dice.choice((None, 50)),
    )


def expected(log: Log, reached: Mapping[Partition, int] | None = None) -> dict[str, list[Row]]:
    """By queue and in order. Of a view that stands in between: its fates so far, applied to its
    records so far."""
    ends = {topic: len(events) for topic, events in log.items()} if reached is None else reached
    rows: dict[object, Row] = {}
    for arrived in log[DATA][: ends.get(DATA, 0)]:
        assert isinstance(arrived, Row)
        rows[arrived.at] = arrived
    for fated in log[STATE][: ends.get(STATE, 0)]:
        assert isinstance(fated, Fated)
        known = rows.pop(fated.at, None)
        new = None if known is None else fated.fate.applied_to(known)
        if new is not None:
            rows[fated.at] = new
    queues = sorted({found.queue for found in rows.values()})
    return {
        queue: sorted(
            (found for found in rows.values() if found.queue == queue), key=lambda r: r.lookup_id
        )
        for queue in queues
    }


def tail(log: Log, start: Mapping[Partition, int]) -> Iterator[Row | Fated]:
    for topic, events in log.items():
        yield from events[start.get(topic, 0) :]


def main(file: Path, identity: str, seed: int) -> None:
    log = random_log(seed, 4000)
    view = RetainedView(file, identity)
    while True:
        start = view.positions()
        steps = {topic: events[start.get(topic, 0) :][:_STEP] for topic, events in log.items()}
        if not any(steps.values()):
            break
        view.replay(event for events in steps.values() for event in events)
        view.commit({topic: start.get(topic, 0) + len(events) for topic, events in steps.items()})
        print(view.total().count, flush=True)
    view.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
