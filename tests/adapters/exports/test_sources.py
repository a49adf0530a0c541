"""Where an export's messages come from: both kinds keep the same promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bridge.adapters.exports.sources import ApplianceSource, RemoteSource, Source
from bridge.adapters.net.queue_client import QueueRefused
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.core.message_data import MessageData, as_json, data_of
from bridge.model.guid import Guid
from tests.adapters.reader.served import Served
from tests.core.messages import plain
from tests.protocol.rpc.reader.fake_server import SOURCE
from tests.protocol.rpc.reader.running import ORDERS

HERE = Guid(SOURCE.bytes_le)


class FakeClient:
    """The admin port of an appliance: peek by pages, receive at once."""

    def __init__(self) -> None:
        self.held: dict[int, dict[str, Any]] = {}
        self.received: list[int] = []

    def put(self, body: bytes) -> None:
        number = len(self.held) + 1
        message = plain(number, body=body, lookup_id=number, source=HERE)
        self.held[number] = as_json(data_of(message, ORDERS)) | {"locked": False}

    def peek(
        self, queue: str, *, limit: int, after: int | None = None, lookup_id: int | None = None
    ) -> tuple[list[dict[str, Any]], bool]:
        assert (queue, lookup_id) == (ORDERS, None)
        rows = [row for number, row in self.held.items() if number > (after or 0)]
        return rows[: min(limit, 7)], len(rows) > min(limit, 7)

    def receive(
        self, queue: str, *, lookup_id: int | None = None, wait_s: float = 0
    ) -> dict[str, Any] | None:
        assert lookup_id is not None
        if lookup_id not in self.held:
            raise QueueRefused("message not found", "message_not_found")
        self.received.append(lookup_id)
        return self.held.pop(lookup_id)


class World:
    """A source with what is behind it."""

    def __init__(self, source: Source, served: Served | None, client: FakeClient | None) -> None:
        self.source, self._served, self._client = source, served, client

    def put(self, count: int) -> None:
        for number in range(count):
            if self._served is not None:
                self._served.fake.put(ORDERS, b"m%d" % number)
            if self._client is not None:
                self._client.put(b"m%d" % number)

    def left(self) -> int:
        if self._served is not None:
            return len(self._served.fake.queues[ORDERS])
        assert self._client is not None
        return len(self._client.held)


@pytest.fixture(params=["remote", "appliance"])
def world(request: pytest.FixtureRequest, served: Served) -> Iterator[World]:
    if request.param == "appliance":
        client = FakeClient()
        yield World(ApplianceSource(client, ORDERS), None, client)  # type: ignore[arg-type]
        return
    with RemoteReader(served.place(), sleep=lambda _: None) as reader:
        yield World(RemoteSource(reader, ORDERS), served, None)


def bodies(found: list[MessageData]) -> list[int]:
    return [int(data.body[1:]) for data in found]


def peeked(source: Source, after: int | None = None, limit: int | None = None) -> list[int]:
    return [n for page in source.peek(after=after, limit=limit) for n in bodies(page)]


def taken(source: Source, limit: int | None = None, **seen: int) -> list[int]:
    found = []
    for batch in source.take(seen={(HERE, n) for n in seen.values()}, limit=limit):
        found += bodies(batch.messages)
        batch.confirm()
    return found


def test_peek(world: World) -> None:
    world.put(30)
    assert peeked(world.source) == list(range(30))
    assert peeked(world.source, limit=11) == list(range(11))
    assert peeked(world.source, limit=0) == []
    assert world.left() == 30
    assert world.source.queue == ORDERS


def test_peek_behind(world: World) -> None:
    world.put(30)
    pages = list(world.source.peek(after=None, limit=10))
    assert peeked(world.source, after=pages[-1][-1].lookup_id) == list(range(10, 30))


def test_take(world: World) -> None:
    world.put(30)
    assert taken(world.source) == list(range(30))
    assert world.left() == 0
    assert (world.source.removed, world.source.repeated, world.source.elsewhere) == (30, 0, 0)


def test_take_some(world: World) -> None:
    world.put(30)
    assert taken(world.source, limit=12) == list(range(12))
    assert world.left() == 18


def test_what_an_earlier_run_has(world: World) -> None:  # RR-48
    world.put(5)
    assert taken(world.source, first=1, second=2) == [2, 3, 4]
    assert world.left() == 0
    assert world.source.repeated == 2


def test_what_is_not_confirmed_stays(world: World) -> None:
    world.put(3)
    batches = world.source.take(seen=set(), limit=None)
    assert bodies(next(batches).messages) == [0, 1, 2]
    batches.close()
    assert world.left() == 3
    assert world.source.removed == 0
    assert taken(world.source) == [0, 1, 2]


def test_what_is_confirmed_is_removed_when_the_reader_stops(world: World) -> None:
    world.put(3)
    batches = world.source.take(seen=set(), limit=None)
    next(batches).confirm()
    with pytest.raises(StopIteration):
        next(batches)
    assert world.left() == 0


def test_somebody_else_was_faster() -> None:
    client = FakeClient()
    client.put(b"m0")
    client.put(b"m1")
    source = ApplianceSource(client, ORDERS)  # type: ignore[arg-type]
    for batch in source.take(seen=set(), limit=None):
        del client.held[1]
        batch.confirm()
    assert (source.removed, source.elsewhere) == (1, 1)


def test_what_others_hold_is_not_ours() -> None:
    client = FakeClient()
    for number in range(3):
        client.put(b"m%d" % number)
    client.held[2]["locked"] = True
    assert taken(ApplianceSource(client, ORDERS)) == [0, 2]  # type: ignore[arg-type]
    assert list(client.held) == [2]


def test_what_cannot_be_read_is_named(served: Served) -> None:
    served.fake.put(ORDERS, b"m0")
    broken = served.fake.put(ORDERS, b"m1")
    broken.packet, broken.body_at, broken.body_size = broken.packet[:40], 40, 0
    with RemoteReader(served.place()) as reader:
        source = RemoteSource(reader, ORDERS)
        assert peeked(source) == [0]
        assert [number & 0xFF for number in source.unreadable] == [2]
