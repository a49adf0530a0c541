"""The listener: where it listens, and what it does to all of its connections."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

import pytest

from bridge.adapters.intake import Intake
from bridge.adapters.net import binary_server
from bridge.adapters.net.binary_server import BinaryServer
from bridge.adapters.net.crowd import Hall
from bridge.adapters.telemetry import Telemetry
from bridge.core.access import AccessList
from bridge.core.identity import Ordinals
from bridge.core.known_senders import KnownSenders
from bridge.model.errors import ConfigError
from bridge.protocol.binary.session import SessionSettings
from tests.adapters.net.memory_server import PLAIN, SOON_S, World, client, run, world
from tests.core.messages import LOCAL
from tests.outside.rawmsmq import Message, Tx, base, build, cp_request, direct, ec_request
from tests.outside.rawparse import Establish, Received, SessionAck, parse
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
            made.intake._jammed = [True]
            made.server.look_at_jam()
            assert [c._transport.is_reading() for c in made.server.connections] == [False, False]
            made.intake._jammed = [False]
            made.server.look_at_jam()
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
            made.server.look_at_jam()

    run(test())


def test_a_crowd_that_says_nothing_makes_room() -> None:
    """The oldest of those that are not open yet goes; open sessions stay."""

    async def test() -> None:
        async with (
            world(hall=Hall(lambda: 3)) as made,
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


@pytest.mark.parametrize("bound", ["hall", "address"])
def test_who_comes_when_all_are_at_work_is_turned_away(bound: str) -> None:
    async def test() -> None:
        kept = {"hall": Hall(lambda: 2)} if bound == "hall" else {"per_address": 2}
        async with (
            world(**kept) as made,
            client(made) as first,
            client(made) as other,
        ):
            made.sink.gate.clear()
            for sender in (first, other):
                sender.writer.write(sender.messages(32))
            await until(lambda: not any(c.is_idle for c in made.server.connections))
            async with client(made, greet=False) as late:
                assert await late.end() == b""
            assert made.closed("crowded") == 1
            made.sink.gate.set()
            for sender in (first, other):
                await sender.read()
            await other.close()
            await until(lambda: len(made.server.connections) == 1)
            async with client(made) as later:
                for sender in (first, later):
                    sender.writer.write(sender.messages(32))
                    await sender.read()
            assert made.closed("crowded") == 1

    run(test())


def test_the_session_that_is_idle_longest_makes_room() -> None:
    async def test() -> None:
        async with (
            world(per_address=3) as made,
            client(made) as first,
            client(made) as second,
            client(made) as third,
        ):
            for sender in (second, third, first):
                sender.writer.write(sender.messages(32))
                await sender.read()
            async with client(made) as late:
                assert await second.end() == b""
                for sender in (first, third, late):
                    sender.writer.write(sender.messages(32))
                    await sender.read()
            assert (made.closed("crowded"), made.refused("crowded")) == (1, 1)

    run(test())


def test_an_address_crowds_out_only_itself() -> None:
    """Open sessions by the dozen; the other addresses notice nothing."""

    async def test() -> None:
        async with world(per_address=4) as made, AsyncExitStack() as stack:
            victim = await stack.enter_async_context(client(made, source="127.0.0.2"))
            for _ in range(20):
                await stack.enter_async_context(client(made, source="127.0.0.3"))
                await stack.enter_async_context(client(made, greet=False, source="127.0.0.3"))
            late = await stack.enter_async_context(client(made, source="127.0.0.4"))
            for sender in (victim, late):
                sender.writer.write(sender.messages(32))
                await sender.read()
            await until(lambda: len(made.server.connections) == 6)

    run(test())


def test_when_all_is_full_the_address_with_the_most_gives_way() -> None:
    """Also when each of its sessions has something under way: else it would lock out the others."""

    async def test() -> None:
        async with world(hall=Hall(lambda: 21)) as made, AsyncExitStack() as stack:
            quiet = await stack.enter_async_context(client(made, source="127.0.0.2"))
            busy = [
                await stack.enter_async_context(client(made, source="127.0.0.3")) for _ in range(20)
            ]
            for sender in busy:
                sender.writer.write(sender.message()[:-1])  # a packet that never ends
            await until(lambda: sum(not c.is_idle for c in made.server.connections) == 20)
            late = await stack.enter_async_context(client(made, source="127.0.0.4"))
            assert await busy[0].end() == b""
            for sender in (quiet, late):
                sender.writer.write(sender.messages(32))
                await sender.read()

    run(test())


def test_one_that_does_not_read_is_gone_at_once() -> None:
    async def test() -> None:
        async with world(per_address=1) as made, client(made, greet=False) as first:
            await until(lambda: made.server.connections)
            made.connection._transport.write(bytes(64 << 20))  # more than the kernel takes
            async with client(made) as late:
                late.writer.write(late.messages(32))
                await late.read()
                await until(lambda: len(made.server.connections) == 1)
            assert len(await first.end()) < 64 << 20

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
            async with client(made, window=1) as whole:
                large = Message(source=whole.guid, message_id=1, destination=PLAIN, body=begun)
                whole.writer.write(build(large))
                await whole.read()
            assert made.bodies == [begun]
            await second.close()
            await until(lambda: (made.server._held, made.server._holders) == (0, {}))

    run(test())


# -- who speaks for whom --------------------------------------------------------------------


def test_a_session_speaks_for_its_own_queue_manager() -> None:
    """What came before is acknowledged; a message of another one stays with its sender."""

    async def test() -> None:
        async with world() as made, client(made) as sender:
            stolen = Message(source=uuid4(), message_id=1, destination=PLAIN, body=b"stolen")
            sender.writer.write(sender.message() + build(stolen))
            ack = parse(await sender.end())
            assert isinstance(ack, SessionAck)
            assert ack.session.ack == 1
            assert made.bodies == [b"1"]
            assert (made.closed("not-a-router"), made.refused("not-a-router")) == (1, 1)

    run(test())


def test_a_message_for_another_queue_manager_ends_the_session_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its sender keeps it, and comes again and again: the log does not say it every time."""
    elsewhere, reason = uuid4(), "other-queue-manager"

    async def test() -> None:
        async with world() as made:
            for attempt in range(1, 4):
                async with client(made) as sender:
                    stray = Message(
                        source=sender.guid,
                        message_id=9,
                        destination=PLAIN,
                        queue_manager=elsewhere,
                        body=b"stray",
                    )
                    sender.writer.write(sender.message() + build(stray))
                    ack = parse(await sender.end())
                    assert isinstance(ack, SessionAck)
                    assert ack.session.ack == 1
                    assert (made.closed(reason), made.refused(reason)) == (attempt, attempt)
            assert b"stray" not in made.bodies

    with caplog.at_level("WARNING"):
        run(test())
    [line] = [r for r in caplog.records if r.fields.get("reason") == reason]  # type: ignore[attr-defined]
    assert str(elsewhere) in line.fields["detail"]  # type: ignore[attr-defined]
    assert "queue_manager.id" in line.fields["detail"]  # type: ignore[attr-defined]


def test_a_router_speaks_for_others() -> None:
    async def test() -> None:
        routers = AccessList(["127.0.0.0/8"])
        async with world(routers=routers) as made, client(made) as sender:
            routed = Message(source=uuid4(), message_id=1, destination=PLAIN, body=b"routed")
            sender.writer.write(build(routed))
            await until(lambda: made.bodies == [b"routed"])
            assert made.closed("not-a-router") == 0

    run(test())


@pytest.mark.parametrize("guid", [UUID(int=0), UUID(str(LOCAL))])
def test_nobody_has_our_guid_or_none(guid: UUID) -> None:
    async def test() -> None:
        async with world() as made, client(made, greet=False) as sender:
            sender.guid = guid
            sender.writer.write(ec_request(guid) + cp_request() + sender.message())
            await sender.end()
            assert made.closed("impossible-guid") == 1
            assert made.bodies == []

    run(test())


def test_a_pinned_guid_has_no_session_from_elsewhere() -> None:
    async def test() -> None:
        guid = uuid4()
        senders = KnownSenders("enforce", {}, {str(guid): "127.0.0.9"}, lambda *_: None)
        async with world(senders=senders) as made, client(made, greet=False) as sender:
            sender.guid = guid
            sender.writer.write(ec_request(guid) + cp_request() + sender.message())
            await sender.end()
            assert made.refused("pinned-elsewhere") == 1
            assert made.bodies == []

    run(test())


def test_a_guid_that_has_moved_is_counted() -> None:
    async def test() -> None:
        guid = uuid4()
        learned = {str(guid): "127.0.0.9"}
        senders = KnownSenders("warn", {}, learned, lambda *_: None, started=time.time())
        async with world(senders=senders) as made, client(made, greet=False) as sender:
            sender.guid = guid
            await sender.handshake()
            sender.writer.write(sender.message())
            await until(lambda: made.bodies)
            assert made.refused("moved-guid") == 1
            assert senders.address(str(guid)) == "127.0.0.9"

    run(test())


def test_a_guid_is_known_where_its_first_message_was_accepted_from() -> None:
    """Not by a handshake, and not by a message that was refused."""

    async def test() -> None:
        kept: list[tuple[str, str]] = []
        senders = KnownSenders("warn", {}, {}, lambda *what: kept.append(what))
        async with world(senders=senders) as made, client(made) as sender:
            nowhere = direct("OS:bridge01\\private$\\nowhere")
            sender.writer.write(
                build(Message(source=sender.guid, message_id=9, destination=nowhere, body=b"x"))
            )
            await until(lambda: made.log.rejects)
            assert kept == []
            sender.writer.write(sender.message())
            await until(lambda: kept)
            assert kept == [(str(sender.guid), "127.0.0.1")]

    run(test())


def test_a_connection_knows_when_it_was_heard_last() -> None:
    """The courier brings acks to the session that was heard last."""

    def of(made: World, guid: UUID) -> float:
        [found] = [c for c in made.server.connections if c.session.remote == guid.bytes_le]
        return found.heard_at

    async def test() -> None:
        async with world() as made, client(made) as first, client(made) as second:
            assert of(made, first.guid) <= of(made, second.guid)
            for _ in range(3):
                for one, other in ((first, second), (second, first)):
                    before = of(made, other.guid)
                    one.writer.write(one.messages(32))
                    await one.read()
                    assert of(made, one.guid) > before

    run(test())


@pytest.mark.parametrize(
    ("target", "known"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::ffff:127.0.0.1", "127.0.0.1")],
)
def test_a_listener_for_both_families(target: str, known: str) -> None:
    """An IPv4 peer is its IPv4 address, for `routers`, pins and bounds too."""

    async def test() -> None:
        senders = KnownSenders("enforce", {}, {}, lambda *_: None)
        routers = AccessList([known])
        async with world(listen=False, routers=routers, senders=senders) as made:
            made.host = "::"
            await made.listen()
            made.host = target
            async with client(made, window=1) as sender:
                connection = made.connection
                assert (connection.host, connection.session.peer) == (known, known)
                shown = f"[{known}]" if ":" in known else known
                assert connection.name.rpartition(":")[0] == shown
                assert connection.is_router
                sender.writer.write(sender.message())
                await sender.read()
                assert senders.address(str(sender.guid)) == known

    run(test())


def test_an_order_ack_to_an_ipv6_peer_names_its_address() -> None:
    """MS-MQQB 2.2.4: "TCP:" ip-address, which is IPv6address or IPv4address of RFC 3986: there the
    brackets belong to IP-literal, so there are none."""

    async def test() -> None:
        async with world(listen=False) as made:
            made.host = "::"
            await made.listen()
            made.host = "::1"
            async with client(made) as sender:
                tx = Tx(sequence_id=1 << 32 | 1, number=1, previous=0)
                ordered = Message(
                    source=sender.guid,
                    message_id=1,
                    destination=direct("OS:bridge01\\private$\\orders"),
                    tx=tx,
                    body=b"1",
                )
                sender.writer.write(build(ordered))
                packet = await sender.read()
                while not isinstance(packet, Received):
                    packet = await sender.read()
                assert packet.is_order_ack
                assert packet.destination == direct("TCP:::1\\PRIVATE$\\order_queue$")

    run(test())
