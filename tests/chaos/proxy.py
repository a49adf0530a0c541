"""A bad network between the senders and the bridge.

TCP never shows an application the same bytes twice, so a duplicate is made the way networks make
them for MSMQ: the acks (over HTTP: the answers) are swallowed and the connection is cut, and the
sender repeats on a new one what the bridge has already taken. Delays outlive the connection of the
sender: what it sent before it hung up may come to the bridge after its next session has begun.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from tests.outside.rawconnection import Address

READ_SIZE: Final = 65536
HANDSHAKE: Final = 572 + 32  # what a sender says before its first message
AHEAD: Final = 64  # chunks on their way in one direction


@dataclass(frozen=True, slots=True)
class Weather:
    """For every link, from now on."""

    delay_s: float = 0.0  # at most, each chunk for itself; the order stays
    split: bool = False  # segments of a few bytes


CALM: Final = Weather()


class Link:
    """One connection of a sender, and ours to the bridge for it."""

    def __init__(self, proxy: "Proxy", down: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._down = down
        self._up: asyncio.StreamWriter | None = None
        self._cut_next = False
        self._swallow = False
        self._cut_answer = False
        self._passed = 0

    async def run(self, reader: asyncio.StreamReader) -> None:
        address = self._proxy.place()
        if address is None:
            return
        answers, self._up = await asyncio.open_connection(*address)
        back = asyncio.create_task(self._pump(answers, self._down, upwards=False))
        try:
            await self._pump(reader, self._up, upwards=True)
        finally:
            back.cancel()
            with suppress(asyncio.CancelledError):
                await back

    def close(self) -> None:
        for writer in (self._up, self._down):
            if writer is not None:
                writer.transport.abort()

    def cut_mid_packet(self) -> None:
        """The next bytes of the sender come to the bridge in part; then there is nothing more."""
        self._cut_next = True

    def swallow(self) -> None:
        """From now on the sender hears nothing."""
        self._swallow = True

    def cut_at_answer(self) -> None:
        """The bridge's next word is not heard, and it is the last one."""
        self._cut_answer = True

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, upwards: bool
    ) -> None:
        """Reads on while chunks are on their way, as a network does."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(AHEAD)
        delivery = asyncio.create_task(self._deliver(chunks, writer, upwards=upwards))
        try:
            with suppress(OSError):
                while data := await reader.read(READ_SIZE):
                    await self._put(chunks, delivery, data)
            await self._put(chunks, delivery, b"")
            await asyncio.wait([delivery])
        finally:
            delivery.cancel()
            self.close()

    async def _put(
        self,
        chunks: asyncio.Queue[tuple[float, bytes]],
        delivery: asyncio.Task[None],
        data: bytes,
    ) -> None:
        """Unless there is nobody left to deliver to."""
        item = time.monotonic() + self._proxy.delay(), data
        put = asyncio.create_task(chunks.put(item))
        await asyncio.wait([put, delivery], return_when=asyncio.FIRST_COMPLETED)
        if not put.done():
            put.cancel()
            raise ConnectionResetError

    async def _deliver(
        self,
        chunks: asyncio.Queue[tuple[float, bytes]],
        writer: asyncio.StreamWriter,
        *,
        upwards: bool,
    ) -> None:
        with suppress(OSError):
            while True:
                due, data = await chunks.get()
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                if not data or (not upwards and self._cut_answer):
                    break
                if not upwards and self._swallow:
                    continue
                if not await self._write(writer, data, upwards=upwards):
                    break
        writer.close()

    async def _write(self, writer: asyncio.StreamWriter, data: bytes, *, upwards: bool) -> bool:
        """False: that was the last of it."""
        rng = self._proxy.rng
        is_message = self._passed >= self._proxy.handshake and len(data) > 1
        cut = upwards and self._cut_next and is_message
        if cut:
            data = data[: rng.randrange(1, len(data))]
        for piece in self._pieces(data):
            if writer.transport.is_closing():
                return False
            writer.write(piece)
            await writer.drain()
        self._passed += len(data) if upwards else 0
        return not cut

    def _pieces(self, data: bytes) -> list[bytes]:
        if not self._proxy.weather.split or len(data) < 2:
            return [data]
        rng = self._proxy.rng
        at = sorted({rng.randrange(1, len(data)) for _ in range(4)})
        return [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]


class Proxy:
    def __init__(
        self,
        place: Callable[[], Address | None],
        rng: random.Random,
        handshake: int = HANDSHAKE,
    ) -> None:
        """Of a connection's first `handshake` bytes nothing is cut."""
        self.place, self.rng, self.handshake = place, rng, handshake
        self.weather = CALM
        self.links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self.address: Address = ("127.0.0.1", 0)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._on_connect, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = str(host), int(port)

    async def _on_connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(self, writer)
        self.links.add(link)
        try:
            with suppress(OSError):
                await link.run(reader)
        finally:
            link.close()
            self.links.discard(link)

    def delay(self) -> float:
        return self.rng.uniform(0, self.weather.delay_s) if self.weather.delay_s else 0.0

    def some(self, share: float) -> list[Link]:
        return [link for link in list(self.links) if self.rng.random() < share]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self.links):
            link.close()
        if self._server is not None:
            await self._server.wait_closed()
