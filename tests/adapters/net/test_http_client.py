"""The client against a server that is a script of bytes: srmp.md 1.4, SR-49, SR-75."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.adapters.net.http_client import MAX_ANSWER, HttpConnection, HttpFault
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import client_context, server_context
from bridge.model.errors import WireError
from bridge.wire.srmp.head import request_headers
from tests.adapters.net.http_world import OK, http_world
from tests.adapters.net.memory_server import Behaviour, peer, run
from tests.support.waiting import until

HEADERS = {"Host": "machine1", "Content-Length": "4"}
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


def say(*answers: bytes, then: str = "wait") -> Behaviour:
    """One answer per request; then it waits for the next, closes or resets."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_request(reader)
            writer.write(answer)
        if then == "wait":
            await reader.read()
        elif then == "reset":
            await read_request(reader)
            writer.transport.abort()

    return behave


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    return head + await reader.readexactly(length)


@asynccontextmanager
async def client(port: int, **settings: float) -> AsyncIterator[HttpConnection]:
    made = HttpConnection(("127.0.0.1", port), **settings)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.close()


async def ask(connection: HttpConnection, body: bytes = b"body") -> int:
    return await connection.post("/q", HEADERS | {"Content-Length": str(len(body))}, body)


def statuses(*plan: Behaviour, times: int = 1) -> list[int]:
    """What a client hears on one connection after the other."""
    heard: list[int] = []

    async def test() -> None:
        async with peer(*plan) as port, client(port) as connection:
            for _ in range(times):
                heard.append(await ask(connection))

    run(test())
    return heard


def test_the_bytes_of_windows() -> None:  # srmp.md 1.2: order and spelling, nothing added
    requests: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(OK)
        await reader.read()

    async def test() -> None:
        async with peer(note) as port, client(port) as connection:
            headers = request_headers("machine1:8080", "text/xml", 6)
            target = "/msmq/private$/order_queue$?SenderStream=x"
            assert await connection.post(target, headers, b"<soap>") == 200

    run(test())
    assert requests == [
        b"POST /msmq/private$/order_queue$?SenderStream=x HTTP/1.1\r\n"
        b"Host: machine1:8080\r\n"
        b"Content-Type: text/xml\r\n"
        b"Content-Length: 6\r\n"
        b'SOAPAction: "MSMQMessage"\r\n'
        b"Proxy-Accept: NonInteractiveClient\r\n"
        b"\r\n<soap>"
    ]


def test_the_connection_is_kept() -> None:
    assert statuses(say(OK, BAD, OK), say(), times=3) == [200, 400, 200]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nX: y\r\n\r\n" + OK, 200),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello", 202),
        (
            b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n3;x=y\r\n...\r\n0\r\nT: t\r\n\r\n",
            500,
        ),
        (b"HTTP/1.1 302 Found\r\nLocation: http://else/\r\nContent-Length: 0\r\n\r\n", 302),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200),
        (
            b"HTTP/1.1 401 No\r\nContent-Type: text/html;\r\n folded\r\nContent-Length: 0\r\n\r\n",
            401,
        ),
    ],
    ids=["1xx", "body", "chunked", "redirect", "204", "no phrase", "folded"],
)
def test_answers(answer: bytes, status: int) -> None:
    """And the next one is read from where this one ends; a redirect is not followed (SR-49)."""
    assert statuses(say(answer, BAD), times=2) == [status, 400]


def test_an_answer_in_pieces() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for number in range(len(OK)):
            writer.write(OK[number : number + 1])
            await asyncio.sleep(0)
        await reader.read()

    assert statuses(drip) == [200]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Busy\r\n\r\nno length",
        b"HTTP/1.0 503 Busy\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 503 Busy\r\nContent-Length: 3\r\n\r\nabc",
    ],
    ids=["no length", "old", "close", "old with length"],
)
def test_after_such_an_answer_it_connects_anew(answer: bytes) -> None:
    assert statuses(say(answer, then="close"), say(OK), times=2) == [503, 200]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
        b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_a_status_counts_although_the_rest_is_lost(answer: bytes) -> None:
    assert statuses(say(answer, then="close"), say(OK), times=2) == [400, 200]


@pytest.mark.parametrize("framing", ["length", "chunks", "none"])
def test_a_huge_answer_is_not_read(framing: str) -> None:
    head = {
        "length": b"Content-Length: 1000000000\r\n\r\n",
        "chunks": b"Transfer-Encoding: chunked\r\n\r\n3b9aca00\r\n",
        "none": b"\r\n",
    }[framing]
    written = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            writer.write(bytes(MAX_ANSWER))
            await writer.drain()
            written += MAX_ANSWER

    assert statuses(flood, say(BAD), times=2) == [200, 400]
    assert written < 100_000_000


@pytest.mark.parametrize(
    "answer",
    [
        b"what?\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x50",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ],
    ids=["text", "tls", "length", "upgrade", "endless", "half"],
)
def test_what_is_no_answer(answer: bytes) -> None:
    async def test() -> None:
        async with peer(say(answer, then="close"), say(OK)) as port, client(port) as connection:
            with pytest.raises(HttpFault) as caught:
                await ask(connection)
            assert len(str(caught.value)) < 300
            assert await ask(connection) == 200

    run(test())


# -- connections that go --------------------------------------------------------------------


def test_who_closes_while_idle_is_noticed() -> None:
    async def test() -> None:
        gone = asyncio.Event()

        async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            writer.write(OK)
            writer.write_eof()
            await reader.read()  # our client has closed too
            gone.set()

        async with peer(once, say(BAD)) as port, client(port) as connection:
            assert await ask(connection) == 200
            await gone.wait()
            assert await ask(connection) == 400

    run(test())


def test_who_closes_just_then_is_asked_again() -> None:
    """One repeat, on a fresh connection; SRMP messages have ids (SR-21)."""
    assert statuses(say(OK, then="reset"), say(BAD), times=2) == [200, 400]


def test_only_once() -> None:
    async def test() -> None:
        plan = say(OK, then="reset"), say(then="reset"), say(BAD)
        async with peer(*plan) as port, client(port) as connection:
            assert await ask(connection) == 200
            with pytest.raises(ConnectionError):
                await ask(connection)
            assert await ask(connection) == 400

    run(test())


def test_a_fresh_one_that_closes_is_not_asked_again() -> None:
    async def test() -> None:
        async with peer(say(then="reset"), say(OK)) as port, client(port) as connection:
            with pytest.raises(ConnectionError):
                await ask(connection)
            assert await ask(connection) == 200

    run(test())


@pytest.mark.parametrize("end", ["close", "reset"])
def test_half_an_answer_on_a_kept_one_is_not_asked_again(end: str) -> None:
    async def test() -> None:
        heard = asyncio.Event()

        async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            writer.write(OK)
            await read_request(reader)
            writer.write(b"HTTP/1.1 2")
            await heard.wait()
            if end == "reset":
                plug = writer.get_extra_info("socket")
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        async with peer(half, say(OK)) as port, client(port) as connection:
            assert await ask(connection) == 200
            line = connection._line
            assert line is not None
            second = asyncio.create_task(ask(connection))
            await until(lambda: line.heard and not line.status)
            heard.set()
            with pytest.raises(HttpFault if end == "close" else ConnectionResetError):
                await second

    run(test())


@pytest.mark.parametrize("extra", [b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n", b"?"])
def test_what_nobody_asked_for_is_no_answer(extra: bytes) -> None:
    assert statuses(say(OK + extra), say(BAD), times=2) == [200, 400]


def test_what_comes_later_unasked_is_no_answer() -> None:
    async def test() -> None:
        gone = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            writer.write(OK)
            await asked.wait()
            writer.write(OK)
            await asyncio.gather(reader.read(), return_exceptions=True)
            gone.set()

        asked = asyncio.Event()
        async with peer(talk, say(BAD)) as port, client(port) as connection:
            assert await ask(connection) == 200
            asked.set()
            await gone.wait()
            assert await ask(connection) == 400

    run(test())


def test_nobody_there() -> None:
    async def test() -> None:
        with socket.socket() as plug:
            plug.bind(("127.0.0.1", 0))
            async with client(plug.getsockname()[1]) as connection:
                with pytest.raises(ConnectionRefusedError):
                    await ask(connection)

    run(test())


def test_an_early_answer_to_a_large_request() -> None:
    """The rest of the request is still on its way: that connection is not used again."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(BAD)
        await asyncio.Event().wait()

    async def test() -> None:
        async with peer(refuse, say(OK)) as port, client(port) as connection:
            assert await ask(connection, bytes(20 << 20)) == 400
            assert await ask(connection) == 200

    run(test())


# -- time, cancelling, closing --------------------------------------------------------------


def test_no_answer_in_time() -> None:
    async def test() -> None:
        async with peer(say(), say(OK)) as port, client(port, answer_s=0.05) as connection:
            with pytest.raises(TimeoutError, match=r"no answer within 0\.05"):
                await ask(connection)
            connection._answer_s = 20.0
            assert await ask(connection) == 200

    run(test())


def test_a_status_in_time_and_a_body_that_is_late() -> None:
    async def test() -> None:
        answer = b"HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\nhalf"
        async with peer(say(answer), say(OK)) as port, client(port, answer_s=1.0) as connection:
            assert await ask(connection) == 400
            connection._answer_s = 20.0
            assert await ask(connection) == 200

    run(test())


def test_no_connection_in_time() -> None:
    async def test() -> None:
        with socket.socket() as plug:  # nobody accepts, and there is room for one
            plug.bind(("127.0.0.1", 0))
            plug.listen(0)
            address = plug.getsockname()
            waiting = [socket.socket() for _ in range(4)]
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(address)
            async with client(address[1], connect_s=0.05) as connection:
                with pytest.raises(TimeoutError, match="no connection within"):
                    await ask(connection)
            for each in waiting:
                each.close()

    run(test())


def test_cancelled_while_it_waits() -> None:
    """The answer that comes after all is not taken for that of the next request."""

    async def test() -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            asked.set()
            await go.wait()
            writer.write(BAD)

        async with peer(late, say(OK)) as port, client(port) as connection:
            first = asyncio.create_task(ask(connection))
            await asked.wait()
            first.cancel()
            assert isinstance(
                (await asyncio.gather(first, return_exceptions=True))[0], BaseException
            )
            go.set()
            assert await ask(connection) == 200

    run(test())
    gc.collect()


def test_one_after_the_other() -> None:
    async def test() -> None:
        async with peer(say(OK, BAD, OK)) as port, client(port) as connection:
            heard = await asyncio.gather(*(ask(connection) for _ in range(3)))
            assert heard == [200, 400, 200]

    run(test())


def test_closed_while_it_waits() -> None:
    async def test() -> None:
        asked = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            writer.write(OK)
            await read_request(reader)
            asked.set()
            await reader.read()

        async with peer(silent, say(BAD)) as port, client(port) as connection:
            assert await ask(connection) == 200
            second = asyncio.create_task(ask(connection))
            await asked.wait()
            connection.close()
            with pytest.raises(ConnectionAbortedError):
                await second
            assert await ask(connection) == 400  # it connects again
            connection.close()
            connection.close()

    run(test())


def test_closed_while_it_connects() -> None:
    async def test() -> None:
        async with peer(say(OK)) as port, client(port) as connection:
            first = asyncio.create_task(ask(connection))
            await asyncio.sleep(0)
            connection.close()
            with pytest.raises(ConnectionAbortedError):
                await first

    run(test())


def test_no_line_can_be_smuggled() -> None:
    async def test() -> None:
        async with client(1) as connection:
            with pytest.raises(WireError):
                await connection.post("/q HTTP/1.1\r\nX: y", HEADERS, b"")
            with pytest.raises(WireError):
                await connection.post("/q", {"Host": "a\r\nb: c"}, b"")

    run(test())


# -- against our own server -----------------------------------------------------------------


def test_over_tls(tmp_path: Path) -> None:
    pair = self_signed(["machine2", "127.0.0.1"], tmp_path)
    large = bytes(range(256)) * 8192

    async def test() -> None:
        trusting = client_context(pair[0])
        async with http_world(tls=server_context(*pair)) as made:
            for name in ("machine2", ""):
                connection = HttpConnection((made.host, made.port), tls=trusting, server_name=name)
                assert [await ask(connection, large), await ask(connection)] == [200, 200]
                connection.close()
            assert made.bodies == [large, b"body"] * 2
            wrong = HttpConnection((made.host, made.port), tls=trusting, server_name="else")
            with pytest.raises(OSError, match="certificate verify failed"):
                await ask(wrong)
            strict = HttpConnection((made.host, made.port), tls=client_context(None))
            with pytest.raises(OSError, match="certificate verify failed"):
                await ask(strict)

    run(test())
