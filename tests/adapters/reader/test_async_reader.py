"""The reader in an event loop: as test_sync_reader, where the two could differ."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from bridge.adapters.reader.async_reader import AsyncRemoteReader
from bridge.adapters.reader.place import Place
from bridge.model.errors import RpcUnavailable
from bridge.protocol.rpc.reader.steps import ConnectionLost
from tests.adapters.reader.served import OneAtATime, Served, closed_port
from tests.adapters.reader.test_sync_reader import fill
from tests.protocol.rpc.reader.running import ORDERS


async def no_sleep(_: float) -> None:
    return None


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


async def drained(place: Place, **options: Any) -> list[bytes]:
    found = []
    async with AsyncRemoteReader(place, sleep=no_sleep) as reader:
        async for batch in reader.receive(ORDERS, **options):
            found += [read.message.body for read in batch.reads]
            batch.confirm()
    return found


async def scanned(place: Place, **options: Any) -> list[bytes]:
    async with AsyncRemoteReader(place, sleep=no_sleep) as reader:
        return [read.message.body async for read in reader.scan(ORDERS, **options)]


def test_scan_and_receive(served: Served) -> None:
    bodies = fill(served, 300)
    assert run(scanned(served.place())) == bodies
    assert run(scanned(served.place(), limit=7)) == bodies[:7]
    assert run(drained(served.place(), window=200)) == bodies
    assert served.fake.removed == bodies


def test_a_server_that_takes_one_call_at_a_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C706 12.6.3.1: its bind_ack has no PFC_CONC_MPX."""
    only = OneAtATime(monkeypatch)
    bodies = fill(served, 200)
    assert run(scanned(served.place())) == bodies
    assert run(drained(served.place())) == bodies
    assert only.widest == 1


def test_one_message_purge_and_move(served: Served) -> None:
    served.fake.queues[f"{ORDERS};retry"] = []
    stored = [served.fake.put(ORDERS, body) for body in (b"a", b"b", b"c")]

    async def work() -> None:
        async with AsyncRemoteReader(served.place()) as reader:
            assert (await reader.peek_at(ORDERS, stored[1].lookup_id)).message.body == b"b"
            await reader.move(ORDERS, stored[1].lookup_id, f"{ORDERS};retry")
            async for batch in reader.receive(ORDERS, lookup_id=stored[2].lookup_id):
                batch.confirm()
            assert served.fake.removed == [b"c"]
            await reader.purge(ORDERS)

    run(work())
    assert served.fake.bodies(ORDERS) == []
    assert served.fake.bodies(f"{ORDERS};retry") == [b"b"]


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("call", [1, 4, 6, 9, 20])
def test_a_connection_that_breaks(served: Served, call: int, is_done: bool) -> None:
    bodies = fill(served, 40)
    served.cut_at(call, is_done=is_done)
    assert run(drained(served.place())) == bodies
    assert served.fake.removed == bodies


def test_it_does_not_try_for_ever(served: Served) -> None:
    served.cut_at(*range(100), is_done=False)
    with pytest.raises(ConnectionLost):
        run(scanned(served.place()))


def test_a_reader_that_leaves_early(served: Served) -> None:
    fill(served, 9)

    async def work() -> None:
        async with AsyncRemoteReader(served.place()) as reader:
            batches = reader.receive(ORDERS)
            batch = await anext(batches)
            batch.confirm(batch.reads[:1])
            await batches.aclose()
            assert served.fake.removed == [b"m0"]

    run(work())


def test_cancelled_while_it_waits(served: Served) -> None:  # RR-50: no Start is left unpaired
    waiting = asyncio.Event()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        served.reading.on_block = lambda: loop.call_soon_threadsafe(waiting.set)
        task = asyncio.create_task(drained(served.place(), wait_s=3600))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())
    served.reading.on_block = None
    body = fill(served, 1)
    assert run(drained(served.place(), limit=1)) == body


def test_the_endpoint_mapper_first(served: Served) -> None:  # RR-43
    bodies = fill(served, 2)
    place = replace(served.place(), port=None, mapper_port=served.mapper_port)
    assert run(scanned(place)) == bodies


def test_without_a_mapper_the_usual_ports(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:  # RR-43: 2103, then 2114
    bodies = fill(served, 2)
    with closed_port() as first, closed_port() as mapper:
        ports = (first, served.port)
        monkeypatch.setattr("bridge.adapters.reader.async_links.PORTS", ports)
        assert run(scanned(replace(served.place(), port=None, mapper_port=mapper))) == bodies


def test_nobody_there(served: Served) -> None:
    with closed_port() as port, pytest.raises(RpcUnavailable):
        run(scanned(replace(served.place(), port=port)))
