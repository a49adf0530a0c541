"""Hosts that speak MS-MQQP only, in an event loop: where this differs from test_sync_links."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.async_reader import AsyncRemoteReader
from bridge.adapters.reader.place import Place
from bridge.protocol.rpc.reader.finding import NotServed
from bridge.protocol.rpc.reader.old_way import NotOffered
from bridge.protocol.rpc.reader.results import Refused
from tests.adapters.reader.old_served import OldServed
from tests.adapters.reader.served import closed_port
from tests.adapters.reader.test_sync_links import OPEN, QUEUE


@pytest.fixture
def xp() -> Iterator[OldServed]:
    with OldServed().running() as served:
        yield served


async def count(place: Place) -> int:
    async with AsyncRemoteReader(place) as reader:
        return len([read async for read in reader.scan(QUEUE)])


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize("is_ancient", [False, True])
def test_async(is_ancient: bool) -> None:
    async def work(served: OldServed) -> tuple[list[bytes], list[bytes]]:
        async with AsyncRemoteReader(served.place()) as reader:
            seen = [read.message.body async for read in reader.scan(QUEUE)]
            taken: list[bytes] = []
            async for batch in reader.receive(QUEUE, limit=30):
                taken += [read.message.body for read in batch.reads]
                batch.confirm()
            await reader.purge(QUEUE)
            with pytest.raises(NotOffered):
                await reader.move(QUEUE, 1, f"{QUEUE};retry")
        return seen, taken

    with OldServed(is_ancient=is_ancient).running() as served:
        bodies = served.fill(60)
        assert run(work(served)) == (bodies, bodies[:30])
        assert served.left() == []


@pytest.mark.parametrize("call", [3, 9, 20])
def test_async_with_a_connection_that_breaks(xp: OldServed, call: int) -> None:
    async def no_sleep(_: float) -> None:
        return None

    async def work() -> list[bytes]:
        found: list[bytes] = []
        async with AsyncRemoteReader(xp.place(), sleep=no_sleep) as reader:
            async for batch in reader.receive(QUEUE):
                found += [read.message.body for read in batch.reads]
                batch.confirm()
        return found

    bodies = xp.fill(40)
    xp.cut_at(call, is_done=True)
    assert sorted(run(work())) == sorted(bodies)
    assert xp.left() == []


def test_async_finding(xp: OldServed) -> None:
    xp.fill(2)
    assert run(count(xp.place(port=None, mapper_port=xp.mapper_port))) == 2
    with pytest.raises(NotServed):
        run(count(xp.place(port=xp.mapper_port)))


def test_without_a_mapper_the_usual_ports(xp: OldServed, monkeypatch: pytest.MonkeyPatch) -> None:
    xp.fill(3)
    with closed_port() as nothing:
        monkeypatch.setattr("bridge.adapters.reader.async_links.PORTS", (nothing, xp.port))
        assert run(count(xp.place(port=None, mapper_port=nothing))) == 3


def test_a_host_without_qm2qm(xp: OldServed) -> None:
    xp.do(lambda: setattr(xp.world.qmcomm, "_ports", lambda: (xp.port, 0)))
    with pytest.raises(NotServed):
        run(count(xp.place()))


def test_a_wrong_password_is_no_reason_to_try_the_old_way(xp: OldServed) -> None:
    with pytest.raises(Refused):
        run(count(xp.place(Credentials("ann", "wrong"))))
    assert OPEN not in xp.qm2qm.opnums
