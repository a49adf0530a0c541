"""Who leads, without a Kafka; `tests/test_app.py` and `tests/chaos/test_handover.py` have one."""

import asyncio
import socket
from typing import Any

import msgspec
import pytest

from bridge.adapters import leadership
from bridge.adapters.kafka.topics import OwnTopics
from bridge.adapters.leadership import Leadership, unless
from bridge.config import Config
from bridge.model.errors import BridgeError


class FakeLease:
    def __init__(self, *_: Any, name: str, lifeline: int, **__: Any) -> None:
        self.name, self.lifeline = name, lifeline
        self.is_held, self.why = False, "no broker"
        self.wanted, self.gone = asyncio.Event(), asyncio.Event()
        self.left: list[float] = []

    async def won(self) -> None:
        await self.wanted.wait()
        self.is_held = True

    async def lost(self) -> None:
        await self.gone.wait()
        raise BridgeError("lost")

    async def leave(self, patience_s: float) -> None:
        self.left.append(patience_s)


class FakeSuccession:
    """Looks for its leader for ever."""

    ended = 0

    def __init__(self, *_: Any) -> None: ...

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            FakeSuccession.ended += 1


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeSuccession.ended = 0
    monkeypatch.setattr(leadership, "Lease", FakeLease)
    monkeypatch.setattr(leadership, "Succession", FakeSuccession)


def made(port: int | None) -> tuple[Leadership, FakeLease]:
    listen = {"host": "127.0.0.1", "lease": port}
    config = msgspec.convert({"listen": listen}, Config)
    one = Leadership({}, OwnTopics("x"), config)
    assert isinstance(one.lease, FakeLease)
    return one, one.lease


def test_from_standby_to_leader_to_nothing() -> None:
    async def test() -> None:
        one, lease = made(0)
        assert one.lifeline is not None
        assert (one.is_held, one.complaint, lease.lifeline) == (
            False,
            "no broker",
            one.lifeline.port,
        )
        here = ("127.0.0.1", one.lifeline.port)
        winning = asyncio.create_task(one.win())
        with pytest.raises(ConnectionRefusedError):  # bound, so that nobody has it; not open
            await asyncio.to_thread(socket.create_connection, here)
        lease.wanted.set()
        lost = await winning
        assert (one.is_held, one.complaint, FakeSuccession.ended) == (True, "", 1)
        (await asyncio.to_thread(socket.create_connection, here)).close()
        assert not lost.done()
        lease.gone.set()
        with pytest.raises(BridgeError, match="lost"):
            await lost
        await one.leave(3.0)
        assert lease.left == [3.0]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(socket.create_connection, here)

    asyncio.run(test())


def test_told_to_stop_while_it_waits() -> None:
    async def test() -> None:
        one, _ = made(None)
        winning = asyncio.create_task(one.win())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        winning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await winning
        assert FakeSuccession.ended == 1
        await one.leave(1.0)

    asyncio.run(test())


def test_without_a_lifeline(caplog: pytest.LogCaptureFixture) -> None:
    """The port is somebody else's as yet, or none is wanted."""

    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            one, lease = made(taken.getsockname()[1])
        assert (one.lifeline, lease.lifeline) == (None, 0)
        lease.wanted.set()
        await one.win()
        await one.leave(1.0)
        assert made(None)[0].lifeline is None

    asyncio.run(test())
    [warning] = caplog.messages
    assert warning.startswith("no lifeline, listen.lease: ")


def test_work_that_ends_with_something_else() -> None:
    async def test() -> None:
        never = asyncio.create_task(asyncio.Event().wait())
        done: list[str] = []

        async def work() -> None:
            done.append("begun")
            await asyncio.sleep(0)
            done.append("done")

        await unless(never, work())  # type: ignore[arg-type]
        assert done == ["begun", "done"]

        async def lose() -> None:
            raise BridgeError("lost")

        async def for_ever() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                done.append("cancelled")

        with pytest.raises(BridgeError, match="lost"):
            await unless(asyncio.create_task(lose()), for_ever())
        assert done[-1] == "cancelled"
        never.cancel()

    asyncio.run(test())
