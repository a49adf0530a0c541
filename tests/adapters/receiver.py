"""Where receipts and messages go: an HTTP receiver on loopback, whose answers are planned."""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Callable
from itertools import count

SOON = 10.0
PATH = "/MSMQ/Private$/Order_Queue$"
HANG, CUT = 0, -1  # no answer; hung up without one


class Request:
    def __init__(self, head: str, body: bytes, line: int) -> None:
        self.first, *rest = head.split("\r\n")
        self.headers = dict(one.split(": ", 1) for one in rest if one)
        self.body, self.line = body, line  # the number of the connection

    @property
    def last(self) -> int:
        """lastOrdinal"""
        found = re.search(rb"<lastOrdinal>(\d+)<", self.body)
        assert found is not None, self.body
        return int(found[1])

    @property
    def id(self) -> int:
        found = re.search(rb"<id>uuid:(\d+)@", self.body)
        assert found is not None, self.body
        return int(found[1])


class Receiver:
    """Answers by a plan, 200 after that; `gate` holds all answers back."""

    def __init__(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.host, self._tls = host, tls
        self.plan: deque[int] = deque()
        self.refuses: dict[str, int] = {}  # path -> status
        self.got: list[Request] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._news = asyncio.Condition()
        self._lines = count(1)
        self.open = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self.port = 0
        await self.listen()

    async def listen(self) -> None:
        """On the port it had before."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    def url(self, path: str = PATH) -> str:
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = next(self._lines)
        self.open += 1
        self._writers.append(writer)
        try:
            while await self._one(reader, writer, line):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            await self._tell()
            writer.close()

    async def _one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: int
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        found = re.search(r"Content-Length: (\d+)", head)
        assert found is not None
        request = Request(head, await reader.readexactly(int(found[1])), line)
        self.got.append(request)
        await self._tell()
        await self.gate.wait()
        status = self.refuses.get(request.first.split()[1], 200)
        if status == 200 and self.plan:
            status = self.plan.popleft()
        if status == HANG:
            await reader.read(1)  # until the other one has enough
            return False
        if status == CUT:
            return False
        writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n".encode())
        return True

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON), self._news:
            await self._news.wait_for(enough)

    async def wait(self, number: int) -> list[Request]:
        await self.until(lambda: len(self.got) >= number)
        return self.got

    async def stop(self) -> None:
        self.gate.set()
        self._server.close()
        for writer in self._writers:
            writer.close()
