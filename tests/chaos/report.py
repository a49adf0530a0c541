"""The verdict: what was sent, what was done to it, what is wrong, and the seed that repeats it."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median

from tests.chaos.checker import Fault, counts
from tests.chaos.history import Break, History, Mode
from tests.chaos.patient import RETRY_S
from tests.chaos.senders import RECONNECT_S

SHOWN = 5  # of a kind
NOTICED_S = 1.0  # at the latest the harness knows that a leader died at a point


@dataclass(frozen=True, slots=True)
class Verdict:
    seed: int
    faults: Sequence[Fault]
    surprises: Sequence[str]

    @property
    def passed(self) -> bool:
        return not self.faults and not self.surprises

    @property
    def names(self) -> set[str]:
        return {str(fault.kind) for fault in self.faults}

    def lines(self) -> Iterable[str]:
        shown: Counter[str] = Counter()
        for fault in self.faults:
            shown[fault.kind] += 1
            if shown[fault.kind] <= SHOWN:
                yield f"  {fault}"
        for surprise in self.surprises[:SHOWN]:
            yield f"  surprise: {surprise}"
        if self.passed:
            yield f"verdict: PASSED, no fault of any kind; seed {self.seed}"
        else:
            told = [f"{count} {name}" for name, count in counts(self.faults).items()]
            told += [f"{len(self.surprises)} surprises"] if self.surprises else []
            yield f"verdict: FAILED, {', '.join(told)}; repeat with SEED={self.seed}"


def summary(history: History, kills: Mapping[str, int], landed: set[str]) -> Iterable[str]:
    for mode, posted in product(Mode, (False, True)):
        ops = [op for op in history.ops if op.mode is mode and op.posted is posted]
        if not ops:
            continue
        there = sum(op.identity in landed for op in ops)
        line = f"{mode}{' over HTTP' if posted else ''}: {len(ops)} messages, {there} landed"
        if mode is Mode.EXPRESS:
            dropped = sum(op.dropped for op in ops)
            lost = sum(op.done_at is not None and op.identity not in landed for op in ops)
            line += f", {dropped} dropped at a disconnect, {lost} acked and lost"
        yield line
    yield f"resends: {history.resends}"
    for side in ("bridge", "broker"):
        mine = {name: count for name, count in kills.items() if name.startswith(side)}
        parts = [f"{name.partition(': ')[2]} {count}" for name, count in sorted(mine.items())]
        detail = f" ({', '.join(parts)})" if side == "bridge" and parts else ""
        yield f"kills of the {side}: {sum(mine.values())}{detail}"
    yield "; ".join(f"{name}: {count}" for name, count in sorted(history.events.items()))
    yield from _handovers(history)


def _handovers(history: History) -> Iterable[str]:
    """Seconds from the signal until the next one listens, and until the first ack of its own."""
    told = sorted(at for op in history.ops for at in (op.stored_at, op.ordered_at) if at)
    for kind in sorted({handover.kind for handover in history.handovers}):
        mine = [handover for handover in history.handovers if handover.kind == kind]
        listening = [one.listening_at - one.at for one in mine]
        acked = [
            told[first] - one.at
            for one in mine
            if (first := bisect_left(told, one.leading_at)) < len(told)
        ]
        yield (
            f"hand-overs, {kind}: {len(mine)}; seconds until the next one listens "
            f"{_range(listening)}, until its first ack {_range(acked)}"
        )

    yield from _breaks(history)
    if history.handovers:
        yield "the other senders come again {} to {} s after theirs".format(*RECONNECT_S)


def _breaks(history: History) -> Iterable[str]:
    """By the last hand-over before; a retry may run into the next one, which is not that one's."""
    handovers = sorted(history.handovers, key=lambda one: one.at)
    moments = [one.at for one in handovers]
    found: dict[str, list[Break]] = {}
    for each in history.breaks:
        if place := bisect_right(moments, each.at + NOTICED_S):
            found.setdefault(handovers[place - 1].kind, []).append(each)
    for kind, mine in sorted(found.items()):
        first = sum(one.tries == 1 for one in mine)
        next_one = sum(
            one.tries > 1 and any(NOTICED_S < at - one.at < RETRY_S for at in moments)
            for one in mine
        )
        line = (
            f"a sender with MSMQ's retry timer of {RETRY_S:g} s, {kind}: {len(mine)} breaks, "
            f"its first retry got in {first} times"
        )
        line += f", ran into the next hand-over {next_one} times" if next_one else ""
        yield f"{line}; longest silence {max(one.in_at - one.at for one in mine):.1f} s"


def _range(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"
