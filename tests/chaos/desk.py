"""Where the receipts of a sender arrive: its own HTTP port, which may be in a bad mood or dead."""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final

from tests.outside.srmp.wire import Receipt, parse_receipt

HOST: Final = "127.0.0.1"
ORDER_QUEUE: Final = "/MSMQ/PRIVATE$/order_queue$"
HANG_S: Final = 1.5
ANSWER: Final = b"HTTP/1.1 %d -\r\nContent-Length: 0\r\n\r\n"


class Mood(StrEnum):
    """What may happen to a receipt. Its sender then repeats the message, or the bridge the receipt;
    a final one that was answered with 200 is the only one, so it is not forgotten."""

    FORGET = "forgotten"
    CLOSE = "not answered"
    TAKE_AND_CLOSE = "taken, not answered"
    REFUSE = "refused for now"
    HANG = "answered with silence"


# Mostly the one after which the bridge does not wait.
_MOODS: Final = (*Mood, *3 * (Mood.FORGET,))


class Desk:
    def __init__(
        self, take: Callable[[Receipt], None], rng: random.Random, events: Counter[str]
    ) -> None:
        """`take` raises AssertionError for a receipt that should not be."""
        self._take, self._rng, self._events = take, rng, events
        self.is_moody = False
        self.complaint: Callable[[str], None] = lambda _text: None
        self.port = 0
        self._place: socket.socket | None = None  # keeps the port while nobody listens
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{ORDER_QUEUE}"

    async def up(self) -> None:
        """On the port it had before."""
        if self._place is None:
            self._place = socket.socket()
            self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._place.bind((HOST, 0))
            self.port = int(self._place.getsockname()[1])
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, HOST, self.port, reuse_port=True)

    def down(self) -> None:
        """Nobody listens, and every connection is cut."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._open:
            writer.transport.abort()

    def stop(self) -> None:
        self.down()
        if self._place is not None:
            self._place.close()
            self._place = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with suppress(OSError, EOFError):
                while await self._handle(reader, writer):
                    pass
        except AssertionError as error:
            self.complaint(str(error))
        finally:
            writer.transport.abort()
            self._open.discard(writer)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether there may be more."""
        receipt = await self._read(reader)
        mood = self._rng.choice(_MOODS) if self.is_moody else None
        if mood is Mood.FORGET and receipt.type != "stream":
            mood = None
        if mood is not None:
            self._events[f"receipts {mood}"] += 1
        if mood is Mood.HANG:
            await asyncio.sleep(HANG_S)
        if mood in (None, Mood.TAKE_AND_CLOSE):
            self._events["receipts taken"] += 1
            self._take(receipt)
        if mood in (Mood.CLOSE, Mood.TAKE_AND_CLOSE, Mood.HANG):
            return False
        writer.write(ANSWER % (503 if mood is Mood.REFUSE else 200))
        return True

    async def _read(self, reader: asyncio.StreamReader) -> Receipt:
        """How a receipt is posted: digest srmp.md 1.2, 3.7"""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in map(_split, lines)}
        assert first.lower() == f"POST {ORDER_QUEUE} HTTP/1.1".lower(), head  # 1.1
        assert headers["content-type"] == "text/xml", head
        return parse_receipt(await reader.readexactly(int(headers["content-length"])))


def _split(line: str) -> tuple[str, str, str]:
    return line.partition(":")
