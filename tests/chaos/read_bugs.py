"""Bugs of retained queues to plant in a running bridge, one for each verdict on readers."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tests.chaos.checker import Kind

EVERY: Final = 10  # messages between two that are hurt
LATE_S: Final = 0.7


def _forget_removals() -> None:
    """Kafka never hears of what is gone: the next start finds it again."""
    from bridge.core.retained.fronts import Fronts

    Fronts.commit = lambda self, fates, fronts: {}  # type: ignore[method-assign]


def _give_again() -> None:
    """A removal that was committed is not taken off the shelf."""
    from bridge.adapters.store.retained_view import RetainedView

    remove, seen = RetainedView.remove, 0

    def keep_some(self: RetainedView, row: Any) -> None:
        nonlocal seen
        seen += 1
        if seen % EVERY:
            remove(self, row)

    RetainedView.remove = keep_some  # type: ignore[method-assign]


def _lose_some() -> None:
    """Arrivals that the follower saw do not come to the shelf."""
    from bridge.core.retained.retained_queues import RetainedQueues

    arrive, seen = RetainedQueues.arrive, 0

    def lossy(self: RetainedQueues, rows: Iterable[Any], now: Any) -> Any:
        nonlocal seen
        kept = []
        for row in rows:
            seen += 1
            if seen % EVERY:
                kept.append(row)
        return arrive(self, kept, now)

    RetainedQueues.arrive = lossy  # type: ignore[method-assign]


def _renumber() -> None:
    """Each start gives the messages that wait new numbers."""
    from bridge.adapters.kafka import held_follower
    from bridge.core.retained.rows import Row

    row_in = held_follower.row_in  # type: ignore[attr-defined]
    shift = os.getpid() << 32

    def renumbered(*args: Any, **kwargs: Any) -> Any:
        row = row_in(*args, **kwargs)
        if row is None:
            return None
        values = {name: getattr(row, name) for name in Row.__struct_fields__}
        return Row(**{**values, "lookup_id": row.lookup_id + shift})

    held_follower.row_in = renumbered  # type: ignore[attr-defined]


def _no_copies() -> None:
    from bridge.core.retained.flights import Flights

    Flights._copy = lambda self, row, reason, now: None  # type: ignore[method-assign]


def _two_copies() -> None:
    """Its record is produced twice, once without its mark."""
    from bridge.core.retained import leaving
    from bridge.core.shard import Shard

    leave = Shard.leave

    def twice(self: Shard, left: leaving.Leaving, fronts: Mapping[Any, int]) -> None:
        leave(self, left, fronts)
        for record in left.records:
            bare = {name: v for name, v in record.headers.items() if name != "msmq.held"}
            self._records.append(_with_headers(record, bare))

    Shard.leave = twice  # type: ignore[method-assign, assignment]


def _end_before_commit() -> None:
    """A remote reader hears that its message is removed; Kafka hears of it a little later."""
    from bridge.adapters.remote_read.reads import Reads

    async def hurry(self: Reads, commands: Sequence[Any]) -> None:
        asyncio.get_running_loop().call_later(LATE_S, self._service.carry_out, commands)

    Reads._settled = hurry  # type: ignore[method-assign]


def _release_held() -> None:
    """Some messages are back in their queue as soon as a remote reader has them."""
    from bridge.adapters.remote_read.reads import Reads

    start, seen = Reads.start, 0

    async def start_and_release(self: Reads, handle: int, tag: int, *args: Any) -> Any:
        nonlocal seen
        given = await start(self, handle, tag, *args)
        seen += 1
        if seen % EVERY == 0:
            self.release(handle, tag)
        return given

    Reads.start = start_and_release  # type: ignore[method-assign, assignment]


def _latest_first() -> None:
    """A stack instead of a queue."""
    from bridge.core.retained.place import END, START
    from bridge.core.retained.stock import Window

    after = Window.after

    def latest(self: Window, place: int) -> Any:
        return self.before(END) if place == START else after(self, place)

    Window.after = latest  # type: ignore[method-assign]


def _with_headers(record: Any, headers: dict[str, bytes]) -> Any:
    import msgspec

    return msgspec.structs.replace(record, headers=headers)


READ_BUGS: Final[dict[str, tuple[Kind, Callable[[], None]]]] = {
    "forget-removals": (Kind.REAPPEARS, _forget_removals),
    "give-again": (Kind.READ_TWICE, _give_again),
    "lose-waiting": (Kind.UNTOLD_LOST, _lose_some),
    "renumber": (Kind.OUT_OF_PLACE, _renumber),
    "no-copies": (Kind.JOURNAL_MISSING, _no_copies),
    "two-copies": (Kind.JOURNAL_DOUBLED, _two_copies),
    "end-before-commit": (Kind.REAPPEARS, _end_before_commit),
    "release-held": (Kind.HELD_BY_TWO, _release_held),
    "latest-first": (Kind.OUT_OF_TURN, _latest_first),
}
