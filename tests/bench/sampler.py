"""Where the main thread is, every two milliseconds, as the kernel's timer tells.

A signal and not a thread: a thread would have to win the interpreter's lock first, and it gets it
where the main thread lets go of it, so sockets would look dearer than they are. The handler runs
in the main thread at its next safe point; a call into C counts for the line that made it.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

INTERVAL_S: Final = 0.002
_WAITING_IN: Final = "select"
_COMMITTING: Final = "_commit"


class Sampler:
    def __init__(self, out: Path) -> None:
        self._out = out
        self._running = False
        self._stacks: Counter[tuple[CodeType, ...]] = Counter()
        self._waits: Counter[bool] = Counter()  # by whether a shard's thread waits for a commit

    def toggle(self, *_: object) -> None:
        """Start; then stop and write what was seen."""
        self._running = not self._running
        if self._running:
            signal.signal(signal.SIGALRM, self._on_alarm)
            signal.setitimer(signal.ITIMER_REAL, INTERVAL_S, INTERVAL_S)
        else:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._write()

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_name == _WAITING_IN:
            self._waits[self._is_committing(frame)] += 1
            return
        if frame is not None and frame.f_code is _OWN:  # the signal before this one
            return
        stack = []
        while frame is not None:
            stack.append(frame.f_code)
            frame = frame.f_back
        self._stacks[tuple(stack)] += 1

    def _is_committing(self, own: FrameType) -> bool:
        """Any thread of the bridge is in a commit."""
        for frame in sys._current_frames().values():
            at: FrameType | None = frame
            while at is not None and at is not own:
                if at.f_code.co_name == _COMMITTING and "bridge" in at.f_code.co_filename:
                    return True
                at = at.f_back
        return False

    def _write(self) -> None:
        stacks = [
            [count, [[code.co_filename, code.co_qualname] for code in stack]]
            for stack, count in self._stacks.items()
        ]
        seen = {
            "stacks": stacks,
            "commit_wait": self._waits[True],
            "idle": self._waits[False],
            "threads": {t.native_id: t.name for t in threading.enumerate()},
        }
        unfinished = self._out.with_suffix(".part")
        unfinished.write_text(json.dumps(seen))
        unfinished.replace(self._out)


_OWN: Final = Sampler._on_alarm.__code__
