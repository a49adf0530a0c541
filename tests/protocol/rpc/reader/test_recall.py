"""RR-48: what was confirmed when its connection was lost."""

from __future__ import annotations

from bridge.model.guid import NULL_GUID
from bridge.protocol.rpc.reader.opening import RECEIVE_ACCESS, Client, open_queue
from bridge.protocol.rpc.reader.packets import Key, Read, key_of
from bridge.protocol.rpc.reader.recall import recall
from bridge.protocol.rpc.reader.scan import Scan
from bridge.protocol.rpc.reader.steps import Flow
from tests.protocol.rpc.reader.fake_server import FakeServer, new_server, without_top_byte
from tests.protocol.rpc.reader.running import ORDERS, Wire, batches, finish, orders


def held(server: FakeServer, count: int) -> list[Read]:
    for number in range(count):
        server.put(ORDERS, b"m%d" % number)
    return [read for batch in batches(Scan(orders()), Wire(server)) for read in batch.reads]


def recalled(reads: list[Read]) -> Flow[list[Key]]:
    queue = yield from open_queue(orders(), RECEIVE_ACCESS, Client())
    return (yield from recall(queue, reads, NULL_GUID))


def test_nothing_to_look_for() -> None:
    server = new_server()
    assert finish(recalled([]), Wire(server)) == []
    assert server.calls == [2]


def test_there_again() -> None:
    server = new_server()
    reads = held(server, 3)
    assert finish(recalled(reads[:2]), Wire(server)) == [key_of(read) for read in reads[:2]]
    assert server.removed == [b"m0", b"m1"]
    assert server.bodies(ORDERS) == [b"m2"]


def test_gone() -> None:
    server = new_server()
    reads = held(server, 2)
    server.queues[ORDERS].clear()
    wire = Wire(server)
    assert finish(recalled(reads), wire) == []
    assert wire.pauses == []  # nobody holds it: no use in waiting


def test_under_the_other_spelling() -> None:  # RR-55
    server = new_server()
    reads = held(server, 1)
    server.matches = without_top_byte
    assert finish(recalled(reads), Wire(server)) == [key_of(reads[0])]


def test_held_for_a_while() -> None:  # a peek of a locked message says C00E0050
    server = new_server()
    reads = held(server, 1)
    server.queues[ORDERS][0].lock = (b"the lost one", 1)
    wire = Wire(server)

    def let_go() -> None:
        if len(wire.pauses) == 2:
            server.queues[ORDERS][0].lock = None

    wire.on_pause = let_go
    assert finish(recalled(reads), wire) == [key_of(reads[0])]
    assert len(wire.pauses) == 2
