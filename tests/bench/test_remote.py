"""The reader of the benchmark reads what is there, each way."""

from __future__ import annotations

from bridge.adapters.reader.sync_reader import RemoteReader
from tests.adapters.reader.served import Served
from tests.bench.remote import measured, receive, scan
from tests.protocol.rpc.reader.running import ORDERS


def test_both_ways() -> None:
    with Served().running() as served:
        for number in range(30):
            served.fake.put(ORDERS, b"m%d" % number)
        with RemoteReader(served.place()) as reader:
            assert scan(reader, ORDERS, 20, 8) == 20
            assert len(served.fake.bodies(ORDERS)) == 30
            assert receive(reader, ORDERS, 20, 8) == 20
            assert len(served.fake.bodies(ORDERS)) == 10


def test_figures() -> None:
    told = measured(lambda: 10)
    assert told["messages"] == 10
    assert told["per_second"] > 0
    assert told["cpu_us"] >= 0
    assert measured(lambda: 0)["cpu_us"] == 0
