"""The server on loopback: groups, rundown, limits; strangers with hand-made bytes."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import struct

import pytest

from bridge.adapters.net import rpc_connection, rpc_server
from bridge.adapters.net.rpc_auth import Credentials, authenticator
from bridge.adapters.net.rpc_client import RpcClient
from bridge.adapters.net.rpc_server import RpcProcess, RpcServer
from bridge.adapters.telemetry import Telemetry
from bridge.config import Address
from bridge.model.errors import BindRefused, ConfigError, RpcUnavailable
from bridge.model.guid import NULL_GUID
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.dialogue import Limits
from bridge.wire.rpc.pdu import Fragment
from tests.support.rpc import ECHO, RAW_ECHO, SOURCE_DATA, WAIT, WHO, World, run, world
from tests.support.waiting import until
from tests.wire.rpc import raw

ANN = Credentials("DOM\\ann", "secret")


async def connect(made: World, group: int = 0) -> RpcClient:
    return await RpcClient.connect(made.address, ECHO, group=group)


class Stranger:
    """Bytes by hand."""

    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self.reader, self.writer = streams

    @classmethod
    async def come(cls, made: World, source: str = "127.0.0.1") -> Stranger:
        host, port = made.address.host, made.address.port
        return cls(await asyncio.open_connection(host, port, local_addr=(source, 0)))

    async def ask(self, data: bytes) -> bytes:
        """One PDU for this."""
        self.writer.write(data)
        head = await self.reader.readexactly(16)
        (size,) = struct.unpack_from("<H", head, 8)
        return head + await self.reader.readexactly(size - 16)

    async def bind(self) -> bytes:
        interface = ECHO.pack()
        return await self.ask(raw.pdu(raw.BIND, raw.bind_body(raw.proposal(0, interface, raw.NDR))))

    async def is_sent_away(self) -> bytes:
        """What it still says before it hangs up."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""
        finally:
            self.writer.close()


# -- groups and rundown -----------------------------------------------------------------------


def test_two_connections_of_one_group_and_its_rundown() -> None:  # RR-5, section 2.3
    async def test() -> None:
        async with world() as made:
            one = await connect(made)
            two = await connect(made, one.group)
            assert one.group == two.group
            assert (await two.call(WHO, b"")).endswith(f"|{one.group}".encode())
            await one.close()
            assert await two.call(RAW_ECHO, b"x") == b"x"
            assert made.echo.run_down == []
            await two.close()
            await until(lambda: made.echo.run_down == [one.group])

    run(test())


def test_a_group_of_one_port_can_be_joined_on_another() -> None:
    async def test() -> None:
        async with world() as made:
            other = RpcServer([made.echo], made.process)
            address = Address.parse(await other.start("127.0.0.1", 0))
            one = await connect(made)
            two = await RpcClient.connect(address, ECHO, group=one.group)
            assert two.group == one.group
            await one.close()
            await two.close()
            await until(lambda: made.echo.run_down == [one.group])  # each interface hears it once
            other.stop_listening()

    run(test())


def test_a_group_that_does_not_exist() -> None:
    async def test() -> None:
        async with world() as made:
            with pytest.raises(BindRefused):
                await connect(made, 12345)
            await until(lambda: made.refused("unknown-group") == 1)

    run(test())


def test_a_lost_connection_withdraws_its_calls_before_the_rundown() -> None:  # RR-13
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            group = raw.group_of(await stranger.bind())
            seen: list[int] = []
            made.echo.on_rundown = lambda: seen.append(made.echo.waiting)
            for call_id in range(2, 12):
                stranger.writer.write(raw.request(opnum=WAIT, call_id=call_id))
            await until(lambda: made.echo.waiting == 10)
            stranger.writer.transport.abort()
            await until(lambda: seen == [0])
            assert made.echo.withdrawn == 10
            assert group not in made.process._calls

    run(test())


def test_a_call_that_takes_long_to_stop_holds_the_rundown_back() -> None:
    async def test() -> None:
        async with world() as made:
            stubborn, entered = asyncio.Event(), asyncio.Event()

            async def call(call: object) -> bytes:
                try:
                    entered.set()
                    await asyncio.Event().wait()
                finally:
                    await asyncio.shield(stubborn.wait())
                return b""

            made.echo.call = call  # type: ignore[method-assign]
            stranger = await Stranger.come(made)
            group = raw.group_of(await stranger.bind())
            stranger.writer.write(raw.request(opnum=WAIT))
            await entered.wait()
            stranger.writer.close()
            await until(lambda: not made.process.connections)
            assert made.echo.run_down == []
            stubborn.set()
            await until(lambda: made.echo.run_down == [group])

    run(test())


def test_cancel_and_orphaned() -> None:  # RR-13
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            for call_id in (2, 3):
                stranger.writer.write(raw.request(opnum=WAIT, call_id=call_id))
            await until(lambda: made.echo.waiting == 2)
            stranger.writer.write(raw.pdu(raw.ORPHANED, call_id=2))
            cancelled = await stranger.ask(raw.pdu(raw.CO_CANCEL, call_id=3))
            assert cancelled == raw.fault(0x1C00000D, call_id=3, ran=True)
            await until(lambda: made.echo.withdrawn == 2)
            answer = await stranger.ask(raw.request(b"on", opnum=RAW_ECHO, call_id=4))
            assert answer == raw.response(b"on", call_id=4)
            stranger.writer.close()

    run(test())


def test_a_thousand_waiting_calls_on_one_connection() -> None:
    async def test() -> None:
        async with world() as made:
            client = await connect(made)
            calls = [asyncio.create_task(client.call(WAIT, b"")) for _ in range(1000)]
            await until(lambda: made.echo.waiting == 1000)
            made.echo.gate.set()
            assert set(await asyncio.gather(*calls)) == {b"waited"}
            await client.close()

    run(test())


def test_a_bug_in_an_interface_is_a_fault_and_loud(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            answer = await stranger.ask(raw.request(opnum=24))
            assert raw.fault_status(answer) == 0x1C000012
            stranger.writer.close()

    run(test())
    assert "ZeroDivisionError" in caplog.text


def test_a_rundown_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        made = World(None)

        class Broken:
            uuid, version = NULL_GUID, (1, 0)

            async def call(self, call: object) -> bytes:
                return b""

            def rundown(self, group: int) -> None:
                raise ZeroDivisionError

        server = RpcServer([Broken(), made.echo], made.process)
        made.process.interfaces.reverse()
        made.address = Address.parse(await server.start("127.0.0.1", 0))
        client = await connect(made)
        await client.close()
        await until(lambda: made.echo.run_down == [client.group])
        server.stop_listening()

    run(test())
    assert "rundown of group" in caplog.text


def test_stop_ends_calls_and_runs_groups_down() -> None:
    async def test() -> None:
        async with world() as made:
            client = await connect(made)
            call = asyncio.create_task(client.call(WAIT, b""))
            await until(lambda: made.echo.waiting == 1)
            await made.process.stop()
            assert (made.echo.waiting, made.echo.run_down) == (0, [client.group])
            with pytest.raises(RpcUnavailable):
                await call
            await client.close()

    run(test())


# -- strangers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(100),
        b"\xff" * 100_000,
        raw.pdu(raw.BIND, drep=b"\0\0\0\0"),
        raw.pdu(raw.BIND, raw.bind_body(count=255)),
        raw.pdu(raw.BIND, bytes(20), auth_length=0xFFFF),
        raw.bind() * 1000,
        raw.bind() + raw.pdu(raw.REQUEST, bytes(8), auth_length=20),
        raw.request(),
    ],
)
def test_nonsense_is_hung_up_on(data: bytes) -> None:
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            stranger.writer.write(data)
            await stranger.is_sent_away()
            assert made.refused("malformed") + made.refused("unexpected-pdu") == 1
            await until(lambda: not made.process.connections)
            assert len(made.process.groups) == 0

    run(test())


def test_random_bytes_after_a_bind() -> None:
    async def test() -> None:
        dice = random.Random(1)
        async with world() as made:
            for _ in range(50):
                stranger = await Stranger.come(made)
                await stranger.bind()
                good = bytearray(raw.request(bytes(30), opnum=RAW_ECHO))
                for _ in range(dice.randint(1, 4)):
                    good[dice.randrange(len(good))] = dice.randrange(256)
                stranger.writer.write(bytes(good) + dice.randbytes(40))
                stranger.writer.write_eof()
                await stranger.is_sent_away()
            client = await connect(made)
            assert await client.call(RAW_ECHO, b"well") == b"well"
            await client.close()

    run(test())


def test_fragments_that_never_end() -> None:  # RR-7: 4 MiB, then fault 5
    async def test() -> None:
        async with world() as made:
            stranger = await Stranger.come(made)
            await stranger.bind()
            stranger.writer.write(raw.request(bytes(60_000), flags=raw.FIRST))
            piece = raw.request(bytes(60_000), flags=0)
            answer = await stranger.ask(piece * 80)
            assert answer == raw.fault(5)
            (connection,) = made.process.connections
            assert connection.association.held < 70_000
            assert made.refused("too-large") == 1
            stranger.writer.close()

    run(test())


def test_who_is_slow_is_hung_up_on() -> None:
    async def test() -> None:
        async with world(Limits(bind_timeout=0.05, request_timeout=0.05)) as made:
            silent = await Stranger.come(made)
            assert await silent.is_sent_away() == b""
            halfway = await Stranger.come(made)
            await halfway.bind()
            halfway.writer.write(raw.request()[:20])
            assert await halfway.is_sent_away() == b""
            assert made.refused("slow") == 2

    run(test())


def test_the_oldest_that_is_not_bound_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "STRANGERS", 3)

    async def test() -> None:
        async with world() as made:
            client = await connect(made)
            strangers = []
            for number in range(4):
                strangers.append(await Stranger.come(made))
                await until(lambda n=number: len(made.process.connections) >= min(n, 2) + 2)  # type: ignore[misc]
            assert await strangers[0].is_sent_away() == b""
            assert raw.kinds(await strangers[1].bind()) == [raw.BIND_ACK]
            assert await client.call(RAW_ECHO, b"x") == b"x"
            assert made.refused("crowded") == 1
            for one in strangers[1:]:
                one.writer.close()
            await client.close()

    run(test())


@pytest.mark.parametrize("kept", [{"per_address": 2}, {"hall": 2}])
def test_when_all_are_at_work_who_comes_goes(kept: dict[str, int]) -> None:
    async def test() -> None:
        async with world(**kept) as made:  # type: ignore[arg-type]
            clients = [await connect(made) for _ in range(2)]
            waits = [asyncio.create_task(client.call(WAIT, b"")) for client in clients]
            await until(lambda: made.echo.waiting == 2)
            with pytest.raises(RpcUnavailable):
                await connect(made)
            made.echo.gate.set()
            assert await asyncio.gather(*waits) == [b"waited"] * 2
            for client in clients:
                await client.close()

    run(test())


def test_the_connection_that_is_idle_longest_makes_room() -> None:
    async def test() -> None:
        async with world(per_address=2) as made:
            first, second = await connect(made), await connect(made)
            assert await first.call(RAW_ECHO, b"x") == b"x"
            late = await connect(made)
            for client in (first, late):
                assert await client.call(RAW_ECHO, b"x") == b"x"
            with pytest.raises(RpcUnavailable):
                await second.call(RAW_ECHO, b"x")
            assert made.refused("crowded") == 1
            for client in (first, second, late):
                await client.close()

    run(test())


def test_an_address_crowds_out_only_itself() -> None:
    async def test() -> None:
        async with world(per_address=4) as made:
            victim, crowd = await connect(made), []
            for _ in range(10):
                bound = await Stranger.come(made, "127.0.0.2")
                assert raw.kinds(await bound.bind()) == [raw.BIND_ACK]
                crowd += [bound, await Stranger.come(made, "127.0.0.2")]
            third = await Stranger.come(made, "127.0.0.3")
            assert raw.kinds(await third.bind()) == [raw.BIND_ACK]
            assert await victim.call(RAW_ECHO, b"x") == b"x"
            await until(lambda: len(made.process.connections) == 4 + 2)
            for one in (*crowd, third):
                one.writer.close()
            await victim.close()

    run(test())


def test_a_bind_without_a_name_stays_a_stranger_where_calls_need_one() -> None:
    """Else whoever reaches the port takes the place of who may use it."""

    async def test() -> None:
        limits = Limits(anonymous=False, proof_timeout=0.1)
        async with world(limits, per_address=2) as made:
            known = await RpcClient.connect(made.address, ECHO, credentials=ANN)
            assert await known.call(RAW_ECHO, b"x") == b"x"
            bound = await Stranger.come(made)
            assert raw.kinds(await bound.bind()) == [raw.BIND_ACK]
            assert await bound.is_sent_away() == b""  # it had its time
            bound = await Stranger.come(made)
            late = await RpcClient.connect(made.address, ECHO, credentials=ANN)
            assert await bound.is_sent_away() == b""
            for client in (known, late):
                assert await client.call(RAW_ECHO, b"x") == b"x"
                await client.close()
            assert (made.refused("slow"), made.refused("crowded")) == (1, 1)

    run(test())


def test_guessing_is_slow_and_locks_nobody_else_out() -> None:
    async def wrong(made: World, user: str) -> None:
        client = await RpcClient.connect(made.address, ECHO, credentials=Credentials(user, "?"))
        with pytest.raises(Fault):
            await client.call(RAW_ECHO, b"x")
        await client.close()

    async def test() -> None:
        async with world() as made:
            for _ in range(6):
                await wrong(made, "DOM\\Ann")
            assert (made.refused("auth-failed"), made.refused("auth-guessing")) == (5, 1)
            right = await RpcClient.connect(made.address, ECHO, credentials=ANN)
            with pytest.raises(Fault):  # from here it has to wait
                await right.call(RAW_ECHO, b"x")
            await right.close()
            await elsewhere(made)

    async def elsewhere(made: World) -> None:
        auth = authenticator(ANN, "bridge01")
        assert auth is not None
        stranger = await Stranger.come(made, "127.0.0.2")
        hello = raw.pdu(
            raw.BIND,
            raw.bind_body(raw.proposal(0, ECHO.pack(), raw.NDR)),
            auth=raw.trailer(10, 6, auth.step(None)),
        )
        answer = Fragment.unpack(await stranger.ask(hello))
        assert answer.verifier is not None
        proof = raw.trailer(10, 6, auth.step(answer.verifier.value))
        stranger.writer.write(raw.pdu(raw.AUTH3, bytes(4), auth=proof))
        await until(
            lambda: any(c.association._security.is_proved for c in made.process.connections)
        )
        stranger.writer.close()

    run(test())


def test_bytes_of_all_connections_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "HELD", 300_000)

    async def test() -> None:
        async with world() as made:
            holders = []
            for number in range(3):
                stranger = await Stranger.come(made)
                await stranger.bind()
                stranger.writer.write(raw.request(bytes(60_000), flags=raw.FIRST))
                stranger.writer.write(raw.request(bytes(60_000), flags=0))
                holders.append(stranger)
                if number < 2:
                    wanted = 120_000 * (number + 1)
                    await until(lambda least=wanted: made.process._held >= least)  # type: ignore[misc]
            await holders[0].is_sent_away()
            assert made.refused("unfinished") == 1
            for one in holders[1:]:
                one.writer.close()
            await until(lambda: made.process._held == 0)

    run(test())


def slow_reader(made: World) -> socket.socket:
    """Asks for 32 MiB in one breath and reads nothing."""
    sock = socket.create_connection((made.address.host, made.address.port))
    body = raw.bind_body(raw.proposal(0, ECHO.pack(), raw.NDR))
    size = struct.pack("<I", 4 << 20)
    asked = [raw.request(size, opnum=SOURCE_DATA, call_id=number) for number in range(2, 10)]
    sock.sendall(raw.pdu(raw.BIND, body) + b"".join(asked))
    return sock


@pytest.mark.parametrize(("name", "value"), [("UNSENT", 6 << 20), ("STALL_S", 0.05)])
def test_who_does_not_read_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    monkeypatch.setattr(rpc_connection, name, value)

    async def test() -> None:
        async with world() as made:
            with await asyncio.to_thread(slow_reader, made):
                await until(lambda: made.refused("slow-reader") == 1)
                await until(lambda: not made.process.connections)
            assert made.process._held == 0

    run(test())


# -- the listener -----------------------------------------------------------------------------


def test_dead_readers_are_noticed() -> None:  # RR-13: TCP keep-alive on all connections
    async def test() -> None:
        async with world() as made:
            client = await connect(made)
            (connection,) = made.process.connections
            sock = connection._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
            await client.close()

    run(test())


def test_a_busy_port_is_one_line() -> None:
    async def test() -> None:
        async with world() as made:
            other = RpcServer([made.echo], made.process)
            with pytest.raises(ConfigError, match="cannot listen") as caught:
                await other.start("127.0.0.1", made.address.port, "listen.rpc_qp")
            assert caught.value.where == "listen.rpc_qp"

    run(test())


def test_without_accounts_nobody_can_authenticate() -> None:
    async def test() -> None:
        made = World(None)
        server = RpcServer([made.echo], RpcProcess(Telemetry()))
        address = Address.parse(await server.start("127.0.0.1", 0))
        with pytest.raises(BindRefused, match="kind of authentication"):
            await RpcClient.connect(address, ECHO, credentials=ANN)
        server.stop_listening()

    run(test())


def test_calls_are_counted() -> None:
    async def test() -> None:
        async with world() as made:
            client = await connect(made)
            await client.call(RAW_ECHO, b"")
            value = made.telemetry.registry.get_sample_value
            assert value("msmq_bridge_rpc_calls_total", {"result": "answered"}) == 1
            assert value("msmq_bridge_rpc_connections") == 1
            await client.close()
            await until(lambda: value("msmq_bridge_rpc_connections") == 0)

    run(test())


def test_a_line_when_it_opens_and_one_with_figures_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with world() as made:
            client = await RpcClient.connect(made.address, ECHO, credentials=ANN)
            await client.call(RAW_ECHO, b"x")
            await client.call(RAW_ECHO, b"y")
            await client.close()
            await until(lambda: not made.process.connections)

    with caplog.at_level(logging.INFO):
        run(test())
    opened, closed = [r for r in caplog.records if r.getMessage().startswith("session ")]
    told, end = opened.__dict__["fields"], closed.__dict__["fields"]
    assert told["peer"] == end["peer"]
    assert (end["transport"], end["messages"], end["reason"]) == ("rpc", 2, "peer-closed")
    assert end["user"].lower() == "dom\\ann"
