"""When the receipt of a stream is due: a moment after its last message. SR-34, SR-35, SR-37

Pure: time is an argument, in seconds of any clock that only goes forward. Senders name the streams,
so there is a bound: at the bound the receipt that is due first leaves at once.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from bridge.core.posted import Due
from bridge.core.streams import StreamKey
from bridge.protocol.timers import Deadlines

MOST: Final = 65_536  # streams that wait
DELAY_S: Final = 0.5
LONGEST_S: Final = 10.0


class _Waiting:
    __slots__ = ("due", "oldest")

    def __init__(self, due: Due, oldest: float | None) -> None:
        self.due, self.oldest = due, oldest


class ReceiptTimers:
    """The streams whose senders wait to hear how far we are; the state Pending of srmp.md 5.1."""

    def __init__(self) -> None:
        self._waiting: dict[StreamKey, dict[int, _Waiting]] = {}  # by the stream's id
        self._times = Deadlines[tuple[StreamKey, int]]()
        self._texts = Counter[str]()

    def __len__(self) -> int:
        return len(self._times)

    def add(self, due: Due, now: float) -> list[Due]:
        """What is to be sent at once."""
        waiting = self._waiting.get(due.key, {}).get(due.id)
        if due.is_repeated:
            return [] if waiting is not None else self._wait(due, None, now)
        sent = self._overtaken(due)
        if waiting is None:
            return [*sent, *self._wait(due, now, now)]
        if due.number > waiting.due.number:  # lastOrdinal never falls
            self._forget(waiting.due.text)
            self._texts[due.text] += 1
            waiting.due = due
        if waiting.oldest is None:
            waiting.oldest = now
        if now - waiting.oldest < LONGEST_S:
            self._times.set((due.key, due.id), now + DELAY_S)
            return sent
        return [*sent, self._end(due.key, due.id)]

    def has(self, key: StreamKey) -> bool:
        """A receipt of this stream, or of its source to this queue, is due later."""
        return bool(self._waiting.get(key))

    def waits(self, due: Due) -> bool:
        """A receipt of this very stream is due later."""
        return due.id in self._waiting.get(due.key, ())

    def has_text(self, text: str) -> bool:
        """The same by the id of the stream, as it was sent."""
        return text in self._texts

    def fire(self, now: float) -> list[Due]:
        """Those whose time has come. SR-35"""
        return [self._end(key, stream_id) for key, stream_id in self._times.due(now)]

    def next_wakeup(self) -> float | None:
        return self._times.next_wakeup()

    def _wait(self, due: Due, oldest: float | None, now: float) -> list[Due]:
        first = self._times.first() if len(self._times) >= MOST else None
        sent = [] if first is None else [self._end(*first)]
        self._waiting.setdefault(due.key, {})[due.id] = _Waiting(due, oldest)
        self._texts[due.text] += 1
        self._times.set((due.key, due.id), now + DELAY_S)
        return sent

    def _overtaken(self, due: Due) -> list[Due]:
        """A stream that another one has followed need not wait any longer."""
        others = [one for one in self._waiting.get(due.key, ()) if one != due.id]
        return [self._end(due.key, other) for other in others]

    def _end(self, key: StreamKey, stream_id: int) -> Due:
        of_key = self._waiting[key]
        ended = of_key.pop(stream_id).due
        self._forget(ended.text)
        if not of_key:
            del self._waiting[key]
        self._times.stop((key, stream_id))
        return ended

    def _forget(self, text: str) -> None:
        self._texts[text] -= 1
        if not self._texts[text]:
            del self._texts[text]
