"""Holds what readers of a retained queue were told against what they and Kafka saw.

| name | what is wrong |
|---|---|
| removed-reappears | told to be removed, and seen in a look or a Start that was asked for later |
| read-twice | told to be removed, and then told again |
| removed-untold-lost | in its topic, not in the queue, never told, and no removal is committed |
| out-of-place | another lookup id than before, or a stream in another order than it was sent |
| journal-missing | told to be removed, and not in the journal |
| journal-doubled | in the journal more than once |
| held-by-two, out-of-turn | of remote readers: `take_checker.py` |

A message that is gone and was never told is lawful if a reader was cut off meanwhile: its removal
is committed, so the journal has it, and there are no more of them than reads that were cut off. A
remote reader knows which message its End was for, so it answers for that one alone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from tests.chaos.checker import Fault, Kind
from tests.chaos.history import History
from tests.chaos.take_checker import check_takes


def check_reads(
    history: History, landed: Collection[str], journal: Sequence[str], stream_of: str
) -> list[Fault]:
    """`landed` and `journal` are identities; `stream_of` is the topic of the retained queue."""
    faults = [*_reappears(history), *_twice(history), *_lost(history, set(landed), set(journal))]
    faults += [*_out_of_place(history, stream_of), *_journal(history, journal)]
    return faults + check_takes(history, stream_of)


def _told(history: History) -> dict[str, float]:
    """When each was told first."""
    found: dict[str, float] = {}
    for read in history.reads:
        if read.told_at is not None:
            found[read.identity] = min(read.told_at, found.get(read.identity, read.told_at))
    return found


def _reappears(history: History) -> Iterator[Fault]:
    told, named = _told(history), set[str]()
    for at, identity, place in _sightings(history):
        if told.get(identity, at) < at and identity not in named:
            named.add(identity)
            yield Fault(Kind.REAPPEARS, identity, f"as {place}")


def _sightings(history: History) -> Iterator[tuple[float, str, int]]:
    """Asked for after which moment, who, and where."""
    for look in history.looks:
        yield from ((look.at, identity, place) for identity, place in look.places)
    for take in history.takes:
        if take.given_at is not None:
            yield take.asked_at, take.identity, take.place


def _twice(history: History) -> Iterator[Fault]:
    times = Counter(read.identity for read in history.reads if read.told_at is not None)
    for identity, count in times.items():
        if count > 1:
            yield Fault(Kind.READ_TWICE, identity, f"{count} times")


def _lost(history: History, landed: set[str], journal: set[str]) -> Iterator[Fault]:
    """Only a last look tells: what came after an earlier one is not in it, and not lost. A run
    that ends without one is stuck, and fails for that."""
    if not history.looks or not history.looks[-1].is_last:
        return
    there = {identity for identity, _ in history.looks[-1].places}
    untold = landed - there - set(_told(history))
    for identity in sorted(untold - journal):
        yield Fault(Kind.UNTOLD_LOST, identity)
    in_doubt = [read.identity for read in history.reads if read.is_cut_off]
    cut_off = in_doubt.count("")
    taken = sorted((untold & journal) - set(in_doubt))
    if len(taken) > cut_off:
        yield Fault(Kind.UNTOLD_LOST, taken[0], f"{len(taken)} gone, {cut_off} reads were cut off")


def _out_of_place(history: History, topic: str) -> Iterator[Fault]:
    """Who a message is and where it stands never changes: nobody moves one here."""
    places: dict[str, set[int]] = defaultdict(set)
    for read in history.reads:
        if read.told_at is not None:
            places[read.identity].add(read.place)
    for _, identity, place in _sightings(history):
        places[identity].add(place)
    for look in history.looks:
        for (_, first), (identity, second) in pairwise(look.places):
            if second <= first:
                yield Fault(Kind.OUT_OF_PLACE, identity, f"{second} after {first}")
    for identity, found in places.items():
        if len(found) > 1:
            yield Fault(Kind.OUT_OF_PLACE, identity, f"it was at {sorted(found)}")
    streams: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for op in history.ops:
        if op.topic == topic and len(places.get(op.identity, ())) == 1:
            (place,) = places[op.identity]
            streams[op.stream].append((op.number, place, op.identity))
    for row in streams.values():
        for (_, first, _), (_, second, identity) in pairwise(sorted(row)):
            if second <= first:
                yield Fault(Kind.OUT_OF_PLACE, identity, f"{second} after {first} of its stream")


def _journal(history: History, journal: Sequence[str]) -> Iterator[Fault]:
    copies = Counter(journal)
    for identity in _told(history):
        if not copies[identity]:
            yield Fault(Kind.JOURNAL_MISSING, identity)
    for identity, count in copies.items():
        if count > 1:
            yield Fault(Kind.JOURNAL_DOUBLED, identity, f"{count} times")
