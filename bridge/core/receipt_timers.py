"""When the receipt of a stream is due: a moment after its last message. SR-34, SR-35, SR-37

Pure: time is an argument, in seconds of any clock that only goes forward.
"""

from __future__ import annotations

from typing import Final

from bridge.core.posted import Due
from bridge.core.streams import StreamKey

DELAY_S: Final = 0.5
LONGEST_S: Final = 10.0


class _Waiting:
    __slots__ = ("at", "due", "oldest")

    def __init__(self, due: Due, oldest: float | None, at: float) -> None:
        self.due, self.oldest, self.at = due, oldest, at


class ReceiptTimers:
    """The streams whose senders wait to hear how far we are; the state Pending of srmp.md 5.1."""

    def __init__(self) -> None:
        self._waiting: dict[StreamKey, dict[int, _Waiting]] = {}  # by the stream's id

    def add(self, due: Due, now: float) -> list[Due]:
        """What is to be sent at once."""
        of_key = self._waiting.setdefault(due.key, {})
        waiting = of_key.get(due.id)
        if due.is_repeated:
            if waiting is None:
                of_key[due.id] = _Waiting(due, None, now + DELAY_S)
            return []
        # A stream that another one has followed need not wait any longer.
        sent = [of_key.pop(other).due for other in list(of_key) if other != due.id]
        if waiting is None:
            of_key[due.id] = _Waiting(due, now, now + DELAY_S)
            return sent
        if due.number > waiting.due.number:  # lastOrdinal never falls
            waiting.due = due
        if waiting.oldest is None:
            waiting.oldest = now
        if now - waiting.oldest < LONGEST_S:
            waiting.at = now + DELAY_S
            return sent
        del self._waiting[due.key]
        return [*sent, waiting.due]

    def fire(self, now: float) -> list[Due]:
        """Those whose time has come. SR-35"""
        fired: list[Due] = []
        for key, of_key in list(self._waiting.items()):
            for stream_id, waiting in list(of_key.items()):
                if waiting.at <= now:
                    fired.append(of_key.pop(stream_id).due)
            if not of_key:
                del self._waiting[key]
        return fired

    def next_wakeup(self) -> float | None:
        times = (waiting.at for of_key in self._waiting.values() for waiting in of_key.values())
        return min(times, default=None)
