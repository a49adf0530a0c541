"""A shell without I/O: flows on the fake server, with connections that break where one likes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.drain import Drain
from bridge.protocol.rpc.reader.names import Target, target
from bridge.protocol.rpc.reader.running import Running
from bridge.protocol.rpc.reader.scan import Scan
from bridge.protocol.rpc.reader.steps import Answer, Ask, Batch, ConnectionLost, Flow, Pause
from bridge.wire.rpc.stub import Request
from tests.protocol.rpc.reader.fake_server import FakeServer

ORDERS = "private$\\orders"


class Wire:
    """`breaks(n)` is asked before call n of the whole test: None goes through, False breaks the
    connection before the server has it, True when the server has done it."""

    def __init__(
        self, server: FakeServer, breaks: Callable[[int], bool | None] = lambda _: None
    ) -> None:
        self.server, self._breaks = server, breaks
        self.connection, self.calls = 1, 0
        self.widest = 0
        self.pauses: list[int] = []
        self.on_pause: Callable[[], None] = lambda: None
        self.notices = True  # the server sees a lost connection at once

    def ask(self, step: Ask) -> tuple[Answer, ...]:
        self.widest = max(self.widest, len(step.requests))
        answers = []
        for request in step.requests:
            self.calls += 1
            moment = self._breaks(self.calls)
            if moment is False:
                self.lose()
            answers.append(self._call(request))
            if moment is True:
                self.lose()
        return tuple(answers)

    def _call(self, request: Request) -> Answer:
        try:
            stub = self.server.call(self.connection, request.OPNUM, request.pack())
        except Fault as fault:
            return fault
        return request.RESPONSE.unpack(stub)

    def lose(self) -> None:
        lost, self.connection = self.connection, self.connection + 1
        if self.notices:
            self.server.lose(lost)
        raise ConnectionLost("cut")


def batches(job: Scan | Drain, wire: Wire) -> Iterator[Batch]:
    running = Running(job.flow, retries=100)
    while (batch := next_batch(running, wire)) is not None:
        yield batch


def next_batch(running: Running[Any], wire: Wire) -> Batch | None:
    step = running.step()
    while True:
        try:
            match step:
                case None | Batch():
                    return step
                case Ask():
                    step = running.step(wire.ask(step))
                case Pause():
                    wire.pauses.append(step.ms)
                    wire.on_pause()
                    step = running.step()
        except ConnectionLost as lost:
            running.lost(lost)
            step = running.step()


def finish(flow: Flow[Any], wire: Wire) -> Any:
    """A flow that gives no batches; its result."""
    running = Running(lambda: flow, retries=0)
    assert next_batch(running, wire) is None
    return running.result


def orders(name: str = ORDERS) -> Target:
    return target(name, "host")


def bodies(batch: Batch) -> list[bytes]:
    return [read.message.body for read in batch.reads]


def scanned(server: FakeServer, **options: Any) -> list[bytes]:
    found = batches(Scan(orders(), **options), Wire(server))
    return [body for batch in found for body in bodies(batch)]
