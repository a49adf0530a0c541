"""Readers that compete, wait, cancel and vanish: nobody loses a message, and order is kept."""

import socket
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.adapters.net.rpc_auth import Credentials
from bridge.adapters.net.rpc_socket import RpcSocket
from bridge.config import Address
from bridge.protocol.rpc.calls import Fault
from bridge.wire.rpc import remote_read as wire
from bridge.wire.rpc.bind import Syntax
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.stub import Result
from tests.outside.appliance import Appliance
from tests.outside.rpc import idl
from tests.outside.rpc.conftest import ANN, BOB, OpenReader, Send, path
from tests.outside.rpc.idl import queue_format
from tests.outside.rpc.reader import (
    NACK,
    PEEK,
    PEEK_CURRENT,
    Account,
    FaultError,
    Reader,
    started,
)

pytestmark = pytest.mark.kafka
LONG = 30_000
EMPTY = 0xC00E001B


def drain(reader: Reader, queue: bytes, taken: list[bytes]) -> None:
    """Until it is empty; every third one is given back first."""
    for number in range(1, 1_000):
        given = reader.start(queue, request_id=number)
        if given.status == EMPTY:
            return
        assert given.status == 0, hex(given.status)
        if number % 3 == 0:
            assert reader.end(queue, number, NACK) == 0
        else:
            taken.append(given.body)
            assert reader.end(queue, number) == 0


def test_two_compete_one_waits_one_cancels_one_vanishes(
    appliance: Appliance, kept: str, send: Send, open_reader: OpenReader
) -> None:
    """RR-20, RR-22, RR-24, RR-28: each message is received once, by whoever it may be."""
    waiting, cancelling = open_reader(), open_reader()
    queue = waiting.open(path(kept))
    waiting.send(waiting.start_request(queue, request_id=1, timeout=LONG))
    theirs = cancelling.open(path(kept))
    cancelling.send(cancelling.start_request(theirs, request_id=1, timeout=LONG))
    cancelling.send(cancelling.cancel_request(theirs, 1))
    assert sorted(len(cancelling.dce.recv()) for _ in range(2)) == [4, 28]
    bodies = [b"%03d" % number for number in range(60)]
    send(kept, *bodies)
    first = started(waiting.receive(idl.R_StartReceiveResponse()))
    assert first.body == bodies[0]
    vanishing = open_reader()
    lost = vanishing.open(path(kept))
    assert vanishing.start(lost, timeout=LONG).body == bodies[1]
    vanishing.dce.get_rpc_transport().get_socket().shutdown(socket.SHUT_RDWR)
    again = open_reader()
    mine = again.open(path(kept))
    last = again.open(path(kept), PEEK)
    again.send(again.start_request(last, 0x40000012, lookup=2**64 - 1))
    again.receive(idl.R_StartReceiveResponse())
    sets: list[list[bytes]] = [[], []]
    readers = [(again, mine), (cancelling, theirs)]
    threads = [
        threading.Thread(target=drain, args=(*reader, taken))
        for reader, taken in zip(readers, sets, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert waiting.end(queue, 1) == 0
    rest: list[bytes] = []
    while (body := left_over(waiting, queue)) is not None:
        rest.append(body)
    everything = [first.body, *sets[0], *sets[1], *rest]
    assert sorted(everything) == bodies


def left_over(reader: Reader, queue: bytes) -> bytes | None:
    """One that was out, in the hand of the other, when a reader found the queue empty."""
    given = reader.start(queue, request_id=7)
    if given.status == EMPTY:
        return None
    assert reader.end(queue, 7) == 0
    return given.body


def test_order_is_kept_through_nacks_and_a_restart(
    appliance: Appliance, kept: str, send: Send
) -> None:
    """RR-24, RR-29: locks do not outlive us, removals do."""
    bodies = [b"%d" % number for number in range(5)]
    send(kept, *bodies)
    with Reader(appliance.listeners["rpc"], ANN) as reader:
        queue = reader.open(path(kept))
        assert reader.take(queue, timeout=LONG) == bodies[0]
        assert reader.start(queue, request_id=100, timeout=LONG).body == bodies[1]
        assert reader.take(queue, timeout=LONG) == bodies[2]
        assert reader.end(queue, 100, NACK) == 0
        assert reader.start(queue, request_id=101).body == bodies[1]
        appliance.restart(kill=True)
    with Reader(appliance.listeners["rpc"], ANN) as reader:
        queue = reader.open(path(kept))
        assert [reader.take(queue) for _ in range(3)] == [bodies[1], *bodies[3:]]
        assert reader.start(queue).status == EMPTY


def test_many_pending_receives_cost_no_threads(
    appliance: Appliance, kept: str, send: Send, open_reader: OpenReader
) -> None:
    """A thousand readers wait; one message is for one of them. RR-18"""
    reader = open_reader()
    queue = reader.open(path(kept))
    send(kept, b"first")
    assert reader.take(queue, timeout=LONG) == b"first"  # whatever Kafka's client needs is there
    before = threads_of(appliance.pid)
    readers = [open_reader() for _ in range(20)]
    for each in readers:
        theirs = each.open(path(kept))
        for number in range(50):
            each.send(each.start_request(theirs, request_id=number, timeout=LONG))
    assert reader.start(queue).status == EMPTY  # all that was asked before is waiting
    assert threads_of(appliance.pid) < before + 20  # Kafka's client has its own, which come and go
    send(kept, b"one")
    assert reader.start(queue).status == EMPTY
    for each in readers:
        each.close()  # somebody had it, and gives it back
    assert reader.take(queue, timeout=LONG) == b"one"


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def denied(open_reader: OpenReader, account: Account, name: object) -> int:
    with pytest.raises(FaultError) as caught:
        open_reader(account).open(name)  # type: ignore[arg-type]
    return caught.value.status


def test_who_may_read(kept: str, open_reader: OpenReader) -> None:
    """RR-16: level too low is fault 5, no right is C00E0025; op 0 is for everybody (RR-14)."""
    for level in (1, 2, 5):
        stranger = Account(ANN.name, ANN.password, level=level)
        assert open_reader(stranger).port() > 0
        assert denied(open_reader, stranger, path(kept)) == 5
    assert denied(open_reader, BOB, path(kept)) == 0xC00E0025
    assert denied(open_reader, BOB, path("plain")) == 0xC00E0025  # no list is nobody
    assert open_reader(BOB).open(path("ordered"))  # `*` is every user
    assert open_reader(Account("EVE", "other", "shop")).open(path(kept))
    assert denied(open_reader, ANN, path("nothing")) == 0xC00E0003


def test_other_names_of_queues(appliance: Appliance, kept: str, open_reader: OpenReader) -> None:
    """RR-17; suffixes of digest 3.1."""
    reader = open_reader()
    guid, number = appliance.guid.bytes_le, 0
    for character in kept:
        number = (33 * number + ord(character)) & 0xFFFFFFFF
    for name in (
        f"TCP:127.0.0.1\\PRIVATE$\\{kept.upper()}",
        queue_format(2, 0, m_oid={"Lineage": guid, "Uniquifier": number}),
        queue_format(4, 0x82, m_gid=guid),
        queue_format(3, 0x83, m_pDirectID="OS:bridge01\\SYSTEM$;DEADXACT"),
        queue_format(3, 0x81, m_pDirectID=f"OS:bridge01\\private$\\{kept};JOURNAL"),
        queue_format(8, 5, m_pDirectSubqueueID=f"OS:bridge01\\private$\\{kept};retry"),
    ):
        queue = reader.open(name)
        assert reader.start(queue, PEEK_CURRENT).status == EMPTY
        assert reader.close_queue(queue)[1] == 0
    for name, status in (
        (f"OS:elsewhere\\private$\\{kept}", 0xC00E0003),
        (f"http://bridge01/msmq/private$/{kept}", 0xC00E0006),
        (queue_format(1, 0, m_gid=guid), 0xC00E0003),
        (queue_format(4, 0, m_gid=guid), 0xC00E0006),
    ):
        assert denied(open_reader, ANN, name) == status
    assert denied(open_reader, BOB, queue_format(4, 0x82, m_gid=guid)) == 0xC00E0025


def test_move_to_a_subqueue(kept: str, send: Send, open_reader: OpenReader) -> None:
    """MS-MQRR 3.1.4.10; the SubqueueHeader counts it."""
    reader = open_reader()
    queue = reader.open(path(kept))
    send(kept, b"M1")
    number = reader.start(queue, PEEK_CURRENT, timeout=LONG).sequence_id
    target, opened = reader.open_for_move(
        queue_format(8, 5, m_pDirectSubqueueID=f"{path(kept)};poison")
    )
    assert reader.move(queue, 1, number) == 0xC00E0007
    assert reader.move(queue, target, number + 1) == 0xC00E0088
    assert reader.move(queue, target, number, b"u" * 16) == 0xC00E0050
    assert reader.move(queue, target, number) == 0
    assert reader.start(queue, PEEK_CURRENT).status == EMPTY
    sub = reader.open(queue_format(8, 5, m_pDirectSubqueueID=f"{path(kept)};poison"))
    given = reader.start(sub, request_id=5, timeout=LONG)
    assert given.body == b"M1"
    header = given.packet[-(148 + 28) : -28]
    assert int.from_bytes(header[12:16], "little") == 1  # MoveCounter
    assert header[20:84].decode("utf-16-le").rstrip("\0") == "poison"
    assert reader.end(sub, 5) == 0
    assert reader.close_queue(opened)[1] == 0


def test_the_target_of_a_move_is_open_on_another_connection(
    kept: str, send: Send, open_reader: OpenReader
) -> None:
    """MS-MQRR 3.1.4.10: ullContextTo is found among all that the queue manager has open."""
    reader, other = open_reader(), open_reader()  # two associations
    queue = reader.open(path(kept))
    send(kept, b"M1")
    number = reader.start(queue, PEEK_CURRENT, timeout=LONG).sequence_id
    sub = queue_format(8, 5, m_pDirectSubqueueID=f"{path(kept)};poison")
    target, opened = other.open_for_move(sub)
    assert reader.move(queue, target, number) == 0
    assert reader.take(reader.open(sub), timeout=LONG) == b"M1"
    assert other.close_queue(opened)[1] == 0
    assert reader.move(queue, target, number) == 0xC00E0007


def test_a_body_of_four_megabytes(kept: str, send: Send, open_reader: OpenReader) -> None:
    reader = open_reader()
    queue = reader.open(path(kept))
    body = bytes(range(256)) * (4 * 1024 * 4 - 4)
    send(kept, body)
    assert reader.take(queue, timeout=LONG) == body


def test_a_second_connection_of_the_group_cancels(appliance: Appliance, kept: str) -> None:
    """Digest 0.4: Cancel arrives on another connection of the same association group."""
    address = Address.parse(":".join(map(str, appliance.listeners["rpc"])))
    old = Address.parse(":".join(map(str, appliance.listeners["rpc_qp"])))
    interface = Syntax(wire.REMOTE_READ, 1, 0)
    ann = Credentials("SHOP\\ann", ANN.password)
    name = QueueFormat(kind=3, text=path(kept))
    opening = wire.OpenQueue(
        queue=name,
        access=1,
        share=0,
        client=wire.REMOTE_READ,
        non_routing=1,
        major=6,
        minor=1,
        build=1,
        workgroup=0,
    )
    waiting = wire.StartReceive(
        handle=bytes(20),
        lookup_id=0,
        cursor=0,
        action=0,
        timeout_ms=LONG,
        request_id=1,
        most_body=0,
        most_compound=0,
    )
    with RpcSocket(address, interface, credentials=ann) as one:
        opened = wire.Opened.unpack(one.call(opening.OPNUM, opening.buffers()))
        started_id = one.start(waiting.OPNUM, replace(waiting, handle=opened.handle).buffers())
        # the groups belong to the process: it can be joined at the other port, too
        with RpcSocket(old, interface, credentials=ann, group=one.group) as other:
            cancel = wire.CancelReceive(opened.handle, 1)
            answer = 0xC0000225
            while answer == 0xC0000225:  # the start may come to be served after it
                answer = Result.unpack(other.call(cancel.OPNUM, cancel.buffers())).status
            assert answer == 0
        assert wire.Started.unpack(one.finish(started_id)).status == 0xC00E0008
        with RpcSocket(address, interface, credentials=ann) as stranger:
            with pytest.raises(Fault) as caught:
                stranger.call(cancel.OPNUM, cancel.buffers())
            assert caught.value.status == 0x1C00001A
