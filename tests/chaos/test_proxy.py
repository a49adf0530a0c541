"""The bad network does what it says, so that the faults of a run are those of its schedule."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from tests.chaos.proxy import HANDSHAKE, Proxy, Weather
from tests.support.waiting import until

Body = Callable[["Ends"], Awaitable[None]]


class Ends:
    """A peer on each side of the proxy; the far one keeps what it gets and answers on demand."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.ended = asyncio.Event()
        self.far: asyncio.StreamWriter | None = None
        self.proxy = Proxy(lambda: None, random.Random(1))
        self.reader: asyncio.StreamReader
        self.near: asyncio.StreamWriter

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.far = writer
        try:
            while data := await reader.read(65536):
                self.got += data
        except OSError:
            pass
        finally:
            self.ended.set()
            writer.close()

    async def shake_hands(self) -> None:
        self.near.write(bytes(HANDSHAKE))
        await until(lambda: len(self.got) >= HANDSHAKE)
        self.got.clear()


@asynccontextmanager
async def ends() -> AsyncIterator[Ends]:
    pair = Ends()
    server = await asyncio.start_server(pair.accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    pair.proxy.place = lambda: (host, port)
    await pair.proxy.start()
    pair.reader, pair.near = await asyncio.open_connection(*pair.proxy.address)
    try:
        yield pair
    finally:
        pair.near.transport.abort()
        await pair.proxy.stop()
        server.close()
        await server.wait_closed()


def play(body: Body) -> None:
    async def main() -> None:
        async with ends() as pair, asyncio.timeout(30):
            await body(pair)

    asyncio.run(main())


def test_bytes_pass_in_both_directions_whatever_the_weather() -> None:
    async def body(pair: Ends) -> None:
        pair.proxy.weather = Weather(delay_s=0.01, split=True)
        sent = random.Random(2).randbytes(300_000)
        pair.near.write(sent)
        await until(lambda: len(pair.got) == len(sent))
        assert bytes(pair.got) == sent
        assert pair.far is not None
        pair.far.write(sent[:5000])
        assert await pair.reader.readexactly(5000) == sent[:5000]

    play(body)


def test_a_cut_leaves_half_a_packet() -> None:
    async def body(pair: Ends) -> None:
        await pair.shake_hands()
        for link in pair.proxy.some(1.0):
            link.cut_mid_packet()
        pair.near.write(b"x" * 1000)
        await pair.ended.wait()
        assert 1 <= len(pair.got) < 1000
        assert await pair.reader.read() == b""

    play(body)


def test_no_handshake_is_cut() -> None:
    async def body(pair: Ends) -> None:
        pair.near.write(b"a" * (HANDSHAKE // 2))
        await until(lambda: pair.got)
        for link in pair.proxy.some(1.0):
            link.cut_mid_packet()
        pair.near.write(b"b" * (HANDSHAKE // 2))
        await until(lambda: len(pair.got) == HANDSHAKE)

    play(body)


def test_swallowed_acks_are_never_heard() -> None:
    async def body(pair: Ends) -> None:
        await pair.shake_hands()
        links = pair.proxy.some(1.0)
        for link in links:
            link.swallow()
        assert pair.far is not None
        pair.far.write(b"ack")
        pair.near.write(b"more")
        await until(lambda: pair.got == b"more")
        for link in links:
            link.close()
        with suppress(ConnectionResetError):
            assert await pair.reader.read() == b""

    play(body)


def test_an_answer_is_lost_after_its_request_has_arrived() -> None:
    async def body(pair: Ends) -> None:
        for link in pair.proxy.some(1.0):
            link.cut_at_answer()
        pair.near.write(b"POST")
        await until(lambda: pair.got == b"POST")
        assert pair.far is not None
        pair.far.write(b"HTTP/1.1 200 OK")
        with suppress(ConnectionResetError):
            assert await pair.reader.read() == b""
        await pair.ended.wait()

    play(body)


def test_without_a_handshake_the_first_bytes_can_be_cut() -> None:
    async def body(pair: Ends) -> None:
        pair.proxy.handshake = 0
        pair.near.write(b"a")
        await until(lambda: pair.got == b"a")
        for link in pair.proxy.some(1.0):
            link.cut_mid_packet()
        pair.near.write(b"b" * 1000)
        await pair.ended.wait()
        assert 2 <= len(pair.got) < 1001

    play(body)


def test_what_is_under_way_arrives_after_its_sender_has_gone() -> None:
    async def body(pair: Ends) -> None:
        await pair.shake_hands()
        pair.proxy.weather = Weather(delay_s=0.3)
        pair.near.write(b"late")
        pair.near.write_eof()
        await pair.ended.wait()
        assert pair.got == b"late"

    play(body)
