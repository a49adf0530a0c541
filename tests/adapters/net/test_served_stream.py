"""Who is at the other end, how much is read ahead, and who does not read."""

from __future__ import annotations

import math
import socket

import pytest

from bridge.adapters.net.http_server import Limits
from bridge.adapters.net.served_stream import AHEAD, _ip
from tests.adapters.net.http_world import BAD, OK, http_world, nobody_left, post, raw_client
from tests.adapters.net.memory_server import run
from tests.support.waiting import until

READ = 64 << 10


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (("10.0.0.7", 1234), "10.0.0.7"),
        (("::ffff:10.0.0.7", 1234, 0, 0), "10.0.0.7"),
        (("fe80::7%eth0", 1234, 0, 2), "fe80::7"),
        (("2001:db8:0:0::7", 1234, 0, 0), "2001:db8::7"),
        (None, ""),  # it is gone already
    ],
)
def test_an_address_is_plain(address: tuple[object, ...] | None, shown: str) -> None:
    assert _ip(address) == shown


def test_ipv6() -> None:
    async def test() -> None:
        async with http_world() as made:
            made.host = "::1"
            await made.listen()
            async with raw_client(made) as client:
                assert await client.ask(post()) == OK
            assert (made.requests[0].peer, made.requests[0].local) == ("::1", "::1")

    run(test())


def test_little_is_read_ahead() -> None:
    """While one is handled the next ones wait at the sender, not in our memory."""

    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            made.gate.clear()
            for _ in range(300):
                client.send(post(bytes(10_000)))
            await until(lambda: made.requests and not made.session._transport.is_reading())
            assert AHEAD < len(made.session.buffer) <= AHEAD + READ
            made.gate.set()
            assert [await client.answer() for _ in range(300)] == [OK] * 300
            assert made.bodies == [bytes(10_000)] * 300

    run(test())


def test_who_does_not_read_its_answers() -> None:
    async def test() -> None:
        limits = Limits(answer_s=0.2, linger_s=0.05)
        async with http_world(limits) as made, raw_client(made, narrow=True) as client:
            client.send(post())
            await until(lambda: made.requests)
            transport = made.session._transport
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
            transport.set_write_buffer_limits(high=2048)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.send(post() * 5000)
            await until(lambda: made.refused("http-slow-reader"))
            assert len(made.requests) < 5000
            await nobody_left(made)

    run(test())


def test_who_does_not_read_is_not_read() -> None:
    """Not even by TLS, which answers by itself."""

    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            assert await client.ask(post()) == OK
            session = made.session
            await until(lambda: session.idle)
            session.pause_writing()
            assert not session._transport.is_reading()
            session.resume_writing()
            assert await client.ask(post()) == OK

    run(test())


def test_who_reads_late_loses_nothing() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made, narrow=True) as client:
            client.send(post())
            await until(lambda: made.requests)
            transport = made.session._transport
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
            transport.set_write_buffer_limits(high=2048)
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.send(post() * 1000)
            await until(lambda: made.session.choked)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert [await client.answer() for _ in range(1001)] == [OK] * 1001

    run(test())


def test_a_timer_that_comes_too_early_goes_on() -> None:
    """That of the first head is still armed when the next wait is that of an idle connection."""

    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            assert await client.ask(post()) == OK
            session = made.session
            await until(lambda: session.idle and session._deadline < math.inf)
            assert session._timer is not None
            assert session._timer.when() < session._deadline
            session._timer.cancel()
            session._on_timer()
            assert session._timer.when() == session._deadline
            client.send(b"P")
            await until(lambda: not session.idle and session._deadline < math.inf)
            assert session._timer.when() == session._deadline  # it comes earlier now
            client.send(post()[1:])
            assert await client.answer() == OK
            assert await client.ask(post()) == OK
            session._timer.cancel()
            session._on_timer()
            assert made.server.connections == 1

    run(test())


def test_last_words_although_nobody_reads_on() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            client.send(b"rubbish\r\n\r\n" + bytes(1 << 20))
            assert await client.end() == BAD
            await client.close()
            await nobody_left(made)

    run(test())
