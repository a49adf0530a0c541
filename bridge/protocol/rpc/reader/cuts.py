"""Where a long queue can be cut into parts that several readers take side by side. RR-55

Remote read neither counts messages nor finds the n-th one. But lookup ids grow with time, so looks
at some of the numbers between the first and the last one tell how dense they are, hence about how
many messages there are, and give messages to cut behind. Headers only; nothing is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bridge.model.errors import WireError
from bridge.protocol.rpc.reader.names import Target
from bridge.protocol.rpc.reader.opening import (
    LOOKUP_PEEK_CURRENT,
    LOOKUP_PEEK_PREVIOUS,
    PEEK_ACCESS,
    PEEK_CURRENT,
    Client,
    OpenedQueue,
    close_queue,
    open_queue,
)
from bridge.protocol.rpc.reader.packets import LOW, read_of
from bridge.protocol.rpc.reader.results import status_of
from bridge.protocol.rpc.reader.spelling import Spelling
from bridge.protocol.rpc.reader.steps import Answer, Flow, ask
from bridge.wire.rpc.remote_read import Started

PER_PART: Final = 5000  # messages that are worth a connection of their own
_END: Final = 0xFFFFFFFFFFFFFFFF  # with PREVIOUS: the last message (remote-read.md, D-17)
_LOOKS: Final = 4  # places for each part
_RUN: Final = 8  # numbers at each place
_SPARSE: Final = 4  # numbers for one message: a part of such a queue is slower than all of it


def cuts(
    target: Target,
    parts: int,
    spelling: Spelling,
    client: Client,
    per_part: int = PER_PART,
) -> Flow[list[int]]:
    """Lookup ids of messages, ascending, each the last of its part. None: the queue is short, or
    the host does not tell where it ends."""
    queue = yield from open_queue(target, PEEK_ACCESS, client)
    found = yield from _cuts(queue, target, parts, spelling, per_part)
    yield from close_queue(queue)
    return found


def _cuts(
    queue: OpenedQueue, target: Target, parts: int, spelling: Spelling, per_part: int
) -> Flow[list[int]]:
    head = queue.start(PEEK_CURRENT, most_body=0)
    tail = queue.start(LOOKUP_PEEK_PREVIOUS, lookup_id=_END, most_body=0)
    ends = _places((yield from ask(head, tail)), target)
    if len(ends) < 2:
        return []
    low, high = min(place & LOW for place in ends), max(place & LOW for place in ends)
    span = high - low + 1
    if parts < 2 or span < 2 * per_part:
        return []
    numbers = [number | ends[0] & ~LOW for number in _looks(low, high, parts)]
    requests = [
        queue.start(LOOKUP_PEEK_CURRENT, lookup_id=spelling.of(number), most_body=0)
        for number in numbers
    ]
    seen = sorted(set(_places((yield from ask(*requests)), target)))
    # A part is read number by number, so those of one priority count (`Scan`).
    if len(set(seen).intersection(numbers)) * _SPARSE < len(numbers):
        return []
    messages = span * len(seen) // len(numbers)
    count = min(parts, messages // per_part, len(seen))
    middle = {seen[step * len(seen) // count] for step in range(1, count)}
    return sorted(place for place in middle if place < max(ends))


def _looks(low: int, high: int, parts: int) -> list[int]:
    """Some numbers, evenly spread."""
    places = _LOOKS * parts
    starts = [low + (high - low - _RUN) * step // places for step in range(1, places + 1)]
    return sorted({start + step for start in starts for step in range(_RUN)})


def _places(answers: Sequence[Answer], target: Target) -> list[int]:
    """Of the messages that are there and can be read."""
    found: list[int] = []
    for answer in answers:
        if isinstance(answer, Started) and not status_of(answer):
            try:
                found.append(read_of(answer, 0, target.manager).lookup_id)
            except WireError:
                continue
    return found
