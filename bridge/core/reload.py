"""What new mappings would do to streams that are under way.

A stream keeps its order only while its messages go to one partition of one topic. A sender does
not know that we changed our mind, so whoever changes it has to say that he means it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from bridge.core.catalogue import Catalogue, Queue
from bridge.core.mapping_rules import Mappings
from bridge.core.streams import StreamKey
from bridge.model.errors import BridgeError


class OrderBreak(msgspec.Struct, frozen=True, order=True):
    """One queue whose live streams would suffer."""

    queue: str
    reason: str


class OrderWouldBreak(BridgeError):
    """New mappings were not taken: they need the word of whoever asks."""

    def __init__(self, breaks: list[OrderBreak]) -> None:
        names = ", ".join(sorted({b.queue for b in breaks}))
        super().__init__(f"the order of live streams would break: {names}")
        self.breaks = breaks


def order_breaks(old: Catalogue, new: Catalogue, streams: Iterable[StreamKey]) -> list[OrderBreak]:
    """Each queue and reason once, in order."""
    found: set[OrderBreak] = set()
    judged: set[str] = set()
    for _source, destination in streams:
        if destination not in judged:
            judged.add(destination)
            queue = old.find(destination)
            if queue is not None:
                found.update(OrderBreak(queue.name, reason) for reason in _reasons(queue, new))
    return sorted(found)


def _reasons(queue: Queue, new: Catalogue) -> Iterator[str]:
    # By its name: of a queue that a pattern takes, a number is known once its name was seen.
    after = new.find(f"DIRECT=OS:.\\{queue.name}")
    if after is None:
        yield "it is no longer mapped: what its senders still have would be refused"
        return
    if not (after.mapping.transactional or after.any_kind):
        yield "it would refuse transactional messages"
    if _place(queue) != _place(after):
        yield f"its topic changes from {_place(queue)} to {_place(after)}"
    elif queue.partitions and after.partitions and queue.partitions != after.partitions:
        counts = f"{queue.partitions} to {after.partitions} partitions"
        yield f"{_place(queue)} went from {counts}: streams move to others"
    if _order(queue) != _order(after):
        yield f"its partitions are picked by {_order(after)}, so far by {_order(queue)}"


def _place(queue: Queue) -> str:
    return queue.topic or queue.mapping.template


def _order(queue: Queue) -> str:
    mapping = queue.mapping
    return "stream" if mapping.order == "stream" else f"key ({mapping.key})"


def changes(old: Mappings, new: Mappings) -> tuple[list[str], int]:
    """The queues whose mapping is new, gone or another, and how many stayed as they are."""
    before, after = old.by_name(), new.by_name()
    changed = sorted(q for q in before.keys() | after.keys() if before.get(q) != after.get(q))
    if old.defaults != new.defaults:
        changed.append("defaults")
    return changed, sum(queue not in changed for queue in after)


def mode_changes(old: Mappings, new: Mappings) -> list[str]:
    """Design D5: a queue has one mode. Who changes it should know what becomes of its messages."""
    before, after = old.by_name(), new.by_name()
    found: list[str] = []
    for name in sorted(before):
        then, now = before[name].mode, after[name].mode if name in after else ""
        if then == "retain" and now != "retain":
            what = "its mode changes from retain to forward" if now else "it is no longer mapped"
            found.append(
                f"{name}: {what}; what waits in it can still be read, and nothing is added"
            )
        elif then == "forward" and now == "retain":
            what = "its mode changes from forward to retain"
            found.append(f"{name}: {what}; readers get what comes from now on, not older records")
    return found
