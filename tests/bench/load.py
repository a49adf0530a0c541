"""A sender that is far cheaper than what it measures: one process, one selector, many sessions.

    python -m tests.bench.load --address 127.0.0.1:1801 --queue 'private$\\orders' --sessions 64 ...

It opens its sessions, says `ready`, and begins at a line on stdin; so whoever asked can look at
the CPU clocks around the work alone. Sessions stay open until stdin ends. Without --rate it sends
as the window allows (QB-50); with it, each message has a moment when it is due, and its latency
counts from then: a stall of the bridge is a stall of all that should have been sent meanwhile.
Knows nothing of the bridge's code: binary.md 2.3 to 2.6, QB-43, QB-47, QB-50.
"""

from __future__ import annotations

import argparse
import gc
import json
import selectors
import socket
import struct
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.figures import percentile
from tests.bench.packets import KINDS, Block, base_header, make_block

WINDOW = 64
# Of a session's last messages so many may wait for an ack timer, 10 seconds for express ones
# (QB-41, QB-45). That tells nothing about speed, so a flood ends without their acks.
TAIL = WINDOW // 2 - 1
RAMP_S = 1.0  # at both ends of a paced run: sent, but their latencies are not counted
SILENCE_S = 60.0
_INTERNAL, _SESSION = 0x08, 0x10  # BaseHeader.Flags: IN, SH
_HEAD = struct.Struct("<2xH4xI")  # BaseHeader: Flags, PacketSize
_ACK = struct.Struct("<H10xH")  # SessionHeader: AckSequenceNumber, WindowSize
_SESSION_SIZE = 16
_READ = selectors.EVENT_READ
_WRITE = selectors.EVENT_WRITE

Address = tuple[str, int]


class Session(Protocol):
    """What a driver moves."""

    socket: socket.socket
    count: int
    limit: int  # so many may be sent by now
    acked: int
    tail: int  # so many need not be acked in the end

    @property
    def done(self) -> bool: ...

    def push(self) -> bool:
        """Send what may be sent; whether the socket took all of it."""
        ...

    def pull(self) -> int:
        """Read what came; how many more messages are acked by it."""
        ...


class LoadSession:
    """Shakes hands when made; then sends as window and `limit` allow and counts what is acked."""

    def __init__(self, connected: socket.socket, block: Block, source: bytes) -> None:
        self.socket = connected
        self.count = self.limit = block.count
        self.acked = 0
        self.tail = TAIL
        self.window = WINDOW
        self._view = memoryview(block.data)
        self._size = block.size
        self._sent = 0  # bytes
        self._rest = b""
        self._shake_hands(source)
        self.socket.setblocking(False)

    def _shake_hands(self, source: bytes) -> None:
        hello = base_header(0x0B, 572) + struct.pack("<HH", 0, 2) + source + bytes(16)
        self.socket.sendall(hello + struct.pack("<IHH", 0, 0x0310, 0) + b"\x5a" * 512)
        self._expect(572)
        terms = base_header(0x0B, 32) + struct.pack("<HH", 0, 3)
        self.socket.sendall(terms + struct.pack("<IIHH", 500, 20_000, 0, WINDOW))
        self._expect(32)

    def _expect(self, size: int) -> None:
        while size:
            data = self.socket.recv(size)
            if not data:
                raise ConnectionError("refused in the handshake")
            size -= len(data)

    @property
    def done(self) -> bool:
        return self._sent == len(self._view) and self.count - self.acked <= self.tail

    def push(self) -> bool:
        """Send what may be sent; whether the socket took all of it."""
        allowed = min(self.limit, self.acked + self.window) * self._size
        if self._sent < allowed:
            try:
                self._sent += self.socket.send(self._view[self._sent : allowed])
            except BlockingIOError:
                return False
        return self._sent >= allowed

    def pull(self) -> int:
        """Read what came; how many more messages are acked by it."""
        data = self.socket.recv(65_536)
        if not data:
            raise ConnectionError("the bridge closed the session")
        before = self.acked
        self._rest = self._read(self._rest + data)
        return self.acked - before

    def _read(self, data: bytes) -> bytes:
        start = 0
        while len(data) - start >= _HEAD.size:
            flags, size = _HEAD.unpack_from(data, start)
            end = start + size
            if flags & _SESSION and not flags & _INTERNAL:
                end += _SESSION_SIZE  # PacketSize does not count one that rides on a message
            if end > len(data):
                break
            if flags & _SESSION:
                number, window = _ACK.unpack_from(data, end - _SESSION_SIZE)
                self.acked += (number - self.acked) & 0xFFFF
                self.window = min(WINDOW, max(1, window))
            start = end
        return data[start:]


@dataclass(slots=True)
class Pace:
    """When each message is due: every session in turn, `burst` messages at a time."""

    rate: float
    burst: int
    sessions: int
    started: float = 0.0

    def due(self, session: int, message: int) -> float:
        turn = message // self.burst * self.sessions + session
        return self.started + turn * self.burst / self.rate

    def turns(self, now: float) -> int:
        """How many bursts are due by then."""
        return max(0, int((now - self.started) * self.rate / self.burst) + 1)


@dataclass(slots=True)
class Outcome:
    messages: int
    seconds: float = 0.0
    counted: int = 0  # messages that were acked in `seconds`
    latencies: list[float] = field(default_factory=list)


def connect(
    address: Address, queue: str, kind: str, sessions: int, count: int, size: int
) -> list[LoadSession]:
    made = []
    for _ in range(sessions):
        source = uuid.uuid4().bytes_le
        connected = socket.create_connection(address)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        block = make_block(queue, kind, count, size, source, int(time.time()))
        made.append(LoadSession(connected, block, source))
    return made


class Driver:
    """Moves all sessions until they are done."""

    def __init__(self, sessions: Sequence[Session], pace: Pace | None = None) -> None:
        self._sessions = sessions
        self._pace = pace
        self._turn = 0  # bursts that were let go
        self._left = {index for index, session in enumerate(sessions) if not session.done}
        self._acked = 0
        self._outcome = Outcome(sum(session.count for session in sessions))
        self._selector = selectors.DefaultSelector()
        for index, session in enumerate(sessions):
            self._selector.register(session.socket, _READ, index)

    def run(self) -> Outcome:
        outcome = self._outcome
        started = heard = time.monotonic()
        self._begin(started)
        while self._left:
            ready = self._selector.select(self._release())
            now = time.monotonic()
            for key, _ in ready:
                self._serve(key, now)
            if ready:
                heard = now
            elif now - heard > SILENCE_S:
                raise TimeoutError(f"{len(self._left)} sessions wait for acks")
        outcome.counted, outcome.seconds = self._acked, time.monotonic() - started
        outcome.latencies.sort()
        return outcome

    def _begin(self, now: float) -> None:
        if self._pace is not None:
            self._pace.started = now
            for session in self._sessions:
                session.limit = session.tail = 0
        for index in list(self._left):
            self._push(index)

    def _release(self) -> float:
        """Let go what is due by now; how long to wait for what is due next."""
        pace = self._pace
        if pace is None:
            return SILENCE_S
        turns = self._outcome.messages // pace.burst
        for turn in range(self._turn, min(turns, pace.turns(time.monotonic()))):
            index = turn % pace.sessions
            self._sessions[index].limit += pace.burst
            self._push(index)
            self._turn = turn + 1
        if self._turn >= turns:
            return SILENCE_S if self._left else 0.0
        return max(0.0, pace.started + self._turn * pace.burst / pace.rate - time.monotonic())

    def _serve(self, key: selectors.SelectorKey, now: float) -> None:
        session = self._sessions[key.data]
        try:
            step = session.pull()
        except BlockingIOError:  # it was for writing
            step = 0
        if step:
            self._acked += step
            if self._pace is not None:
                self._time(key.data, session.acked - step, session.acked, now)
        self._push(key.data)

    def _push(self, index: int) -> None:
        session = self._sessions[index]
        wanted = _READ if session.push() else _READ | _WRITE
        if wanted != self._selector.get_key(session.socket).events:
            self._selector.modify(session.socket, wanted, index)
        if session.done:
            self._left.discard(index)

    def _time(self, index: int, first: int, end: int, now: float) -> None:
        pace = self._pace
        assert pace is not None
        begin = pace.started + RAMP_S
        stop = pace.started + self._outcome.messages / pace.rate - RAMP_S
        for message in range(first, end):
            due = pace.due(index, message)
            if begin <= due < stop:
                self._outcome.latencies.append(now - due)


def report(outcome: Outcome, cpu_s: float) -> dict[str, float]:
    told = {
        "messages": float(outcome.messages),
        "seconds": outcome.seconds,
        "per_second": outcome.counted / outcome.seconds if outcome.seconds else 0.0,
        "cpu_s": cpu_s,
    }
    if outcome.latencies:
        told["p50_ms"] = 1000 * percentile(outcome.latencies, 0.5)
        told["p99_ms"] = 1000 * percentile(outcome.latencies, 0.99)
        told["max_ms"] = 1000 * outcome.latencies[-1]
    return told


def perform(run: Callable[[], Outcome]) -> None:
    """At a line on stdin; what came of it goes to stdout. Returns when stdin ends."""
    gc.disable()  # what it makes has no cycles
    print("ready", flush=True)
    sys.stdin.readline()
    cpu = time.process_time()
    outcome = run()
    print(json.dumps(report(outcome, time.process_time() - cpu)), flush=True)
    sys.stdin.read()


def arguments(parser: argparse.ArgumentParser, kinds: Sequence[str]) -> None:
    """Those of every generator; the last kind is the default."""
    parser.add_argument("--address", required=True, help="host:port")
    parser.add_argument("--queue", default="private$\\orders", help="path name")
    parser.add_argument("--kind", choices=kinds, default=kinds[-1])
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--count", type=int, default=1024, help="messages of each session")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a body")
    parser.add_argument("--idle", type=int, default=0, help="sessions that only stay open")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments(parser, KINDS)
    parser.add_argument(
        "--rate", type=float, default=0.0, help="messages a second; 0: all it takes"
    )
    parser.add_argument("--burst", type=int, default=1, help="messages that are due together")
    given = parser.parse_args()
    host, _, port = given.address.rpartition(":")
    address = host, int(port)
    idle = connect(address, given.queue, given.kind, given.idle, 0, 0)
    active = connect(address, given.queue, given.kind, given.sessions, given.count, given.size)
    pace = Pace(given.rate, given.burst, given.sessions) if given.rate else None
    driver = Driver([*active, *idle], pace)
    perform(driver.run)


if __name__ == "__main__":
    main()
