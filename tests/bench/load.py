"""A sender that is far cheaper than what it measures: packets are made beforehand, from the digest.

One process, one selector, many sessions. Each keeps a window of 64 and only counts what comes
back: binary.md 2.5, 2.6, QB-50.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import time
import uuid
from collections import deque

WINDOW = 64
_BASE = struct.Struct("<BBHIII")
_USER = struct.Struct("<16s16sIIII")
_TX = struct.Struct("<IQII")
_PROPERTIES = struct.Struct("<BBH20sIIIIIIII")
_MAGIC = 0x524F494C


def packets(queue: str, kind: str, count: int, size: int, source: bytes) -> list[bytes]:
    """`count` user messages to a direct name; kind is express, recoverable or transactional."""
    name = f"TCP:127.0.0.1\\{queue}".encode("utf-16-le") + b"\0\0"
    name = struct.pack("<H", len(name)) + name
    name += bytes(-len(name) % 4)
    flags = 7 << 10 | 0x00200000
    if kind != "express":
        flags |= 0x20
    if kind == "transactional":
        flags |= 0x00100000
    label = "load".encode("utf-16-le") + b"\0\0"
    body = bytes(size)
    properties = _PROPERTIES.pack(0, 5, 0, bytes(20), 0x1011, 0, size, size, 0, 0x8004, 0x6801, 0)
    properties += label + body
    properties += bytes(-len(properties) % 4)
    sequence = int(time.time()) << 32 | 1
    now = int(time.time())
    made = []
    for n in range(1, count + 1):
        user = _USER.pack(source, bytes(16), 0xFFFFFFFF, now, n, flags) + name
        if kind == "transactional":
            user += _TX.pack(0xC | n % 0xFFFFF << 4, sequence, n, n - 1)
        packet_size = _BASE.size + len(user) + len(properties)
        priority = 0 if kind == "transactional" else 3
        base = _BASE.pack(0x10, 0, priority, _MAGIC, packet_size, 345600)
        made.append(base + user + properties)
    return made


class LoadSession:
    """Connects, shakes hands, then sends as the window allows."""

    def __init__(self, address: tuple[str, int], made: list[bytes], source: bytes) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._made = made
        self._buffer = b""
        self._out = b""
        self.sent = self.acked = 0
        self._received = 0
        self.started: deque[float] = deque()
        self.latencies: list[float] = []
        hello = _BASE.pack(0x10, 0, 0x0B, _MAGIC, 572, 0xFFFFFFFF) + struct.pack("<HH", 0, 2)
        hello += source + bytes(16) + struct.pack("<IHH", 0, 0x0310, 0) + b"\x5a" * 512
        self.socket.sendall(hello)
        self._read_exactly(572)
        terms = _BASE.pack(0x10, 0, 0x0B, _MAGIC, 32, 0xFFFFFFFF) + struct.pack("<HH", 0, 3)
        self.socket.sendall(terms + struct.pack("<IIHH", 500, 20000, 0, WINDOW))
        self._read_exactly(32)
        self.socket.setblocking(False)

    def _read_exactly(self, size: int) -> None:
        while len(self._buffer) < size:
            self._buffer += self.socket.recv(size - len(self._buffer))
        self._buffer = b""

    @property
    def done(self) -> bool:
        return self.acked == len(self._made)

    def push(self) -> None:
        end = min(self.acked + WINDOW, len(self._made))
        if end > self.sent:
            self._out += b"".join(self._made[self.sent : end])
            self.started.extend([time.monotonic()] * (end - self.sent))
            self.sent = end
        if self._out:
            try:
                written = self.socket.send(self._out)
            except BlockingIOError:
                return
            self._out = self._out[written:]

    @property
    def blocked(self) -> bool:
        return bool(self._out)

    def pull(self) -> None:
        self._buffer += self.socket.recv(65536)
        now = time.monotonic()
        while len(self._buffer) >= 16:
            (size,) = struct.unpack_from("<I", self._buffer, 8)
            if len(self._buffer) < size:
                break
            flags = self._buffer[2]
            if flags & 0x08:  # a session ack
                (ack,) = struct.unpack_from("<H", self._buffer, 20)
                step = (ack - self.acked) & 0xFFFF
                self.acked += step
                for _ in range(step):
                    self.latencies.append(now - self.started.popleft())
            else:  # an order ack; a piggybacked header would follow it
                self._received += 1
                if flags & 0x10:
                    size += 16
            self._buffer = self._buffer[size:]


def run(
    address: tuple[str, int], queue: str, kind: str, sessions: int, count: int, size: int
) -> dict[str, float]:
    """All sessions at once; time from the first byte to the last session ack."""
    ready = []
    for _ in range(sessions):
        source = uuid.uuid4().bytes_le
        ready.append(LoadSession(address, packets(queue, kind, count, size, source), source))
    selector = selectors.DefaultSelector()
    for session in ready:
        selector.register(session.socket, selectors.EVENT_READ, session)
    started, cpu = time.monotonic(), time.process_time()
    for session in ready:
        session.push()
    left = len(ready)
    while left:
        for key, events in selector.select(30):
            session = key.data
            if events & selectors.EVENT_READ:
                session.pull()
            session.push()
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if session.blocked else 0)
            if session.done:
                selector.unregister(session.socket)
                left -= 1
            elif wanted != key.events:
                selector.modify(session.socket, wanted, session)
    seconds = time.monotonic() - started
    latencies = sorted(x for s in ready for x in s.latencies)
    for session in ready:
        session.socket.close()
    return {
        "seconds": seconds,
        "messages": sessions * count,
        "cpu": time.process_time() - cpu,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--size", type=int, default=1024)
    given = parser.parse_args()
    host, _, port = given.address.rpartition(":")
    result = run(
        (host, int(port)), given.queue, given.kind, given.sessions, given.count, given.size
    )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
