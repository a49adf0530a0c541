"""The HTTP server on real sockets, with a handler that notes and waits; clients that send bytes."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.http_server import HttpRequest, HttpServer, Limits
from bridge.adapters.net.http_session import HttpSession
from bridge.adapters.telemetry import PREFIX, Telemetry
from tests.support.waiting import until

SOON_S = 20.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def closing(status: int, phrase: str) -> bytes:
    return b"HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % (
        status,
        phrase.encode(),
    )


OK_BYE = closing(200, "OK")
BAD = closing(400, "Bad Request")
FAILED = closing(500, "Internal Server Error")
BUSY = closing(503, "Service Unavailable")


def post(
    body: bytes = b"<x/>",
    *more: str,
    target: str = "/msmq/private$/q",
    version: str = "1.1",
    length: int | None = None,
) -> bytes:
    lines = [
        f"POST {target} HTTP/{version}",
        "Host: machine2",
        "Content-Type: text/xml",
        f"Content-Length: {len(body) if length is None else length}",
        *more,
    ]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body


def chunked(*chunks: bytes, trailer: bytes = b"") -> bytes:
    head = b"POST /q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return head + parts + b"0\r\n" + trailer + b"\r\n"


class HttpWorld:
    """Handles while the gate is open; answers as told, then 200."""

    def __init__(self, limits: Limits | None = None, hall: Hall | None = None) -> None:
        self.telemetry = Telemetry()
        self.server = HttpServer(self.handle, self.telemetry, limits, hall)
        self.requests: list[HttpRequest] = []
        self.outcomes: list[int | Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.host, self.port = "127.0.0.1", 0

    async def handle(self, request: HttpRequest) -> int:
        self.requests.append(request)
        await self.gate.wait()
        outcome = self.outcomes.pop(0) if self.outcomes else 200
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def listen(self, tls: ssl.SSLContext | None = None) -> None:
        self.host, _, port = (await self.server.start(self.host, 0, tls)).rpartition(":")
        self.port = int(port)

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    @property
    def session(self) -> HttpSession:
        (session,) = self.server._sessions
        return session

    async def received(self, count: int) -> None:
        await until(lambda: self.telemetry._bytes._value.get() >= count)

    def refused(self, reason: str) -> float:
        return self.sample("refusals_total", reason=reason)

    def sample(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(f"{PREFIX}{name}", labels) or 0.0


@asynccontextmanager
async def http_world(
    limits: Limits | None = None, tls: ssl.SSLContext | None = None, hall: Hall | None = None
) -> AsyncIterator[HttpWorld]:
    made = HttpWorld(limits, hall)
    await made.listen(tls)
    try:
        yield made
    finally:
        made.server.stop_listening()
        await made.server.hang_up()
        assert made.server.connections == 0
        assert (made.server._held, made.server._unfinished) == (0, {})
        assert (len(made.server._crowd), made.server._crowd.addresses) == (0, 0)


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> bytes:
        """One head; no answer of ours has a body."""
        async with asyncio.timeout(SOON_S):
            return await self.reader.readuntil(b"\r\n\r\n")

    async def ask(self, data: bytes) -> bytes:
        self.send(data)
        return await self.answer()

    async def end(self) -> bytes:
        """What is left until the other side hangs up."""
        async with asyncio.timeout(SOON_S):
            return await self.reader.read()

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


@asynccontextmanager
async def raw_client(
    made: HttpWorld,
    tls: ssl.SSLContext | None = None,
    *,
    narrow: bool = False,
    source: str = "",
) -> AsyncIterator[RawClient]:
    """`narrow`: the kernel holds hardly anything that is not read."""
    family = socket.AF_INET6 if ":" in made.host else socket.AF_INET
    plug = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio waits (Nagle)
    plug.setblocking(False)
    if narrow:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    if source:
        plug.bind((source, 0))
    await asyncio.get_running_loop().sock_connect(plug, (made.host.strip("[]"), made.port))
    name = "localhost" if tls else None
    connected = RawClient(*await asyncio.open_connection(sock=plug, ssl=tls, server_hostname=name))
    try:
        yield connected
    finally:
        await connected.close()


async def still_serves(made: HttpWorld, tls: ssl.SSLContext | None = None) -> None:
    async with raw_client(made, tls) as another:
        assert await another.ask(post(b"still")) == OK
    assert made.requests[-1].body == b"still"


async def nobody_left(made: HttpWorld) -> None:
    await until(lambda: made.server.connections == 0)
