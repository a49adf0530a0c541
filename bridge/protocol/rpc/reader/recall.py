"""Messages that were confirmed when their connection was lost: removed, or back in the queue?

A message that is there is received again and ended with ACK. One that is locked (a peek says so)
may be ours, held for the lost connection until the server notices: that one is waited for. RR-48
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.opening import (
    LOOKUP_PEEK_CURRENT,
    LOOKUP_RECEIVE_CURRENT,
    OpenedQueue,
)
from bridge.protocol.rpc.reader.packets import LOW, Key, Read, key_of, read_of
from bridge.protocol.rpc.reader.results import TRANSACTION_USAGE, status_of
from bridge.protocol.rpc.reader.steps import Answer, Flow, ask, pause
from bridge.wire.rpc.remote_read import ACK, NACK, EndReceive, Started

RECALL_MS: Final = 5_000  # a server may take this long to notice that we are gone
PAUSE_MS: Final = 250
TRIES: Final = RECALL_MS // PAUSE_MS


def recall(queue: OpenedQueue, held: Sequence[Read], manager: Guid) -> Flow[list[Key]]:
    """Those that are removed now. Of the others the next Starts will tell."""
    removed: list[Key] = []
    for _ in range(TRIES):
        if not held:
            break
        there, locked = yield from _look(queue, held)
        removed += yield from _remove(queue, there, manager)
        held = locked
        if held:
            yield from pause(PAUSE_MS)
    return removed


def _look(queue: OpenedQueue, held: Sequence[Read]) -> Flow[tuple[dict[int, Key], list[Read]]]:
    """Lookup ids of those that are there, as the server spells them; and those that are locked."""
    numbers = [(read, number) for read in held for number in _spellings(read)]
    probes = [
        queue.start(LOOKUP_PEEK_CURRENT, lookup_id=number, most_body=0) for _, number in numbers
    ]
    answers = yield from ask(*probes)
    there: dict[Key, int] = {}
    locked: dict[Key, Read] = {}
    for (read, number), answer in zip(numbers, answers, strict=True):
        if status_of(answer) == 0:
            there.setdefault(key_of(read), number)
        elif status_of(answer) == TRANSACTION_USAGE:
            locked[key_of(read)] = read
    return {number: key for key, number in there.items()}, list(locked.values())


def _spellings(read: Read) -> list[int]:
    return [number for number in dict.fromkeys((read.lookup_id, read.lookup_id & LOW)) if number]


def _remove(queue: OpenedQueue, there: dict[int, Key], manager: Guid) -> Flow[list[Key]]:
    starts = [queue.start(LOOKUP_RECEIVE_CURRENT, lookup_id=number) for number in there]
    answers = yield from ask(*starts)
    ends: list[EndReceive] = []
    keys: list[Key] = []
    for start, answer, key in zip(starts, answers, there.values(), strict=True):
        if status_of(answer) == 0:
            is_it = _key(answer, start.request_id, manager) == key
            ends.append(EndReceive(queue.handle, ACK if is_it else NACK, start.request_id))
            keys.append(key)
    ended = yield from ask(*ends)
    triples = zip(ends, ended, keys, strict=True)
    return [key for end, told, key in triples if end.ack == ACK and not status_of(told)]


def _key(answer: Answer, request_id: int, manager: Guid) -> Key | None:
    if isinstance(answer, Fault) or not isinstance(answer, Started):
        return None
    try:
        return key_of(read_of(answer, request_id, manager))
    except WireError:
        return None
