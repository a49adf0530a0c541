"""Where receipts and forwarded messages go: an HTTP server of the test's own, that can refuse,
vanish and come back."""

import socket
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import uuid4

from tests.outside.rawconnection import soon
from tests.outside.srmp.wire import Receipt, parse_receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """One request, whatever it was."""

    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    reached: str  # the address of ours it came to
    answer: int

    @property
    def receipt(self) -> Receipt:
        """Digest 1.2, 3.7: how a receipt is posted."""
        assert self.method == "POST", self
        assert self.headers["content-type"] == "text/xml", self
        assert self.headers["content-length"] == str(len(self.body)), self
        assert self.headers["soapaction"] == '"MSMQMessage"', self
        assert self.headers["proxy-accept"] == "NonInteractiveClient", self
        receipt = parse_receipt(self.body)
        now = time.time()
        assert abs(receipt.sent - now) < 600, receipt
        assert not receipt.at or abs(receipt.at - now) < 600, receipt
        return receipt


class Box:
    """One receipt URL: a path that nobody else uses."""

    def __init__(self, catcher: "Catcher", host: str, name: str, query: str) -> None:
        self._catcher = catcher
        self.path = f"/MSMQ/Private$/{name}{query}"
        self.url = f"http://{host}:{catcher.port}{self.path}"

    @property
    def caught(self) -> list[Caught]:
        return self._catcher.of(self.path)

    @property
    def receipts(self) -> list[Receipt]:
        return [one.receipt for one in self.caught]

    @property
    def lasts(self) -> list[int]:
        """What the stream receipts say."""
        return [one.last for one in self.receipts if one.type == "stream"]

    def plan(self, *answers: int, location: str = "") -> None:
        """The next answers; after them it is 200 again."""
        self._catcher.plan(self.path, answers, location)

    def until(
        self, enough: Callable[[list[Receipt]], object], seconds: float = 20
    ) -> list[Receipt]:
        self._catcher.wait(lambda: enough(self.receipts), seconds)
        found = self.receipts
        assert enough(found), found
        return found

    def wait(self, count: int, seconds: float = 20) -> list[Receipt]:
        return self.until(lambda receipts: len(receipts) >= count, seconds)

    def wait_last(self, last: int, seconds: float = 20) -> list[Receipt]:
        return self.until(lambda _: last in self.lasts, seconds)

    def pause(self, seconds: float) -> None:
        """Ends early when anything is caught."""
        before = len(self.caught)
        self._catcher.wait(lambda: len(self.caught) > before, seconds)


class Catcher:
    def __init__(self, host: str = "0.0.0.0", tls: ssl.SSLContext | None = None) -> None:
        self.host, self._tls = host, tls
        self.port = 0
        self._news = threading.Condition()
        self._caught: list[Caught] = []
        self._plans: dict[str, deque[tuple[int, str]]] = defaultdict(deque)
        self._open: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        """On the port it had before."""
        assert self._server is None
        handler = type("Handler", (_Handler,), {"catcher": self})
        self._server = _Server((self.host, self.port), handler)
        self.port = self._server.server_address[1]
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="catcher", daemon=True
        )
        self._thread.start()

    def down(self) -> None:
        """Nobody listens, and every connection is cut."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
        self._server = self._thread = None
        with self._news:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def box(self, host: str = "127.0.0.1", *, query: str = "") -> Box:
        return Box(self, host, f"Receipts-{uuid4().hex[:8]}", query)

    def box_at(self, host: str, name: str, query: str = "") -> Box:
        """A path that the message has, not we."""
        return Box(self, host, name, query)

    @property
    def everything(self) -> list[Caught]:
        with self._news:
            return list(self._caught)

    def of(self, path: str) -> list[Caught]:
        return [one for one in self.everything if one.target.lower() == path.lower()]

    def plan(self, path: str, answers: tuple[int, ...], location: str) -> None:
        with self._news:
            self._plans[path.lower()].extend((answer, location) for answer in answers)

    def wait(self, enough: Callable[[], object], seconds: float) -> None:
        """Until it is enough or the time is over; asked at every request."""
        deadline = soon(seconds)
        while not enough():
            with self._news:
                self._news.wait(max(0.0, min(0.2, deadline - soon(0))))
            if soon(0) > deadline:
                return

    # -- for the handlers -------------------------------------------------------------------

    def joined(self, connection: socket.socket) -> None:
        with self._news:
            self._open.add(connection)

    def left(self, connection: socket.socket) -> None:
        with self._news:
            self._open.discard(connection)

    def take(self, method: str, target: str, more: dict[str, Any]) -> tuple[int, str]:
        with self._news:
            plan = self._plans[target.lower()]
            answer, location = plan.popleft() if plan else (200, "")
            self._caught.append(Caught(method=method, target=target, answer=answer, **more))
            self._news.notify_all()
        return answer, location


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    catcher: Catcher

    def setup(self) -> None:
        super().setup()
        self.catcher.joined(self.connection)

    def finish(self) -> None:
        self.catcher.left(self.connection)
        with suppress(OSError):
            super().finish()

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def _any(self) -> None:
        more = {
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(int(self.headers.get("Content-Length") or 0)),
            "reached": self.connection.getsockname()[0],
        }
        answer, location = self.catcher.take(self.command, self.path, more)
        self.send_response(answer)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_HEAD = _any  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at what was caught."""
