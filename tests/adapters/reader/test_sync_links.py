"""The reader on hosts that speak MS-MQQP only, on real sockets: XP, and NT 4 and 2000."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.reader.place import Place
from bridge.adapters.reader.queues import RemoteQueues
from bridge.adapters.reader.sync_reader import RemoteReader
from bridge.model.errors import BindRefused, BridgeError
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.reader.finding import NotServed
from bridge.protocol.rpc.reader.old_way import NotOffered
from bridge.protocol.rpc.reader.results import Refused
from tests.adapters.reader.old_served import OldServed
from tests.adapters.reader.served import ANN, OneAtATime, closed_port
from tests.adapters.remote_read.world import ORDERS, PLAIN

QUEUE = f"DIRECT=OS:bridge01\\{PLAIN}"
START, END, OPEN, CLOSE, PURGE, VERSION, START_2, LOOKUP = 0, 1, 2, 3, 6, 8, 9, 10


@pytest.fixture
def xp() -> Iterator[OldServed]:
    with OldServed().running() as served:
        yield served


@pytest.fixture
def nt() -> Iterator[OldServed]:
    with OldServed(is_ancient=True).running() as served:
        yield served


def quiet(place: Place) -> RemoteReader:
    return RemoteReader(place, sleep=lambda _: None)


def drained(reader: RemoteReader, **options: Any) -> list[bytes]:
    found = []
    for batch in reader.receive(QUEUE, **options):
        found += [read.message.body for read in batch.reads]
        batch.confirm()
    return found


def bodies_of(reader: RemoteReader, **options: Any) -> list[bytes]:
    return [read.message.body for read in reader.scan(QUEUE, **options)]


def test_scan_and_receive(xp: OldServed) -> None:
    bodies = xp.fill(300)
    with RemoteReader(xp.place()) as reader:
        reads = list(reader.scan(QUEUE))
        assert [read.message.body for read in reads] == bodies
        after, until = reads[9].lookup_id, reads[19].lookup_id
        assert bodies_of(reader, after=after, until=until) == bodies[10:20]
        assert reader.peek_at(QUEUE, reads[42].lookup_id).message == reads[42].message
        assert xp.left() == bodies[:100]  # of which it shows a hundred
        assert drained(reader, window=200) == bodies
    assert xp.left() == []
    assert {START_2, LOOKUP, END, OPEN, CLOSE} <= set(xp.qm2qm.opnums)
    assert START not in xp.qm2qm.opnums
    for side in (xp.qmcomm, xp.qm2qm):
        assert side.levels == {AuthLevel.PRIVACY}
        assert {user.rpartition("\\")[2] for user in side.users} == {"ann"}


def test_nothing_stays_open(xp: OldServed) -> None:
    xp.fill(3)
    with RemoteReader(xp.place()) as reader:
        assert len(bodies_of(reader)) == 3
        assert xp.do(lambda: len(xp.world.doors)) == 0
        assert xp.do(lambda: len(xp.world.owner.queues.handles)) == 0
        assert xp.do(lambda: len(xp.world.qmcomm._contexts)) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"time_to_reach_queue": 86_400, "priority": 6, "label": "Auftr\u00e4ge"},
        {"time_to_reach_queue": 0},
        {"body_type": 8, "correlation_id": bytes(range(20))},
    ],
)
def test_a_message_is_the_same_over_both_protocols(xp: OldServed, fields: dict[str, Any]) -> None:
    """TimeToReachQueue is relative in MS-MQQP and absolute in MS-MQRR 3.1.4.7. The address that a
    message came from is told in MS-MQRR only."""
    sent = xp.do(lambda: xp.world.put(b"body", **fields))
    with RemoteReader(xp.place()) as old, RemoteReader(xp.place(port=xp.new_port)) as new:
        ((one,), (other,)) = (list(reader.scan(QUEUE)) for reader in (old, new))
    assert one.message == replace(other.message, peer="")
    assert one.lookup_id == sent.lookup_id
    for name, value in fields.items():
        assert getattr(one.message, name) == value


def test_one_message_by_its_lookup_id_and_purge(xp: OldServed) -> None:
    xp.fill(5)
    with RemoteReader(xp.place()) as reader:
        places = [read.lookup_id for read in reader.scan(QUEUE)]
        for batch in reader.receive_at(QUEUE, places[3]):
            assert [read.message.body for read in batch.reads] == [b"m3"]
            batch.confirm()
        assert xp.left() == [b"m0", b"m1", b"m2", b"m4"]
        with pytest.raises(Refused, match="no such message"):
            reader.peek_at(QUEUE, places[3])
        reader.purge(QUEUE)
    assert xp.left() == []
    assert PURGE in xp.qm2qm.opnums


def test_what_is_not_confirmed_goes_back(xp: OldServed) -> None:
    bodies = xp.fill(10)
    with RemoteReader(xp.place()) as reader:
        for batch in reader.receive(QUEUE, window=4):
            batch.confirm(batch.reads[:1])
            break
    assert xp.left() == bodies[1:]


def test_moves_are_not_offered(xp: OldServed) -> None:
    xp.fill(1)
    with RemoteReader(xp.place()) as reader:
        (read,) = reader.scan(QUEUE)
        with pytest.raises(NotOffered, match="MS-MQQP only, which cannot move messages"):
            reader.move(QUEUE, read.lookup_id, f"{QUEUE};retry")
    assert xp.left() == [b"m0"]


def test_the_commands_that_look(xp: OldServed) -> None:
    xp.fill(3)
    with RemoteReader(xp.place()) as reader:
        queues = RemoteQueues(reader, "xp01")
        (plain, missing) = queues.look([QUEUE, "DIRECT=OS:bridge01\\private$\\nothing"])
        assert (plain["opens"], missing["opens"]) == (True, False)
        assert "no such queue" in missing["error"]
        rows, more = queues.peek(QUEUE, limit=2)
        assert (len(rows), more) == (2, True)
        assert len(list(queues.received(QUEUE, count=2))) == 2
        assert queues.purge(QUEUE)["purged"]
    assert xp.left() == []


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("call", [2, 3, 5, 9, 14, 20, 33])
def test_a_connection_that_breaks(xp: OldServed, call: int, is_done: bool) -> None:
    """Each message exactly once, wherever it breaks."""
    bodies = xp.fill(40)
    xp.cut_at(call, is_done=is_done)
    with quiet(xp.place()) as reader:
        assert sorted(drained(reader)) == sorted(bodies)
    assert xp.left() == []


@pytest.mark.parametrize("call", [4, 7, 12])
def test_a_scan_goes_on(xp: OldServed, call: int) -> None:
    bodies = xp.fill(60)
    xp.cut_at(call, is_done=True)
    with quiet(xp.place()) as reader:
        assert bodies_of(reader) == bodies


def test_an_exclusive_open(xp: OldServed) -> None:
    """MS-MQMP 3.1.4.2: STATUS_SHARING_VIOLATION (0xC0000043)"""
    xp.fill(3)
    alone = replace(xp.place(), exclusive=True)
    with RemoteReader(alone) as reader, RemoteReader(xp.place()) as other:
        batches = reader.receive(QUEUE, window=1)
        next(batches)
        with pytest.raises(Refused, match="another reader has the queue open") as caught:
            drained(other)
        assert caught.value.status == 0xC0000043
        batches.close()
        assert len(drained(other)) == 3


def test_one_call_at_a_time(xp: OldServed, monkeypatch: pytest.MonkeyPatch) -> None:
    only = OneAtATime(monkeypatch)
    bodies = xp.fill(100)
    with RemoteReader(xp.place()) as reader:
        assert bodies_of(reader) == bodies
        assert drained(reader) == bodies
    assert only.widest == 1


def test_a_message_that_comes_while_the_reader_waits(xp: OldServed) -> None:
    def arrive(_number: int) -> None:
        opnums = xp.qm2qm.opnums
        if opnums[-1] == START_2 and opnums.count(START_2) == 2:  # the first one does not wait
            asyncio.get_running_loop().call_soon(xp.world.put, b"late")

    xp.qm2qm.before = arrive
    with RemoteReader(xp.place()) as reader:
        assert drained(reader, wait_s=30, limit=1) == [b"late"]
    assert xp.left() == []


# -- how it is found --------------------------------------------------------------------------


def test_the_mapper_does_not_know_ms_mqrr(xp: OldServed) -> None:
    bodies = xp.fill(3)
    with RemoteReader(xp.place(port=None, mapper_port=xp.mapper_port)) as reader:
        assert drained(reader) == bodies


def test_without_a_mapper_the_usual_ports(xp: OldServed, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = xp.fill(3)
    with closed_port() as nothing:
        monkeypatch.setattr("bridge.adapters.reader.sync_links.PORTS", (nothing, xp.port))
        with RemoteReader(xp.place(port=None, mapper_port=nothing)) as reader:
            assert bodies_of(reader) == bodies


def test_a_host_that_has_neither(xp: OldServed) -> None:
    with RemoteReader(xp.place(port=xp.mapper_port)) as reader, pytest.raises(NotServed):
        drained(reader)
    xp.do(lambda: setattr(xp.world.qmcomm, "_ports", lambda: (xp.port, 0)))
    with RemoteReader(xp.place()) as reader, pytest.raises(NotServed):
        drained(reader)


def test_a_port_of_qm2qm_that_is_closed(xp: OldServed) -> None:
    with closed_port() as port:
        xp.do(lambda: setattr(xp.world.qmcomm, "_ports", lambda: (xp.port, port)))
        with RemoteReader(xp.place()) as reader, pytest.raises(BridgeError, match="refused"):
            drained(reader)


def test_a_wrong_password_is_no_reason_to_try_the_old_way(xp: OldServed) -> None:
    wrong = Credentials("ann", "wrong")
    with RemoteReader(xp.place(wrong)) as reader, pytest.raises((BindRefused, Refused)):
        drained(reader)
    assert OPEN not in xp.qm2qm.opnums


# -- NT 4 and 2000 ----------------------------------------------------------------------------


def test_a_host_without_lookup_ids(nt: OldServed) -> None:
    """MS-MQQP 3.2.4.2: RemoteQMStartReceive where RemoteQmGetVersion is not implemented."""
    bodies = nt.fill(50)
    with RemoteReader(nt.place()) as reader:
        reads = list(reader.scan(QUEUE))
        assert [read.message.body for read in reads] == bodies
        numbers = [read.lookup_id for read in reads]
        assert numbers == sorted(set(numbers))
        assert reader.cuts(QUEUE, 4, per_part=5) == []
        for unknown in (
            lambda: reader.peek_at(QUEUE, numbers[3]),
            lambda: list(reader.receive_at(QUEUE, numbers[3])),
            lambda: list(reader.scan(QUEUE, after=numbers[3])),
        ):
            with pytest.raises(Refused, match="lookup ids need Windows XP or later"):
                unknown()
        assert drained(reader) == bodies
    assert nt.left() == []
    assert {START, VERSION} <= set(nt.qm2qm.opnums)
    assert not {START_2, LOOKUP} & set(nt.qm2qm.opnums)


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("call", [2, 3, 6, 9, 12])
def test_such_a_connection_that_breaks(nt: OldServed, call: int, is_done: bool) -> None:
    bodies = nt.fill(20)
    nt.cut_at(call, is_done=is_done)
    with quiet(nt.place()) as reader:
        assert sorted(drained(reader)) == sorted(bodies)
    assert nt.left() == []


def test_a_scan_there_cannot_go_on(nt: OldServed) -> None:
    """Where it stood, nothing on the host can tell."""
    nt.fill(20)
    nt.cut_at(12, is_done=True)
    with quiet(nt.place()) as reader, pytest.raises(Refused, match="Windows XP or later"):
        bodies_of(reader)


def test_transactional_queues(xp: OldServed) -> None:
    bodies = xp.fill(5, ORDERS)
    name = f"DIRECT=OS:bridge01\\{ORDERS}"
    with RemoteReader(xp.place(ANN)) as reader:
        assert [read.message.body for read in reader.scan(name)] == bodies
