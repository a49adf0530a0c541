"""A job over as many connections as it takes: what its shells have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from bridge.protocol.rpc.reader.steps import Answers, ConnectionLost, Flow, Step

RETRIES: Final = 5
_FIRST_S: Final = 0.2
_LONGEST_S: Final = 10.0

T = TypeVar("T")


class Running(Generic[T]):
    """`make` gives a flow for each connection. It gives up when nothing was reached between so
    many losses in a row."""

    def __init__(self, make: Callable[[], Flow[T]], retries: int = RETRIES) -> None:
        self.result: T
        self._make, self._retries = make, retries
        self._flow: Flow[T] | None = None
        self._losses = 0

    def step(self, answers: Answers = ()) -> Step | None:
        """What comes next, told the answers to the last step; None: it is done."""
        try:
            if self._flow is None:
                self._flow = self._make()
                return next(self._flow)
            return self._flow.send(answers)
        except StopIteration as end:
            self.result = end.value
            return None

    def lost(self, error: ConnectionLost) -> float:
        """Begin again, after so many seconds; raises the error if it has been enough."""
        self._flow = None
        self._losses += 1
        if self._losses > self._retries:
            raise error
        return min(_FIRST_S * 2.0 ** (self._losses - 1), _LONGEST_S)

    def progressed(self) -> None:
        self._losses = 0
