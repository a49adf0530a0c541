"""The listener: where it listens, and what it does to all of its connections."""

from __future__ import annotations

import asyncio

import pytest

from bridge.adapters.intake import Intake
from bridge.adapters.net.binary_server import BinaryServer
from bridge.adapters.telemetry import Telemetry
from bridge.core.identity import Ordinals
from bridge.model.errors import ConfigError
from tests.adapters.net.memory_server import SOON_S, World, client, run, world
from tests.core.messages import LOCAL
from tests.outside.rawmsmq import ec_request
from tests.outside.rawparse import Establish


def second(made: World) -> BinaryServer:
    intake: Intake = made.intake
    return BinaryServer(LOCAL, Ordinals(None, lambda _: None), intake, Telemetry())


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1:"), ("::1", "[::1]:")])
def test_it_says_where_it_listens(host: str, shown: str) -> None:
    async def test() -> None:
        async with world(listen=False) as made:
            address = await made.server.start(host, 0)
            assert address.startswith(shown)
            port = int(address.removeprefix(shown))
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            await writer.wait_closed()

    run(test())


def test_a_busy_port_is_one_line() -> None:
    async def test() -> None:
        async with world() as made:
            with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:") as caught:
                await second(made).start("127.0.0.1", made.port)
            assert caught.value.where == "listen.binary"
            assert "in use" in str(caught.value)
            assert len(str(caught.value).splitlines()) == 1

    run(test())


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_one_line(host: str) -> None:
    async def test() -> None:
        async with world() as made:
            with pytest.raises(ConfigError, match=f"cannot listen on {host}:") as caught:
                await second(made).start(host, 0)
            assert len(str(caught.value).splitlines()) == 1

    run(test())


def test_it_answers_with_our_guid() -> None:  # QB-13
    async def test() -> None:
        async with world() as made, client(made, greet=False) as sender:
            sender.writer.write(ec_request(sender.guid))
            answer = await sender.read()
            assert isinstance(answer, Establish)
            assert (answer.server.bytes_le, answer.refused) == (bytes(LOCAL), False)

    run(test())


def test_who_stops_listening_keeps_its_sessions() -> None:
    async def test() -> None:
        async with world() as made, client(made, window=1) as sender:
            made.server.stop_listening()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(made.host, made.port)
            sender.writer.write(sender.message())
            await sender.read()
            assert made.bodies == [b"1"]

    run(test())


def test_it_hangs_up_on_all() -> None:
    async def test() -> None:
        async with (
            world() as made,
            client(made) as first,
            client(made) as other,
            client(made, greet=False) as stranger,
        ):
            made.server.hang_up()
            assert [await one.end() for one in (first, other, stranger)] == [b"", b"", b""]
            assert made.closed("shutdown") == 3

    run(test())


def test_a_jam_reaches_all() -> None:
    async def test() -> None:
        async with world() as made, client(made) as first, client(made) as other:
            made.intake.jammed = True
            made.server.jam(True)
            assert [c._transport.is_reading() for c in made.server.connections] == [False, False]
            made.intake.jammed = False
            made.server.jam(False)
            assert [c._transport.is_reading() for c in made.server.connections] == [True, True]
            for sender in (first, other):
                sender.writer.write(sender.messages(32))
                await asyncio.wait_for(sender.read(), SOON_S)

    run(test())


def test_one_that_never_listened() -> None:
    async def test() -> None:
        async with world(listen=False) as made:
            made.server.stop_listening()
            made.server.hang_up()
            made.server.jam(True)

    run(test())
