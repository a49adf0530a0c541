"""Whether somebody is known to be gone: only when it was met before, and is refused now."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from bridge.adapters.net import lifeline as module
from bridge.adapters.net.lifeline import FOLLOWERS, Lifeline, Sight
from bridge.model.errors import ConfigError
from tests.support.waiting import until

HOST, NAME = "127.0.0.1", "a" * 32
SOON_S = 30.0
CHILD = f"""
import asyncio
from bridge.adapters.net.lifeline import Lifeline
async def main():
    lifeline = Lifeline("{HOST}", 0, "{NAME}")
    await lifeline.open()
    print(lifeline.port, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, SOON_S))


@asynccontextmanager
async def leading(port: int = 0, name: str = NAME) -> AsyncIterator[Lifeline]:
    lifeline = Lifeline(HOST, port, name)
    await lifeline.open()
    with closing(lifeline):
        yield lifeline


@asynccontextmanager
async def following(port: int) -> AsyncIterator[tuple[Sight, asyncio.Task[bool]]]:
    with closing(Sight(HOST, port, NAME)) as sight:
        assert await sight.meet()
        task = asyncio.create_task(sight.outlive())
        await asyncio.sleep(0)
        yield sight, task
        task.cancel()


def test_it_is_closed_until_we_lead() -> None:
    """A standby has no port open that nobody asked for, but its number is known."""

    async def test() -> None:
        with closing(Lifeline(HOST, 0, NAME)) as lifeline:
            with pytest.raises(ConnectionRefusedError):
                await Sight(HOST, lifeline.port, NAME).meet()
            await lifeline.open()
            with closing(Sight(HOST, lifeline.port, NAME)) as sight:
                assert await sight.meet()

    run(test())


def test_who_closes_it_has_ended() -> None:
    async def test() -> None:
        async with leading() as lifeline, following(lifeline.port) as (sight, ended):
            assert sight.is_open
            lifeline.close()
            assert await ended

    run(test())


def test_who_is_killed_has_ended() -> None:
    """The kernel closes what the process had, whatever the process would have done."""

    async def test(port: int, child: subprocess.Popen[bytes]) -> None:
        async with following(port) as (_, ended):
            child.send_signal(signal.SIGKILL)
            assert await ended

    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        run(test(int(child.stdout.readline()), child))


def test_a_connection_that_breaks_is_no_end() -> None:
    async def test() -> None:
        async with leading() as lifeline, following(lifeline.port) as (_, ended):
            [first] = await until(lambda: list(lifeline._followers))
            first.transport.abort()  # a reset on the way
            await until(lambda: lifeline._followers and first not in lifeline._followers)
            assert not ended.done()
            lifeline.close()
            assert await ended

    run(test())


def test_somebody_else_on_its_port_is_its_end() -> None:
    """A supervisor may start it again faster than we look."""

    async def test() -> None:
        async with leading() as lifeline, following(lifeline.port) as (sight, ended):
            port = lifeline.port
            async with leading(name="b" * 32) as other:
                sight._port = other.port  # the same port cannot be had so soon
                lifeline.close()
                assert await ended
            with closing(Sight(HOST, port, NAME)) as late, pytest.raises(ConnectionRefusedError):
                await late.meet()

    run(test())


def test_who_does_not_answer_is_not_known_to_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen, or too busy: then the lease decides."""
    monkeypatch.setattr(module, "MEET_S", 0.1)

    async def test() -> None:
        with socket.socket() as silent:
            silent.bind((HOST, 0))
            silent.listen()
            async with leading() as lifeline, following(lifeline.port) as (sight, ended):
                sight._port = silent.getsockname()[1]
                lifeline.close()
                assert not await ended
            with closing(sight), pytest.raises(TimeoutError):
                await sight.meet()

    run(test())


def test_who_hangs_up_again_and_again_is_not_known_to_be_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.0)

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def test() -> None:
        rude = await asyncio.start_server(hang_up, HOST, 0)
        async with rude, leading() as lifeline, following(lifeline.port) as (sight, ended):
            sight._port = rude.sockets[0].getsockname()[1]
            lifeline.close()
            assert not await ended

    run(test())


def test_strangers_are_bounded() -> None:
    """They are told a name, may say nothing, and the oldest goes first."""

    async def test() -> None:
        async with leading() as lifeline:
            streams = [
                await asyncio.open_connection(HOST, lifeline.port) for _ in range(FOLLOWERS + 1)
            ]
            for reader, _ in streams:
                assert await reader.readline() == NAME.encode() + b"\n"
            assert await streams[0][0].read() == b""
            await until(lambda: len(lifeline._followers) == FOLLOWERS)
            reader, writer = streams[1]
            writer.write(b"GET / HTTP/1.1\r\n\r\n" * 100_000)
            assert await _rest(reader) == b""
            await until(lambda: len(lifeline._followers) == FOLLOWERS - 1)
            for _, writer in streams:
                writer.close()

    run(test())


def test_a_burst_of_strangers_is_bounded() -> None:
    async def test() -> None:
        most = 0

        class Watched(dict[asyncio.StreamWriter, None]):
            def __setitem__(self, writer: asyncio.StreamWriter, value: None) -> None:
                nonlocal most
                super().__setitem__(writer, value)
                most = max(most, len(self))

        async with leading() as lifeline:
            lifeline._followers = Watched()
            lifeline._socket.listen(256)  # else most of them would try again seconds later
            streams = await asyncio.gather(
                *(asyncio.open_connection(HOST, lifeline.port) for _ in range(200))
            )
            for reader, _ in streams:
                assert await reader.readline() == NAME.encode() + b"\n"
            assert most == FOLLOWERS
            for _, writer in streams:
                writer.close()

    run(test())


def test_who_says_too_much_is_somebody_else() -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 10_000)
        writer.close()

    async def test() -> None:
        other = await asyncio.start_server(babble, HOST, 0)
        async with other, leading() as lifeline, following(lifeline.port) as (sight, ended):
            sight._port = other.sockets[0].getsockname()[1]
            lifeline.close()
            assert await ended
            assert not await sight.meet()

    run(test())


def test_a_host_that_is_none_is_nobody() -> None:
    async def test() -> None:
        assert not await Sight("x" * 64 + "\u00e9.example", 1, NAME).meet()

    run(test())


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def test_a_port_that_cannot_be_had_is_named() -> None:
    with socket.create_server((HOST, 0)) as other, pytest.raises(ConfigError) as refused:
        Lifeline(HOST, other.getsockname()[1], NAME)
    assert refused.value.where == "listen.lease"


def test_a_port_that_was_lost_meanwhile_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        with closing(Lifeline(HOST, 0, NAME)) as lifeline, socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((HOST, lifeline.port))
            other.listen()
            await lifeline.open()
        assert "no standby can see that we live" in caplog.text

    run(test())
