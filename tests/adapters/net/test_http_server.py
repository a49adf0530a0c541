"""The listener: where it listens, who may come, what all may hold, how it ends."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bridge.adapters.net.crowd import Hall
from bridge.adapters.net.http_server import HttpServer, Limits
from bridge.adapters.net.self_signed import self_signed
from bridge.adapters.net.tls import client_context, server_context
from bridge.adapters.telemetry import Telemetry
from bridge.model.errors import ConfigError
from tests.adapters.net.http_world import (
    BUSY,
    OK,
    OK_BYE,
    HttpWorld,
    chunked,
    http_world,
    nobody_left,
    post,
    raw_client,
    still_serves,
)
from tests.adapters.net.memory_server import run
from tests.support.waiting import until


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(["localhost"], tmp_path_factory.mktemp("tls"))


def test_plain_and_tls_at_once(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        trusting = client_context(pair[0])
        async with http_world() as made, raw_client(made) as plain:
            await made.listen(server_context(*pair))
            async with raw_client(made, trusting) as secret:
                assert await plain.ask(post(b"plain")) == OK
                assert await secret.ask(post(b"secret")) == OK
                assert made.server.connections == 2
                assert [(r.body, r.secure) for r in made.requests] == [
                    (b"plain", False),
                    (b"secret", True),
                ]

    run(test())


@pytest.mark.parametrize("where", ["listen.srmp", "listen.srmp_tls"])
def test_a_busy_port_is_one_line(where: str, pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        async with http_world() as made:
            tls = server_context(*pair) if where == "listen.srmp_tls" else None
            second = HttpServer(made.handle, Telemetry())
            with pytest.raises(ConfigError, match="cannot listen on") as caught:
                await second.start(made.host, made.port, tls)
            assert caught.value.where == where

    run(test())


def test_who_stops_listening_keeps_its_connections() -> None:
    async def test() -> None:
        async with http_world() as made, raw_client(made) as client:
            assert await client.ask(post()) == OK
            made.server.stop_listening()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(made.host, made.port)
            assert await client.ask(post()) == OK

    run(test())


def test_one_that_never_listened() -> None:
    async def test() -> None:
        server = HttpServer(HttpWorld().handle, Telemetry())
        server.stop_listening()
        await server.hang_up()
        assert server.connections == 0

    run(test())


# -- TLS ------------------------------------------------------------------------------------


def test_everything_over_tls(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        trusting = client_context(pair[0])
        async with http_world(tls=server_context(*pair)) as made:
            async with raw_client(made, trusting) as client:
                large = bytes(range(256)) * 4096
                client.send(post(b"a") + chunked(b"b", b"c") + post(large))
                assert [await client.answer() for _ in range(3)] == [OK] * 3
                assert made.bodies == [b"a", b"bc", large]
                client.send(post(b"last", "Connection: close"))
                assert await client.end() == OK_BYE
            async with raw_client(made, trusting) as client:
                client.send(b"rubbish\r\n\r\n" + bytes(1 << 20))
                assert (await client.end()).startswith(b"HTTP/1.1 400 ")
            await nobody_left(made)
            await still_serves(made, trusting)

    run(test())


def test_who_speaks_no_tls(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        async with http_world(tls=server_context(*pair)) as made:
            async with raw_client(made) as client:
                client.send(post())
                await client.end()  # perhaps an alert
            await until(lambda: made.refused("http-tls") == 1)
            assert made.requests == []
            await still_serves(made, client_context(pair[0]))

    run(test())


def test_a_handshake_has_the_time_of_a_head(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        async with http_world(Limits(head_s=0.05), server_context(*pair)) as made:
            async with raw_client(made) as client:
                client.send(b"\x16\x03\x01\x02\x00")
                assert await client.end() == b""
            assert made.refused("http-silent") == 1

    run(test())


def test_a_silent_one_counts_before_its_handshake(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        async with http_world(tls=server_context(*pair)) as made, raw_client(made):
            await until(lambda: made.server.connections == 1)

    run(test())


def test_rubbish_within_tls_while_a_request_is_handled(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        async with (
            http_world(tls=server_context(*pair)) as made,
            raw_client(made, client_context(pair[0])) as client,
        ):
            made.gate.clear()
            client.send(post(b"first"))
            await until(lambda: made.requests)
            beneath = client.writer.transport._ssl_protocol._transport  # type: ignore[attr-defined]
            beneath.write(bytes(100))
            await until(lambda: made.session._end is not None)
            made.gate.set()
            await nobody_left(made)
            assert (made.refused("http-tls"), made.refused("http-fault")) == (1, 0)

    run(test())


# -- room -----------------------------------------------------------------------------------


def test_who_waits_longest_makes_place() -> None:
    async def test() -> None:
        async with (
            http_world(Limits(connections=2)) as made,
            raw_client(made) as first,
            raw_client(made) as second,
        ):
            assert await first.ask(post(b"1")) == OK
            assert await second.ask(post(b"2")) == OK
            assert await first.ask(post(b"3")) == OK
            async with raw_client(made) as third:
                assert await third.ask(post(b"4")) == OK
                assert await second.end() == b""
                assert await first.ask(post(b"5")) == OK
            assert made.refused("http-crowded") == 1

    run(test())


@pytest.mark.parametrize("limits", [Limits(connections=1), Limits(per_peer=1)])
def test_who_comes_when_all_are_at_work_is_turned_away(limits: Limits) -> None:
    async def test() -> None:
        async with http_world(limits) as made, raw_client(made) as client:
            made.gate.clear()
            client.send(post(b"at work"))
            await until(lambda: made.requests)
            async with raw_client(made) as late:
                assert await late.end() == BUSY
            assert made.refused("http-crowded") == 1
            made.gate.set()
            assert await client.answer() == OK
            await still_serves(made)  # the first one is idle now

    run(test())


def test_who_is_turned_away_from_tls_hears_nothing(pair: tuple[Path, Path]) -> None:
    async def test() -> None:
        async with http_world(Limits(connections=0), server_context(*pair)) as made:
            async with raw_client(made) as late:
                assert await late.end() == b""
            assert made.refused("http-crowded") == 1

    run(test())


def test_a_peer_has_its_share() -> None:
    """Its own idle connections make place, not those of others."""

    async def test() -> None:
        async with http_world(Limits(per_peer=2)) as made, AsyncExitStack() as stack:
            other, first, second = [
                await stack.enter_async_context(raw_client(made, source=source))
                for source in ("127.0.0.9", "127.0.0.1", "127.0.0.1")
            ]
            for each in (other, first, second, first):
                assert await each.ask(post()) == OK
            third = await stack.enter_async_context(raw_client(made))
            assert await second.end() == b""
            assert [await each.ask(post()) for each in (other, first, third)] == [OK] * 3
            peers = [request.peer for request in made.requests[-3:]]
            assert peers == ["127.0.0.9", "127.0.0.1", "127.0.0.1"]
            assert made.refused("http-crowded") == 1

    run(test())


def test_descriptors_are_left_for_others() -> None:
    async def test() -> None:
        async with http_world(hall=Hall(lambda: 1)) as made, raw_client(made) as client:
            made.gate.clear()
            client.send(post())
            await until(lambda: made.requests)
            async with raw_client(made) as late:
                assert await late.end() == BUSY
            made.gate.set()
            assert await client.answer() == OK

    run(test())


def test_bodies_that_never_end_have_a_common_limit() -> None:
    """Whoever began first goes; who finishes takes nothing with it."""

    async def test() -> None:
        async with (
            http_world(Limits(bodies=3000)) as made,
            raw_client(made) as first,
            raw_client(made) as second,
            raw_client(made) as third,
        ):
            first.send(post(bytes(1000), length=2000))
            await until(lambda: made.server._held == 1000)
            second.send(chunked(bytes(1000))[:-5])
            await until(lambda: made.server._held == 2000)
            third.send(post(bytes(1001), length=2000))
            assert await first.end() == BUSY
            await until(lambda: made.server._held == 2001)
            assert made.refused("http-unfinished") == 1
            assert await third.ask(bytes(999)) == OK
            assert await second.ask(b"0\r\n\r\n") == OK
            assert sorted(map(len, made.bodies)) == [1000, 2000]
            assert made.server._held == 0

    run(test())


def test_bodies_that_are_handled_count_too() -> None:
    async def test() -> None:
        async with (
            http_world(Limits(bodies=1000)) as made,
            raw_client(made) as first,
            raw_client(made) as second,
            raw_client(made) as third,
        ):
            made.gate.clear()
            first.send(post(bytes(900)))
            await until(lambda: made.requests)
            second.send(post(bytes(101)))
            assert await second.end() == BUSY
            third.send(post(bytes(101), length=200))
            assert await third.end() == BUSY
            assert made.refused("http-unfinished") == 2
            made.gate.set()
            assert await first.answer() == OK
            assert made.bodies == [bytes(900)]
            await still_serves(made)

    run(test())


def test_more_come_at_once_than_are_accepted_at_once() -> None:
    async def test() -> None:
        async with http_world() as made:
            pairs = await asyncio.gather(
                *(asyncio.open_connection(made.host, made.port) for _ in range(200))
            )
            await until(lambda: made.server.connections == 200)
            for _, writer in pairs:
                writer.close()
            await nobody_left(made)

    run(test())


# -- the end --------------------------------------------------------------------------------


def test_answers_that_are_being_made_go_out() -> None:
    async def test() -> None:
        async with (
            http_world() as made,
            raw_client(made) as busy,
            raw_client(made) as idle,
            raw_client(made) as halfway,
            raw_client(made) as silent,
            raw_client(made) as refused,
        ):
            assert await idle.ask(post()) == OK
            assert (await refused.ask(b"rubbish\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
            made.gate.clear()
            busy.send(post(b"busy") + post(b"never"))
            halfway.send(post(b"half", length=10))
            await until(lambda: len(made.requests) == 2 and made.server._held == 8)
            ended = asyncio.create_task(made.server.hang_up())
            assert [await each.end() for each in (idle, halfway, silent)] == [b""] * 3
            assert not ended.done()
            async with raw_client(made) as late:
                assert await late.end() == BUSY
            made.gate.set()
            assert await busy.end() == OK_BYE
            await ended
            assert made.server.connections == 0
            assert made.bodies[1:] == [b"busy"]

    run(test())


def test_who_is_not_ready_in_time_is_cut() -> None:
    async def test() -> None:
        async with http_world(Limits(hang_up_s=0.05)) as made, raw_client(made) as busy:
            made.gate.clear()
            busy.send(post(b"stuck"))
            await until(lambda: made.requests)
            await made.server.hang_up()
            assert made.server.connections == 0
            assert await busy.end() == b""

    run(test())
