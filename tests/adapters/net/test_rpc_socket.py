"""The client on a plain socket; the server has a loop of its own in another thread."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.net.rpc_socket import RpcSocket
from bridge.config import Address
from bridge.model.errors import BindRefused, ProtocolError, RpcUnavailable
from bridge.protocol.rpc.calls import AuthLevel, Fault
from tests.protocol.rpc.test_client import ack
from tests.support.rpc import ECHO, FAIL, RAW_ECHO, SOURCE_DATA, WAIT, WHO, World, world
from tests.support.waiting import eventually
from tests.wire.rpc import raw

LEVELS = [level for level in AuthLevel if level is not AuthLevel.NONE]


@pytest.fixture
def made() -> Iterator[World]:
    ready: Future[tuple[World, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        async with world() as one:
            stop = asyncio.Event()
            ready.set_result((one, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    one, loop, stop = ready.result(30)
    yield one
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)


@pytest.mark.parametrize("package", ["ntlm", "negotiate"])
def test_every_level(made: World, package: str) -> None:  # RR-8
    for level in LEVELS:
        credentials = Credentials("DOM\\ann", "secret", package, level)  # type: ignore[arg-type]
        with RpcSocket(made.address, ECHO, credentials=credentials) as client:
            assert client.call(WHO, b"").startswith(f"DOM\\ann|{level.name}".encode())
            assert client.call(RAW_ECHO, bytes(12_345)) == bytes(12_345)
            assert len(client.call(SOURCE_DATA, struct.pack("<I", 4 << 20))) == 4 + (4 << 20)


def test_several_calls_under_way(made: World) -> None:
    with RpcSocket(made.address, ECHO) as client:
        waiting = client.start(WAIT, b"")
        ids = [client.start(RAW_ECHO, bytes([n])) for n in range(5)]
        assert [client.finish(one) for one in reversed(ids)] == [
            bytes([n]) for n in (4, 3, 2, 1, 0)
        ]
        with RpcSocket(made.address, ECHO, group=client.group) as second:  # RR-51
            assert second.group == client.group
        made.echo.gate._loop.call_soon_threadsafe(made.echo.gate.set)  # type: ignore[attr-defined]
        assert client.finish(waiting) == b"waited"


def test_a_fault_and_a_time_out(made: World) -> None:
    with RpcSocket(made.address, ECHO) as client:
        with pytest.raises(Fault) as caught:
            client.call(FAIL, b"")
        assert caught.value.status == 0xC00E0003
        with pytest.raises(RpcUnavailable, match=r"within 0\.05 s"):
            client.call(WAIT, b"", timeout=0.05)
        eventually(lambda: made.echo.withdrawn == 1)
        assert client.call(RAW_ECHO, b"on") == b"on"


def test_a_wrong_password(made: World) -> None:  # RR-9
    with pytest.raises(BindRefused, match="access denied"):
        RpcSocket(made.address, ECHO, credentials=Credentials("ann", "wrong", "negotiate"))
    with (
        RpcSocket(made.address, ECHO, credentials=Credentials("ann", "wrong")) as client,
        pytest.raises(Fault, match="00000005"),
    ):
        client.call(RAW_ECHO, b"")


def test_a_closed_client(made: World) -> None:
    client = RpcSocket(made.address, ECHO)
    client.close()
    with pytest.raises(RpcUnavailable, match="closed"):
        client.call(RAW_ECHO, b"")


class Misbehaving:
    """A server that says these one by one, each after it has heard something."""

    def __init__(self, *answers: bytes, stay: bool = False) -> None:
        self._answers, self._stay = answers, stay

    def __enter__(self) -> Address:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return Address("127.0.0.1", self._listener.getsockname()[1])

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client:
            for answer in self._answers:
                client.recv(4096)
                client.sendall(answer)
            if self._stay:
                self._done.wait(30)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(30)
        self._listener.close()


def test_servers_that_misbehave() -> None:
    with Misbehaving() as address, pytest.raises(RpcUnavailable):
        RpcSocket(address, ECHO)
    with Misbehaving(b"HTTP/1.1 400 Bad\r\n\r\n") as address, pytest.raises(ProtocolError):
        RpcSocket(address, ECHO)
    with Misbehaving(raw.nak(0)) as address, pytest.raises(BindRefused):
        RpcSocket(address, ECHO)
    with Misbehaving(stay=True) as address, pytest.raises(RpcUnavailable, match="in time"):
        RpcSocket(address, ECHO, timeout=0.05)
    with Misbehaving(ack(), b"") as address:
        client = RpcSocket(address, ECHO)
        with pytest.raises(RpcUnavailable):
            client.call(1, b"")
        with pytest.raises(RpcUnavailable):
            client.call(1, b"")


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(RpcUnavailable, match=str(address)):
        RpcSocket(address, ECHO)


def test_it_needs_no_event_loop() -> None:
    code = "import sys, bridge.adapters.net.rpc_socket; sys.exit('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == 0
