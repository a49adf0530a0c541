"""One session on one real socket: back-pressure, timers, counters, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from uuid import uuid4

import pytest

from bridge.adapters import intake
from bridge.adapters.net import connection as module
from bridge.protocol.binary.session import SessionSettings
from bridge.protocol.commands import Send
from tests.adapters.net.memory_server import Client, World, client, run, world
from tests.outside.rawmsmq import SessionHeader, ec_request
from tests.outside.rawparse import SessionAck
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "RETRY_S", (0.01,))


def test_from_the_first_byte_to_the_record_and_back() -> None:
    async def test() -> None:
        async with world() as made, client(made) as sender:
            data = sender.messages(32)  # half a window: acknowledged at once (QB-45)
            sender.writer.write(data)
            answer = await sender.read()
            assert isinstance(answer, SessionAck)
            assert answer.session == SessionHeader(ack=32, recoverable_ack=1, flags=0xFFFFFFFF)
            assert made.bodies == [b"%d" % n for n in range(1, 33)]
            assert made.sample("sessions") == 1
            assert made.sample("bytes_received_total") == 572 + 32 + len(data)
            assert made.connection.session.peer == "127.0.0.1"
            assert made.sample("ack_seconds_count", transport="binary") == 1  # a read, not 32
            assert 0 < made.sample("ack_seconds_sum", transport="binary") < 20
            port = sender.writer.get_extra_info("sockname")[1]
            assert made.connection.name == f"127.0.0.1:{port}"

    run(test())


def test_bytes_one_by_one() -> None:  # a packet may span many segments
    async def test() -> None:
        async with world() as made, client(made, window=1) as sender:
            for byte in sender.message():
                sender.writer.write(bytes([byte]))
                await sender.writer.drain()
            assert isinstance(await sender.read(), SessionAck)
            assert made.bodies == [b"1"]

    run(test())


def test_no_ack_before_the_commit() -> None:  # design D1
    async def test() -> None:
        async with world() as made, client(made, window=1) as sender:
            made.sink.gate.clear()
            sender.writer.write(sender.message())
            await until(lambda: made.intake.pending)
            answer = asyncio.create_task(sender.read())
            await asyncio.wait([answer], timeout=0.7)  # longer than the ack timer (QB-42)
            assert not answer.done()
            assert made.sample("ack_seconds_count", transport="binary") == 0
            made.sink.gate.set()
            assert isinstance(await answer, SessionAck)
            assert made.sample("ack_seconds_count", transport="binary") == 1
            assert made.sample("ack_seconds_sum", transport="binary") > 0.7

    run(test())


def test_a_verdict_for_a_session_that_is_gone() -> None:
    async def test() -> None:
        async with world() as made:
            made.sink.gate.clear()
            async with client(made) as sender:
                sender.writer.write(sender.message())
                await until(lambda: made.intake.pending)
            await until(lambda: not made.server.connections)
            made.sink.gate.set()
            await until(lambda: made.bodies == [b"1"])
            assert made.closed("peer-closed") == 1

    run(test())


# -- back-pressure ----------------------------------------------------------------------------


async def stall(made: World, sender: Client) -> int:
    """The peer sends on and on but reads nothing; how many until it was read no more."""
    transport = made.connection._transport
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    transport.set_write_buffer_limits(high=1000)
    sender.reader._transport.pause_reading()  # type: ignore[attr-defined]
    sent, stuck = 0, 0
    while stuck < 60:  # longer than the kernel takes to try again
        stuck = 0 if transport.is_reading() else stuck + 1
        if not stuck:
            sender.writer.write(sender.messages(200, recoverable=False))
            sent += 200
        await asyncio.sleep(0.01)
    return sent


def test_a_slow_peer_is_read_no_more_until_it_reads() -> None:
    async def test() -> None:
        async with world() as made, client(made, window=1, narrow=True) as sender:
            sent = await stall(made, sender)
            received = made.connection.session.received
            stopped_at = received.received
            sender.writer.write(sender.messages(50, recoverable=False))
            await asyncio.sleep(0.05)
            assert received.received == stopped_at
            sender.reader._transport.resume_reading()  # type: ignore[attr-defined]
            acked = 0
            while acked < sent + 50:
                answer = await sender.read()
                assert isinstance(answer, SessionAck)
                acked = answer.session.ack
            assert made.connection._transport.is_reading()
            assert len(made.bodies) == sent + 50

    run(test())


def test_a_jam_stops_reading_and_its_end_starts_it() -> None:  # QB-51, design D3
    async def test() -> None:
        async with world() as made, client(made, window=1) as sender:
            made.log.up.clear()
            sender.writer.write(sender.message())
            await until(lambda: made.intake.jammed)
            connection = made.connection
            assert not connection._transport.is_reading()
            sender.writer.write(sender.message())
            async with client(made, greet=False) as late:  # one that comes meanwhile
                late.writer.write(ec_request(late.guid))
                await late.read()  # who it is decides whether it is read on
                assert not connection._transport.is_reading()
                made.log.up.set()
            told = SessionHeader()
            while told.ack < 2:
                answer = await sender.read()
                assert isinstance(answer, SessionAck)
                told = answer.session
            assert told.window == 64
            assert made.bodies == [b"1", b"2"]

    run(test())


def test_a_slow_peer_is_not_read_after_a_jam_either() -> None:
    async def test() -> None:
        async with world() as made, client(made):
            connection = made.connection
            connection.pause_writing()
            for jammed in (True, False):
                made.intake._jammed = [jammed]
                connection.look_at_jam()
            assert not connection._transport.is_reading()
            connection.resume_writing()
            assert connection._transport.is_reading()

    run(test())


# -- how it ends ------------------------------------------------------------------------------


def test_the_peer_hangs_up() -> None:
    async def test() -> None:
        async with world() as made:
            async with client(made):
                assert made.sample("sessions_opened_total") == 1
            await until(lambda: not made.server.connections)
            assert made.closed("peer-closed") == 1
            assert made.refused("peer-closed") == 0
            assert made.sample("sessions") == 0

    run(test())


def test_a_reset_is_only_another_way_to_hang_up() -> None:
    async def test() -> None:
        async with world() as made, client(made) as sender:
            sender.writer.transport.abort()
            await until(lambda: not made.server.connections)
            assert made.closed("peer-closed") == 1

    run(test())


def test_a_peer_that_is_gone_before_it_is_accepted() -> None:
    async def test() -> None:
        async with world() as made:
            for _ in range(3):
                with socket.create_connection((made.host, made.port)) as gone:
                    linger = struct.pack("ii", 1, 0)  # a reset, not a farewell
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            await until(lambda: made.closed("peer-closed") == 3)
            assert not made.server.connections
            assert made.sample("sessions") == 0

    run(test())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed"),
        (ec_request(uuid4(), uuid4()), "refused"),
    ],
)
def test_a_peer_that_breaks_the_rules(
    data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with world() as made, client(made, greet=False) as sender:
            sender.writer.write(data)
            await sender.end()
            await until(lambda: not made.server.connections)
            assert made.closed(reason) == made.refused(reason) == 1
            assert made.sample("sessions") == 0

    with caplog.at_level(logging.INFO):
        run(test())
    (line,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert line.getMessage() == "refused"
    told = line.__dict__["fields"]
    assert (told["reason"], told["transport"]) == (reason, "binary")
    assert told["peer"].startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("settings", "greet", "reason"),
    [
        (SessionSettings(init_timeout=0.05), False, "init-timeout"),
        (SessionSettings(idle_timeout=0.05), True, "idle"),
    ],
)
def test_the_timers_run(settings: SessionSettings, greet: bool, reason: str) -> None:
    async def test() -> None:
        async with world(settings) as made, client(made, greet=greet) as sender:
            assert await sender.end() == b""
            await until(lambda: not made.server.connections)
            assert made.closed(reason) == 1

    run(test())


def test_the_owner_hangs_up() -> None:
    async def test() -> None:
        async with world() as made, client(made) as sender:
            connection = made.connection
            connection.hang_up("shutdown")
            connection.hang_up("shutdown")
            assert await sender.end() == b""
            await until(lambda: not made.server.connections)
            assert made.closed("shutdown") == 1
            assert made.refused("shutdown") == 0
            connection.hang_up("shutdown")
            assert made.sample("sessions") == 0

    run(test())


def test_who_does_not_read_cannot_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.1)

    async def test() -> None:
        async with world() as made, client(made, window=1, narrow=True) as sender:
            await stall(made, sender)
            made.connection.hang_up("shutdown")
            await until(lambda: not made.server.connections)
            assert made.closed("shutdown") == 1

    run(test())


def test_a_line_when_it_opens_and_one_with_figures_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> int:
        async with world() as made:
            async with client(made, window=1) as sender:
                data = sender.message()
                sender.writer.write(data)
                await sender.read()
            await until(lambda: not made.server.connections)
            return len(data)

    with caplog.at_level(logging.DEBUG):
        size = asyncio.run(test())
    opened, closed = [r for r in caplog.records if r.getMessage().startswith("session ")]
    told, end = opened.__dict__["fields"], closed.__dict__["fields"]
    assert told["peer"] == end["peer"]
    assert told["queue_manager"] == end["queue_manager"]
    assert (end["messages"], end["bytes"]) == (1, 572 + 32 + size)
    assert (end["transport"], end["reason"], closed.levelno) == ("binary", "peer-closed", 20)
    assert end["seconds"] >= 0


def test_a_stranger_that_says_nothing_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world() as made:
            async with client(made, greet=False):
                pass
            await until(lambda: made.closed("peer-closed") == 1)

    with caplog.at_level(logging.DEBUG):
        run(test())
    (line,) = [r for r in caplog.records if r.getMessage() == "session closed"]
    assert line.levelno == logging.DEBUG


def test_who_finishes_is_heard_although_the_peer_goes_on() -> None:
    """Unread bytes would turn the end into a reset; what is not committed is not told."""

    async def test() -> None:
        async with world() as made, client(made) as sender:
            sender.writer.write(sender.messages(3))
            await until(lambda: len(made.bodies) == 3 and not made.intake.pending)
            made.intake.close()
            sender.writer.write(sender.messages(50))  # nobody reads them
            made.server.hang_up()
            answer = await sender.read()
            assert isinstance(answer, SessionAck)
            assert answer.session.ack == 3
            assert await sender.end() == b""
            await sender.close()
            await made.server.gone(20)
            assert not made.server.connections
            assert made.closed("shutdown") == 1
        assert len(made.bodies) == 3

    run(test())


def test_who_does_not_hang_up_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.1)

    async def test() -> None:
        async with world() as made, client(made) as sender:
            made.server.hang_up()
            await made.server.gone(0)
            assert made.server.connections
            await made.server.gone(20)  # until we end it
            assert not made.server.connections
            assert await sender.end() == b""

    run(test())


def test_a_jam_of_another_shard_does_not_matter() -> None:
    async def test() -> None:
        async with world() as made, client(made) as sender:
            connection = made.connection
            mine = made.intake.shard_of(connection.session.remote)
            assert mine == 0
            made.intake._jammed = [False, True]  # there were another
            connection.look_at_jam()
            assert connection._transport.is_reading()
            connection._use({1})  # a router: messages of a source that lives there
            await until(lambda: not connection._transport.is_reading())
            made.intake._jammed = [False, False]
            connection.look_at_jam()
            sender.writer.write(sender.messages(32))
            await asyncio.wait_for(sender.read(), 5)

    run(test())


def test_nothing_is_written_to_a_connection_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs "socket.send() raised exception" for every write from the fifth on."""

    async def test() -> None:
        async with world() as made, client(made):
            made.connection._transport.abort()
            made.connection._execute([Send(b"x")] * 10)

    with caplog.at_level(logging.WARNING, "asyncio"):
        run(test())
    assert "socket.send" not in caplog.text
