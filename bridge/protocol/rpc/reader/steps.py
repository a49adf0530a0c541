"""What a flow wants, and what it is told."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeAlias, TypeVar

import msgspec

from bridge.model.errors import ProtocolError, Unavailable
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.packets import Read
from bridge.protocol.rpc.reader.results import LOST_HANDLE, Refused, status_of
from bridge.wire.rpc.stub import Request, Stub

Answer: TypeAlias = Stub | Fault
Answers: TypeAlias = tuple[Answer, ...]
T = TypeVar("T")
S = TypeVar("S", bound=Stub)


class ConnectionLost(Unavailable):
    """No answer will come: nobody knows what the calls in flight did."""


class Ask(msgspec.Struct, frozen=True):
    """Calls for RemoteRead, all sent before the first answer is awaited."""

    requests: tuple[Request, ...]
    wait_ms: int = 0  # how long the server may take on purpose


class Batch:
    """Messages for the reader. Of a receive: what it has not confirmed goes back to its queue."""

    def __init__(self, reads: tuple[Read, ...]) -> None:
        self.reads, self.is_last = reads, False
        self._confirmed: set[int] = set()

    def confirm(self, reads: Iterable[Read] | None = None) -> None:
        """These, or all, are safe where the reader wants them: the queue may forget them."""
        chosen = self.reads if reads is None else reads
        self._confirmed |= {read.request_id for read in chosen}

    def is_confirmed(self, read: Read) -> bool:
        return read.request_id in self._confirmed

    def stop(self) -> None:
        """The reader wants no more after this one."""
        self.is_last = True


class Pause(msgspec.Struct, frozen=True):
    """Nothing to do for so long."""

    ms: int


Step: TypeAlias = Ask | Batch | Pause
Flow: TypeAlias = Generator[Step, Answers, T]


def ask(*requests: Request, wait_ms: int = 0) -> Flow[Answers]:
    """All answers, in the order of the requests."""
    if not requests:
        return ()
    answers = yield Ask(requests, wait_ms)
    if any(status_of(answer) == LOST_HANDLE for answer in answers):
        raise ConnectionLost("the server has forgotten our handles")
    return answers


def call(request: Request, kind: type[S]) -> Flow[S]:
    """The answer to one call; Refused if it is a failure."""
    (answer,) = yield from ask(request)
    if status := status_of(answer):
        raise Refused(status)
    if not isinstance(answer, kind):
        raise ProtocolError("bad-reply", f"{type(answer).__name__} for {type(request).__name__}")
    return answer


def give(batch: Batch) -> Flow[None]:
    yield batch


def pause(ms: int) -> Flow[None]:
    yield Pause(ms)
