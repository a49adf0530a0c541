"""The reader on plain sockets, against real RPC with NTLM."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.place import Place
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.model.errors import BindRefused, RpcUnavailable
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.reader.finding import NotServed
from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.steps import ConnectionLost
from tests.adapters.reader.served import ANN, OneAtATime, Served, closed_port
from tests.protocol.rpc.reader.running import ORDERS

HEAVY = ("asyncio", "aiohttp", "confluent_kafka", "typer", "rich", "ruamel", "prometheus_client")


def fill(served: Served, count: int) -> list[bytes]:
    bodies = [b"m%d" % number for number in range(count)]
    for body in bodies:
        served.fake.put(ORDERS, body)
    return bodies


def quiet(served: Served, **changes: object) -> RemoteReader:
    return RemoteReader(replace(served.place(), **changes), sleep=lambda _: None)


def drained(reader: RemoteReader, **options: Any) -> list[bytes]:
    found = []
    for batch in reader.receive(ORDERS, **options):
        found += [read.message.body for read in batch.reads]
        batch.confirm()
    return found


def test_it_needs_nothing_of_the_appliance() -> None:
    """What a Spark executor imports."""
    program = (
        "import sys, bridge.adapters.reader.sync_reader, bridge.core.message_data\n"
        f"print([name for name in sys.modules if name.partition('.')[0] in {HEAVY}])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout == "[]\n"


def test_a_server_that_takes_one_call_at_a_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C706 12.6.3.1: its bind_ack has no PFC_CONC_MPX."""
    only = OneAtATime(monkeypatch)
    bodies = fill(served, 200)
    with quiet(served) as reader:
        assert [read.message.body for read in reader.scan(ORDERS)] == bodies
        assert drained(reader, wait_s=0.001) == bodies
    assert only.widest == 1
    assert served.fake.removed == bodies


def test_a_long_queue_in_parts(served: Served) -> None:
    bodies = fill(served, 300)
    with RemoteReader(served.place()) as reader:
        first, second = reader.cuts(ORDERS, 3, per_part=100)
        bounds = ((None, first), (first, second), (second, None))
        parts = [list(reader.scan(ORDERS, after=low, until=high)) for low, high in bounds]
        assert reader.cuts(ORDERS, 3) == []  # not long enough
    assert [read.message.body for part in parts for read in part] == bodies
    assert min(map(len, parts)) > 50


def test_scan(served: Served) -> None:
    bodies = fill(served, 300)
    with RemoteReader(served.place()) as reader:
        reads = list(reader.scan(ORDERS))
        assert [read.message.body for read in reads] == bodies
        some = reader.scan(ORDERS, after=reads[9].lookup_id, until=reads[19].lookup_id)
        assert [read.message.body for read in some] == bodies[10:20]
        assert reader.peek_at(ORDERS, reads[42].lookup_id).message.body == b"m42"
    assert served.reading.levels == {AuthLevel.PRIVACY}  # RR-43
    assert {user.rpartition("\\")[2] for user in served.reading.users} == {"ann"}


@pytest.mark.parametrize("level", [AuthLevel.NONE, AuthLevel.CONNECT, AuthLevel.INTEGRITY])
def test_lower_levels_by_choice(served: Served, level: AuthLevel) -> None:  # RR-43
    fill(served, 3)
    with RemoteReader(served.place(replace(ANN, level=level))) as reader:
        assert drained(reader) == [b"m0", b"m1", b"m2"]
    assert served.reading.levels == {level}


def test_large_bodies(served: Served) -> None:
    body = bytes(range(256)) * (3 << 12)
    served.fake.put(ORDERS, body)
    with RemoteReader(served.place()) as reader:
        assert [read.message.body for read in reader.scan(ORDERS)] == [body]


def test_a_window_larger_than_what_is_in_flight(served: Served) -> None:
    bodies = fill(served, 700)
    with RemoteReader(served.place()) as reader:
        assert drained(reader, window=500) == bodies
    assert served.fake.removed == bodies


def test_a_reader_that_leaves_early(served: Served) -> None:
    fill(served, 30)
    with RemoteReader(served.place()) as reader:
        for batch in reader.receive(ORDERS):
            batch.confirm(batch.reads[:1])
            break
        assert served.fake.removed == [b"m0"]
        assert next(reader.scan(ORDERS)).message.body == b"m1"


def test_an_error_of_the_reader_puts_everything_back(served: Served) -> None:
    fill(served, 5)

    def read() -> None:
        with RemoteReader(served.place()) as reader:
            for _ in reader.receive(ORDERS):
                raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        read()
    with RemoteReader(served.place()) as reader:
        assert drained(reader, wait_s=5, limit=5) == [b"m%d" % number for number in range(5)]


def test_purge_and_move(served: Served) -> None:
    served.fake.queues[f"{ORDERS};retry"] = []
    fill(served, 3)
    with RemoteReader(served.place()) as reader:
        first = next(reader.scan(ORDERS, limit=1))
        reader.move(ORDERS, first.lookup_id, f"{ORDERS};retry")
        assert served.fake.bodies(f"{ORDERS};retry") == [b"m0"]
        reader.purge(ORDERS)
        assert served.fake.bodies(ORDERS) == []
        moved = next(reader.scan(f"{ORDERS};retry"))
        (batch,) = reader.receive_at(f"{ORDERS};retry", moved.lookup_id)
        assert batch.reads[0].message.body == b"m0"


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("call", [1, 2, 5, 6, 9, 14, 30])
def test_a_connection_that_breaks(served: Served, call: int, is_done: bool) -> None:
    """Nothing lost, nothing twice, wherever it is."""
    bodies = fill(served, 40)
    served.cut_at(call, is_done=is_done)
    with quiet(served) as reader:
        assert drained(reader) == bodies
    assert served.fake.removed == bodies


def test_a_scan_whose_connection_breaks(served: Served) -> None:
    bodies = fill(served, 200)
    served.cut_at(2, 20, 70, 100, is_done=True)
    with quiet(served) as reader:
        assert [read.message.body for read in reader.scan(ORDERS)] == bodies


def test_it_does_not_try_for_ever(served: Served) -> None:
    fill(served, 1)
    served.cut_at(*range(100), is_done=False)
    with quiet(served) as reader, pytest.raises(ConnectionLost):
        list(reader.scan(ORDERS))
    assert served.reading.calls == 6


def test_a_purge_is_tried_once(served: Served) -> None:
    served.cut_at(2, is_done=True)
    with quiet(served) as reader, pytest.raises(ConnectionLost):
        reader.purge(ORDERS)
    assert served.fake.calls == [2, 6]


def test_a_wrong_password(served: Served) -> None:
    credentials = Credentials("ann", "wrong")
    with (
        RemoteReader(served.place(credentials)) as reader,
        pytest.raises((BindRefused, Refused), match=r"(?i)denied|user"),
    ):
        list(reader.scan(ORDERS))
    assert served.fake.calls == []


def test_nobody_there(served: Served) -> None:
    place = Place(host="127.0.0.1", port=served.port, credentials=ANN)
    with closed_port() as port, pytest.raises(RpcUnavailable):
        list(RemoteReader(replace(place, port=port)).scan(ORDERS))


def test_the_endpoint_mapper_first(served: Served) -> None:  # RR-43
    bodies = fill(served, 2)
    place = replace(served.place(), port=None, mapper_port=served.mapper_port)
    with RemoteReader(place) as reader:
        assert drained(reader) == bodies


def test_a_host_without_remote_read(served: Served) -> None:  # RR-44
    served.mapper.port = 0
    place = replace(served.place(), port=None, mapper_port=served.mapper_port)
    with RemoteReader(place) as reader, pytest.raises(NotServed):
        drained(reader)


def test_without_a_mapper_the_usual_ports(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:  # RR-43: 2103, then 2114
    bodies = fill(served, 2)
    with closed_port() as first, closed_port() as mapper:
        ports = (first, served.port)
        monkeypatch.setattr("bridge.adapters.reader.sync_links.PORTS", ports)
        place = replace(served.place(), port=None, mapper_port=mapper)
        with RemoteReader(place) as reader:
            assert drained(reader) == bodies
