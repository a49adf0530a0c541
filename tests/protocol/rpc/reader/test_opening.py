"""MS-MQRR 3.1.4.2, RR-45, RR-47: how a queue is opened, and the Starts on it, byte by byte."""

from __future__ import annotations

import struct

import pytest

from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.opening import (
    LOOKUP_PEEK_NEXT,
    PEEK_ACCESS,
    PEEK_NEXT,
    RECEIVE,
    RECEIVE_ACCESS,
    Client,
    OpenedQueue,
    close_queue,
    open_for_move,
    open_queue,
)
from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.steps import Ask, ConnectionLost, Flow
from bridge.wire.rpc.stub import Request
from tests.protocol.rpc.reader.running import orders

HANDLE = bytes(4) + bytes(range(16))


def first(flow: Flow[object]) -> Request:
    step = next(flow)
    assert isinstance(step, Ask)
    (request,) = step.requests
    return request


@pytest.mark.parametrize("access", [RECEIVE_ACCESS, PEEK_ACCESS])
@pytest.mark.parametrize("workgroup", [True, False])
def test_open(access: int, workgroup: bool) -> None:
    request = first(open_queue(orders("q"), access, Client(workgroup=workgroup)))
    text = "OS:host\\q\0".encode("utf-16-le")
    wanted = struct.pack("<BBHBxxxI", 3, 0, 0, 3, 0x20000)
    wanted += struct.pack("<III", len(text) // 2, 0, len(text) // 2) + text
    wanted += bytes(-len(wanted) % 4) + struct.pack("<II", access, 0)  # DENY_NONE
    stub = request.pack()
    assert request.OPNUM == 2
    assert stub[: len(wanted)] == wanted
    client, rest = stub[len(wanted) : len(wanted) + 16], stub[len(wanted) + 16 :]
    assert client != bytes(16)
    assert rest == struct.pack("<iBBHi", 1, 6, 1, 7601, workgroup)


def test_open_exclusively() -> None:
    """MS-MQRR 3.1.4.2: dwShareMode MQ_DENY_SHARE is 1, the DWORD behind dwAccess. A target of
    moves (3.1.4.11) MUST be opened with MQ_DENY_NONE."""
    alone = Client(exclusive=True)
    shared = first(open_queue(orders("q"), RECEIVE_ACCESS, Client())).pack()
    exclusive = first(open_queue(orders("q"), RECEIVE_ACCESS, alone)).pack()
    at = shared.index(struct.pack("<II", 1, 0) + shared[-28:-12])
    assert exclusive == shared[:at] + struct.pack("<II", 1, 1) + shared[at + 8 :]
    moving = first(open_for_move(orders("q;s"), Client())).pack()
    assert first(open_for_move(orders("q;s"), alone)).pack() == moving


@pytest.mark.parametrize("status", [0xC00E0009, 0xC0000043])
def test_our_own_lost_connection_may_still_hold_it(status: int) -> None:
    """After a lost connection a sharing violation is waited out, if we are the exclusive one."""

    def outcome(client: Client, *, is_again: bool) -> type[BaseException]:
        flow = open_queue(orders("q"), RECEIVE_ACCESS, client, is_again=is_again)
        next(flow)
        with pytest.raises((Refused, ConnectionLost)) as caught:
            flow.send((Fault(status),))
        return caught.type

    assert outcome(Client(exclusive=True), is_again=True) is ConnectionLost
    assert outcome(Client(exclusive=True), is_again=False) is Refused
    assert outcome(Client(), is_again=True) is Refused


def test_the_client_is_always_the_same() -> None:  # RR-45: a stable GUID
    stubs = {first(open_queue(orders("q"), 1, Client())).pack() for _ in range(3)}
    assert len(stubs) == 1


def test_open_for_move() -> None:  # op 11: dwAccess must be 4, share 0
    flow = open_for_move(orders("q;s"), Client())
    request = first(flow)
    assert request.OPNUM == 11
    answer = request.RESPONSE.unpack(struct.pack("<Q", 0x1234) + HANDLE)
    with pytest.raises(StopIteration) as end:
        flow.send((answer,))
    context, queue = end.value.value
    assert (context, queue.handle) == (0x1234, HANDLE)


def test_starts() -> None:  # op 7, 56 bytes; RR-47: a counter
    queue = OpenedQueue(HANDLE)
    starts = [
        (queue.start(RECEIVE, timeout_ms=500), (0, 0, 0, 500, 1)),
        (queue.start(PEEK_NEXT, cursor=9), (0, 9, 0x80000001, 0, 2)),
        (queue.start(LOOKUP_PEEK_NEXT, lookup_id=7 << 56), (7 << 56, 0, 0x40000011, 0, 3)),
    ]
    for request, fields in starts:
        wanted = HANDLE + bytes(4) + struct.pack("<QIIII", *fields) + b"\xff" * 8
        assert request.pack() == wanted
        assert len(wanted) == 56
    assert queue.start(RECEIVE, most_body=0).pack()[-8:] == bytes(8)


def test_close() -> None:
    request = first(close_queue(OpenedQueue(HANDLE)))
    assert (request.OPNUM, request.pack()) == (3, HANDLE)
