"""As `load`, over HTTP: one request at a time on each connection, as Windows does it (SR-70).

    python -m tests.bench.http_load --address 127.0.0.1:80 --kind srmp-stream --sessions 8 ...

A stream's sender hears of its messages at a port of its own, once more after the answers: the run
ends when the receipts for all of them are there. They do not count for the throughput.
"""

from __future__ import annotations

import argparse
import re
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.bench.load import Address, Driver, Outcome, arguments, perform
from tests.bench.posts import HOST, KINDS, Posts

RECEIPTS_S = 30.0
_RECEIPT = re.compile(rb"<streamId>([^<]+)</streamId><lastOrdinal>([0-9]+)</lastOrdinal>")


class PostSession:
    """One connection; keeps how long each answer took."""

    def __init__(self, connected: socket.socket, posts: Posts, count: int) -> None:
        self.socket = connected
        self.posts = posts
        self.count = self.limit = count
        self.acked = self.tail = 0
        self.latencies: list[float] = []
        self._rest = memoryview(b"")  # of the request that is under way
        self._asked = 0
        self._since = 0.0
        self._answer = b""
        self.socket.setblocking(False)

    @property
    def done(self) -> bool:
        return self.acked == self.count

    def push(self) -> bool:
        """Send what may be sent; whether the socket took all of it."""
        if self._asked == self.acked < self.limit:
            self._asked += 1
            self._rest = self.posts.request(self._asked)
            self._since = time.monotonic()
        if self._rest:
            try:
                self._rest = self._rest[self.socket.send(self._rest) :]
            except BlockingIOError:
                return False
        return not self._rest

    def pull(self) -> int:
        """Read what came; whether it was the end of an answer (srmp.md 1.4: it has no body)."""
        data = self.socket.recv(65_536)
        if not data:
            raise ConnectionError("the bridge closed the connection")
        self._answer += data
        if not self._answer.endswith(b"\r\n\r\n"):
            return 0
        if not self._answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"the bridge answered {self._answer!r}")
        self.latencies.append(time.monotonic() - self._since)
        self._answer = b""
        self.acked += 1
        return 1


class ReceiptSink(ThreadingHTTPServer):
    """Where receipts of streams go. Few come: one for all that a stream sent in 10 seconds."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self._last: dict[str, int] = {}
        self._news = threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/msmq/private$/order_queue$"

    def take(self, body: bytes) -> None:
        with self._news:
            for stream_id, last in _RECEIPT.findall(body):
                self._last[stream_id.decode()] = int(last)
            self._news.notify_all()

    def wait(self, stream_id: str, last: int, seconds: float = RECEIPTS_S) -> None:
        """Until this stream is receipted as far as that."""
        with self._news:
            if not self._news.wait_for(lambda: self._last.get(stream_id) == last, seconds):
                raise TimeoutError(f"receipts that came: {self._last}, wanted: up to {last}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keep-alive
    server: ReceiptSink

    def do_POST(self) -> None:
        self.server.take(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *_: object) -> None:
        """Says nothing."""


def connect(
    address: Address, queue: str, kind: str, sessions: int, count: int, size: int, receipts: str
) -> list[PostSession]:
    made = []
    for _ in range(sessions):
        posts = Posts(queue, kind, size, uuid.uuid4(), int(time.time()), receipts)
        connected = socket.create_connection(address)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.append(PostSession(connected, posts, count))
    return made


def post_all(sessions: list[PostSession], sink: ReceiptSink) -> Outcome:
    outcome = Driver(sessions).run()
    outcome.latencies = sorted(took for session in sessions for took in session.latencies)
    for session in sessions:
        if session.posts.stream_id and session.count:
            sink.wait(session.posts.stream_id, session.count)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments(parser, KINDS)
    given = parser.parse_args()
    host, _, port = given.address.rpartition(":")
    sink = ReceiptSink()
    to = (host, int(port)), given.queue, given.kind
    idle = connect(*to, given.idle, 0, 0, sink.url)
    active = connect(*to, given.sessions, given.count, given.size, sink.url)
    perform(lambda: post_all([*active, *idle], sink))


if __name__ == "__main__":
    main()
