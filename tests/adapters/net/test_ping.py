"""The ping over real UDP, both roles. MS-MQQB 3.1.7.6 to 3.1.7.8; QB-30, QB-31"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bridge.adapters.net import ping as module
from bridge.adapters.net.ping import PingServer, ping
from bridge.config import Address
from bridge.model.errors import ConfigError
from bridge.wire.binary.ping import Ping
from tests.adapters.net.memory_server import SOON_S, run
from tests.core.messages import LOCAL, SENDER
from tests.support.waiting import until
from tests.vectors.binary import PINGS

F1, F2 = PINGS["F1"].data, PINGS["F2"].data  # MS-MQQB 4.1.1, 4.1.2


@asynccontextmanager
async def server(refuse: Callable[[], bool] = lambda: False) -> AsyncIterator[Address]:
    one = PingServer(LOCAL, refuse)
    address = Address.parse(await one.start("127.0.0.1", 0))
    try:
        yield address
    finally:
        one.stop()
        await asyncio.sleep(0)


class Wire(asyncio.DatagramProtocol):
    """A socket of a test's own; `answer` makes a peer of it."""

    def __init__(self, answer: Callable[[bytes], list[bytes]] = lambda _: []) -> None:
        self.answer = answer
        self.got: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self.got.put_nowait(data)
        for reply in self.answer(data):
            self.transport.sendto(reply, addr)


@asynccontextmanager
async def wire(
    to: Address | None = None, answer: Callable[[bytes], list[bytes]] = lambda _: []
) -> AsyncIterator[tuple[Wire, Address]]:
    loop = asyncio.get_running_loop()
    local, remote = (("127.0.0.1", 0), None) if to is None else (None, (to.host, to.port))
    transport, one = await loop.create_datagram_endpoint(
        lambda: Wire(answer), local_addr=local, remote_addr=remote
    )
    try:
        yield one, Address(*transport.get_extra_info("sockname")[:2])
    finally:
        transport.close()
        await asyncio.sleep(0)


async def asked(one: Wire, data: bytes) -> bytes:
    one.transport.sendto(data)
    return await asyncio.wait_for(one.got.get(), SOON_S)


# -- the listener ---------------------------------------------------------------------------


def test_the_ping_of_the_spec_gets_an_answer_of_the_same_shape() -> None:  # QB-30: F1, F2
    async def test() -> None:
        async with server() as address, wire(address) as (one, _):
            answer = await asked(one, F1)
            assert len(answer) == len(F2) == 24
            assert answer[2:8] == F1[2:8] == F2[2:8]  # signature and cookie
            assert answer[8:] == bytes(LOCAL)
            assert answer[0] & 3 == F2[0] & 3 == 1  # RC echoed, RF 0

    run(test())


@pytest.mark.parametrize("flags", [0, 1, 2, 3, 0xFFFC, 0xFFFF])
@pytest.mark.parametrize("refuses", [False, True])
def test_flags(flags: int, refuses: bool) -> None:  # QB-30: RC echoed, RF iff we would refuse
    async def test() -> None:
        async with server(lambda: refuses) as address, wire(address) as (one, _):
            request = struct.pack("<HHI16s", flags, 0x5548, 0xFFFFFFFF, bytes(SENDER))
            answer = await asked(one, request)
            expected = flags & 1 | (2 if refuses else 0)
            assert answer == struct.pack("<HHI16s", expected, 0x5548, 0xFFFFFFFF, bytes(LOCAL))

    run(test())


def test_whether_it_would_refuse_is_asked_each_time() -> None:
    away: list[bool] = []

    async def test() -> None:
        async with server(lambda: bool(away)) as address, wire(address) as (one, _):
            assert not Ping.unpack(await asked(one, F1)).refused
            away.append(True)
            assert Ping.unpack(await asked(one, F1)).refused

    run(test())


@pytest.mark.parametrize(
    "garbage", [b"", F1[:23], F1[:2] + b"\0\0" + F1[4:], bytes(24), b"\xff" * 1400]
)
def test_garbage_is_ignored(garbage: bytes) -> None:  # QB-30
    async def test() -> None:
        async with server() as address, wire(address) as (one, _):
            one.transport.sendto(garbage)
            answer = await asked(one, F1)  # the first answer is to this one
            assert answer[4:8] == F1[4:8]
            assert one.got.empty()

    run(test())


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1:"), ("::1", "[::1]:")])
def test_it_says_where_it_listens(host: str, shown: str) -> None:
    async def test() -> None:
        one = PingServer(LOCAL, lambda: False)
        address = await one.start(host, 0)
        assert address.startswith(shown)
        assert await ping(Address.parse(address), SENDER) is not None
        one.stop()
        await asyncio.sleep(0)

    run(test())


def test_a_busy_port_is_one_line() -> None:
    async def test() -> None:
        async with server() as address:
            with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:") as caught:
                await PingServer(LOCAL, lambda: False).start("127.0.0.1", address.port)
            assert caught.value.where == "listen.ping"
            assert caught.value.mend
            assert len(str(caught.value).splitlines()) == 1

    run(test())


def test_one_that_never_started_stops() -> None:
    PingServer(LOCAL, lambda: False).stop()


# -- the asker ------------------------------------------------------------------------------


@pytest.mark.parametrize("refuses", [False, True])
def test_who_is_there(refuses: bool) -> None:  # QB-31
    async def test() -> None:
        async with server(lambda: refuses) as address:
            answer = await ping(address, SENDER)
            assert answer is not None
            assert (answer.queue_manager, answer.refused) == (LOCAL, refuses)

    run(test())


def test_the_request() -> None:  # 2.7: we are a server; the cookie grows (QB-31)
    async def test() -> None:
        async with wire(answer=lambda data: [data]) as (peer, address):
            for _ in range(2):
                await ping(address, SENDER)
            first, second = (Ping.unpack(peer.got.get_nowait()) for _ in range(2))
            assert first == Ping(cookie=first.cookie, queue_manager=SENDER)
            assert second.cookie == first.cookie + 1

    run(test())


def test_nobody_answers_in_time(monkeypatch: pytest.MonkeyPatch) -> None:  # QB-31: 1 s
    assert module.PATIENCE_S == 1.0
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)

    async def test() -> None:
        async with wire() as (peer, address):
            assert await ping(address, SENDER) is None
            assert not peer.got.empty()

    run(test())


def other_cookie(data: bytes) -> bytes:
    return data[:4] + bytes([data[4] ^ 0xFF]) + data[5:]


def test_another_cookie_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:  # QB-31
    async def test() -> None:
        refusing = struct.pack("<H", 2)
        noise = [b"x", refusing + b"\0\0"]

        def answer(data: bytes) -> list[bytes]:
            return [*noise, refusing + other_cookie(data)[2:], data, refusing + data[2:]]

        async with wire(answer=answer) as (_, address):
            found = await ping(address, SENDER)
            assert found is not None
            assert not found.refused  # the first that fits counts
        monkeypatch.setattr(module, "PATIENCE_S", 0.05)
        async with wire(answer=lambda data: [other_cookie(data)]) as (_, address):
            assert await ping(address, SENDER) is None

    run(test())


def test_a_closed_port_is_nobody() -> None:
    async def test() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        assert await ping(Address("127.0.0.1", port), SENDER) is None  # ICMP tells at once
        assert await ping(Address("no-such-host.invalid", 3527), SENDER) is None

    run(test())


def test_nothing_is_amplified() -> None:
    async def test() -> None:
        async with server() as address, wire(address) as (asker, _):
            asker.transport.sendto(F1)
            assert len(await asyncio.wait_for(asker.got.get(), SOON_S)) == len(F1)
            asker.transport.sendto(F1 + bytes(1400))
            assert len(await asyncio.wait_for(asker.got.get(), SOON_S)) == len(F1)
            for size in range(len(F1)):
                asker.transport.sendto(F1[:size])
            asker.transport.sendto(F1)
            await asyncio.wait_for(asker.got.get(), SOON_S)
            assert asker.got.empty()

    run(test())


def test_two_servers_do_not_answer_each_other_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """One false address would be enough: an answer looks like a request."""
    monkeypatch.setattr(module, "PER_SECOND", 5)

    async def test() -> None:
        one, other = PingServer(LOCAL, lambda: False), PingServer(SENDER, lambda: False)
        await one.start("127.0.0.1", 0)
        address = Address.parse(await other.start("127.0.0.1", 0))
        assert one._transport is not None
        one._transport.sendto(F1, (address.host, address.port))
        await until(lambda: any(n > 5 for each in (one, other) for n in each._answers.values()))
        for each in (one, other):
            each.stop()

    run(test())


def test_a_flood_of_one_address_leaves_the_others_their_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PER_SECOND", 3)
    monkeypatch.setattr(module, "MOST_ADDRESSES", 2)
    monkeypatch.setattr("time.monotonic", lambda: 1.0)
    one = PingServer(LOCAL, lambda: False)
    assert [one._may_answer("10.0.0.1") for _ in range(5)] == [True] * 3 + [False] * 2
    assert all(one._may_answer(f"10.0.0.{number}") for number in range(2, 50))
    assert len(one._answers) == 2
    monkeypatch.setattr("time.monotonic", lambda: 2.0)
    assert one._may_answer("10.0.0.1")


@pytest.mark.parametrize("target", ["127.0.0.1", "::1"])
def test_both_families_on_all_addresses(target: str) -> None:
    async def test() -> None:
        one = PingServer(LOCAL, lambda: False)
        address = await one.start("::", 0)
        try:
            port = Address.parse(address).port
            answer = await ping(Address(target, port), SENDER)
            assert answer is not None
            assert answer.queue_manager == LOCAL
        finally:
            one.stop()
            await asyncio.sleep(0)

    run(test())
