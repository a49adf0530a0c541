"""Messages of a queue into a file: to look at them, or to take them out for good.

Taken out, each message is safe in the file before its queue forgets it. Cut off at any point, the
same export goes on with `resume`: what the file has is not written again, what the queue still has
of it is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from msgspec import Struct

from bridge.adapters.exports.journal import Journal
from bridge.adapters.exports.sources import Source
from bridge.model.errors import ConfigError

Progress = Callable[[int], None]


class Exported(Struct, frozen=True, kw_only=True):
    """What was done. `messages` is what the file has, `resumed` how many it had before."""

    queue: str
    messages: int
    resumed: int
    removed: int = 0
    repeated: int = 0
    elsewhere: int = 0
    unreadable: dict[int, str] = {}


def export(
    source: Source,
    journal: Journal,
    *,
    receive: bool,
    after: int | None = None,
    limit: int | None = None,
    progress: Progress = lambda _: None,
) -> Exported:
    """With an open journal; when it returns the file is whole."""
    resumed, last = journal.count, journal.last
    if last is not None and last.queue != source.queue:
        what = f"{str(journal.path)!r} is of {last.queue}, and this is {source.queue}"
        raise ConfigError(what, where="--resume", mend="name another file")
    left = None if limit is None else max(0, limit - resumed)
    progress(journal.count)
    if journal.is_complete:
        return Exported(queue=source.queue, messages=0, resumed=0)
    if receive:
        with closing(source.take(seen=journal.keys(), limit=left)) as batches:
            for taken in batches:
                journal.add(taken.messages)
                taken.confirm()
                progress(journal.count)
    else:
        behind = after if last is None else last.lookup_id
        with closing(source.peek(after=behind, limit=left)) as pages:
            for messages in pages:
                journal.add(messages)
                progress(journal.count)
    journal.finish()
    return Exported(
        queue=source.queue,
        messages=journal.count,
        resumed=resumed,
        removed=source.removed,
        repeated=source.repeated,
        elsewhere=source.elsewhere,
        unreadable=source.unreadable,
    )
