"""The listener: where it listens, and what it does to all of its connections."""

from __future__ import annotations

import asyncio

import pytest

from bridge.adapters.intake import Intake
from bridge.adapters.net import binary_server
from bridge.adapters.net.binary_server import BinaryServer
from bridge.adapters.telemetry import Telemetry
from bridge.core.identity import Ordinals
from bridge.model.errors import ConfigError
from bridge.protocol.binary.session import SessionSettings
from tests.adapters.net.memory_server import PLAIN, SOON_S, World, client, run, world
from tests.core.messages import LOCAL
from tests.outside.rawmsmq import Message, base, build, ec_request
from tests.outside.rawparse import Establish
from tests.support.waiting import until


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


def test_a_crowd_that_says_nothing_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of those that are not open yet goes; open sessions stay."""
    monkeypatch.setattr(binary_server, "most_connections", lambda: 3)

    async def test() -> None:
        async with (
            world() as made,
            client(made) as first,
            client(made, greet=False) as silent,
            client(made, greet=False) as patient,
            client(made) as late,
        ):
            assert await silent.end() == b""
            await patient.handshake()
            for sender in (first, patient, late):
                sender.writer.write(sender.messages(32))
                await sender.read()
            assert (made.closed("crowded"), made.refused("crowded")) == (1, 1)
            await until(lambda: made.sample("sessions") == 3)

    run(test())


def test_who_comes_when_all_are_at_work_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_server, "most_connections", lambda: 2)

    async def test() -> None:
        async with world() as made, client(made) as first, client(made) as other:
            async with client(made, greet=False) as late:
                assert await late.end() == b""
            assert made.closed("crowded") == 1
            await until(lambda: len(made.server.connections) == 2)
            await other.close()
            await until(lambda: len(made.server.connections) == 1)
            async with client(made) as later:
                for sender in (first, later):
                    sender.writer.write(sender.messages(32))
                    await sender.read()
            assert made.closed("crowded") == 1

    run(test())


def test_handshakes_have_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_server, "STRANGERS", 1)

    async def test() -> None:
        async with (
            world() as made,
            client(made),
            client(made),
            client(made, greet=False) as silent,
            client(made, greet=False),
        ):
            assert await silent.end() == b""
            await until(lambda: len(made.server.connections) == 3)
            assert made.closed("crowded") == 1

    run(test())


def test_more_come_at_once_than_are_accepted_at_once() -> None:
    async def test() -> None:
        async with world() as made:
            pairs = await asyncio.gather(
                *(asyncio.open_connection(made.host, made.port) for _ in range(200))
            )
            await until(lambda: len(made.server.connections) == 200)
            for _, writer in pairs:
                writer.close()
            await until(lambda: not made.server.connections)

    run(test())


def test_a_crowd_that_never_opens_is_gone_after_its_time() -> None:  # QB-10
    async def test() -> None:
        async with world(SessionSettings(init_timeout=0.5)) as made, client(made) as first:
            pairs = [await asyncio.open_connection(made.host, made.port) for _ in range(100)]
            for number, (_, writer) in enumerate(pairs):
                writer.write(ec_request(first.guid)[:number])
            assert [await reader.read() for reader, _ in pairs] == [b""] * 100
            await until(lambda: len(made.server.connections) == 1)
            assert made.closed("init-timeout") == 100
            first.writer.write(first.messages(32))
            await first.read()
            for _, writer in pairs:
                writer.close()

    run(test())


def test_large_packets_that_never_end_have_a_common_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever began first goes; who finishes takes nothing with it."""
    monkeypatch.setattr(binary_server, "HELD", 3 << 20)
    begun = base(0x400000, 0x03) + bytes((1 << 20) - 16)

    async def test() -> None:
        async with world() as made, client(made) as first, client(made) as second:
            for sender in (first, second):
                sender.writer.write(begun)
            await until(lambda: made.server._held == 2 << 20)
            async with client(made) as third, client(made) as small:
                small.writer.write(begun[:1000])
                third.writer.write(begun)
                await until(lambda: made.server._held == 3 << 20)
                assert made.closed("unfinished") == 0
                second.writer.write(bytes(100_000))
                assert await first.end() == b""
                await until(lambda: made.server._held == (2 << 20) + 100_000)
                assert made.closed("unfinished") == 1
            await until(lambda: made.server._held == (1 << 20) + 100_000)
            large = build(Message(source=second.guid, message_id=1, destination=PLAIN, body=begun))
            async with client(made, window=1) as whole:
                whole.writer.write(large)
                await whole.read()
            assert made.bodies == [begun]
            await second.close()
            await until(lambda: (made.server._held, made.server._holders) == (0, {}))

    run(test())
