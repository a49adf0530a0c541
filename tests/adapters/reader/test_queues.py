"""Queues of another host, for the commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.adapters.reader.queues import NoSuchMessage, RemoteQueues
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.core.message_data import read_data
from bridge.protocol.rpc.reader.results import Refused
from tests.adapters.reader.served import Served
from tests.protocol.rpc.reader.running import ORDERS


@pytest.fixture
def queues(served: Served) -> Iterator[RemoteQueues]:
    for number in range(10):
        served.fake.put(ORDERS, b"m%d" % number)
    with RemoteReader(served.place(), sleep=lambda _: None) as reader:
        yield RemoteQueues(reader, "127.0.0.1")


def bodies(rows: list[dict[str, object]]) -> list[bytes]:
    return [read_data(row).body for row in rows]


def test_peek(queues: RemoteQueues) -> None:
    rows, more = queues.peek(ORDERS, limit=4)
    assert (bodies(rows), more) == ([b"m0", b"m1", b"m2", b"m3"], True)
    rows, more = queues.peek(ORDERS, limit=6, after=rows[-1]["lookup_id"])
    assert (bodies(rows), more) == ([b"m4", b"m5", b"m6", b"m7", b"m8", b"m9"], False)
    one, more = queues.peek(ORDERS, limit=1, lookup_id=rows[0]["lookup_id"])
    assert (bodies(one), more) == ([b"m4"], False)


def test_receive(queues: RemoteQueues, served: Served) -> None:
    assert bodies(list(queues.received(ORDERS, count=3))) == [b"m0", b"m1", b"m2"]
    assert served.fake.removed == [b"m0", b"m1", b"m2"]
    assert len(list(queues.received(ORDERS, count=100))) == 7
    assert list(queues.received(ORDERS, count=1)) == []


def test_who_stops_has_taken_what_was_shown(queues: RemoteQueues, served: Served) -> None:
    rows = queues.received(ORDERS, count=3)
    next(rows)
    rows.close()
    assert served.fake.removed == [b"m0"]
    assert len(served.fake.bodies(ORDERS)) == 9


def test_receive_one(queues: RemoteQueues, served: Served) -> None:
    number = served.fake.queues[ORDERS][4].lookup_id
    assert bodies(list(queues.received(ORDERS, count=1, lookup_id=number))) == [b"m4"]
    with pytest.raises(NoSuchMessage, match=str(number)):
        list(queues.received(ORDERS, count=1, lookup_id=number))


def test_purge(queues: RemoteQueues, served: Served) -> None:
    assert queues.purge(ORDERS) == {"queue": ORDERS, "host": "127.0.0.1", "purged": True}
    assert served.fake.bodies(ORDERS) == []


def test_look(queues: RemoteQueues, served: Served) -> None:
    served.fake.queues["system$;deadletter"] = []
    first, second, third = queues.look([ORDERS, ";deadletter", "nope"])
    assert (first["queue"], first["opens"], bodies([first["first"]])) == (ORDERS, True, [b"m0"])
    assert (second["opens"], second["first"]) == (True, None)
    assert (third["opens"], third["first"]) == (False, None)
    assert "no such queue" in third["error"]


def test_a_queue_that_is_not_there(queues: RemoteQueues) -> None:
    with pytest.raises(Refused):
        queues.peek("nope", limit=1)
