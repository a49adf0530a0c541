"""Servers that answer anything: a clean refusal, in bounded time."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import BridgeError, ProtocolError
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.drain import Drain
from bridge.protocol.rpc.reader.results import Unsettled
from bridge.protocol.rpc.reader.scan import Scan
from tests.protocol.rpc.reader.fake_server import (
    CURSOR,
    RECEIVED,
    FakeServer,
    Stored,
    _failed,
    _started,
    by_low_bits,
    new_server,
)
from tests.protocol.rpc.reader.running import ORDERS, Wire, batches, orders

STATUSES = st.sampled_from(
    [
        *(0, 5, 0xC00E0003, 0xC00E0006, 0xC00E0007, 0xC00E0008, 0xC00E001B, 0xC00E001C),
        *(0xC00E001D, 0xC00E0025, 0xC00E004B, 0xC00E0050, 0xC00E0088, 0xC0000008, 0x1C00001A),
        0xFFFFFFFF,
    ]
)


class Strange(FakeServer):
    """Answers with what it is told to, then as it should."""

    def __init__(self, answers: list[Any]) -> None:
        super().__init__(matches=by_low_bits)
        self.queues = {ORDERS: []}
        for number in range(6):
            self.put(ORDERS, b"m%d" % number)
        self._answers = answers

    def call(self, connection: int, opnum: int, stub: bytes) -> bytes:
        answer = self._answers.pop(0) if self._answers else None
        match answer:
            case bytes():
                return answer
            case int() if answer and opnum in (2, 11):
                raise Fault(answer)
            case int() if answer and opnum == 7:
                return _failed(answer)
            case int() if answer and opnum in (6, 8, 9, 10):
                return struct.pack("<I", answer)
        return super().call(connection, opnum, stub)


ANSWERS = st.lists(st.none() | STATUSES | st.binary(max_size=80), max_size=30)


@given(ANSWERS, st.booleans(), st.none() | st.just(4 << 56 | 2))
def test_any_answer(answers: list[Any], is_drain: bool, after: int | None) -> None:
    server = Strange(answers)
    job = Drain(orders(), window=3) if is_drain else Scan(orders(), window=3, after=after)
    confirmed: list[bytes] = []
    try:
        for batch in batches(job, Wire(server)):
            confirmed += [read.message.body for read in batch.reads]
            batch.confirm()
    except BridgeError:
        pass
    if is_drain:
        assert len(set(confirmed)) == len(confirmed)
        assert set(server.removed) <= set(confirmed)  # nothing is removed that nobody has


class Circling(FakeServer):
    """Whatever is asked, the same message comes."""

    def __init__(self) -> None:
        super().__init__(matches=by_low_bits)
        self.queues = {ORDERS: []}
        self.same = self.put(ORDERS, b"again")

    def _start(self, key: bytes, handle: Any, stub: bytes) -> bytes:
        return _started(self.same, 0xFFFFFFFF)


@pytest.mark.parametrize("after", [None, 1, 4 << 56 | 1, 7 << 56])
def test_a_server_that_goes_round_in_circles(after: int | None) -> None:
    found = 0

    def read() -> None:
        nonlocal found
        for batch in batches(Scan(orders(), after=after), Wire(Circling())):
            found += len(batch.reads)

    with pytest.raises(ProtocolError):
        read()
    assert found <= 6


class Teasing(FakeServer):
    """Its cursor never has a message, and never an end."""

    def _by_cursor(self, handle: Any, cursor: int, action: int) -> Stored | int:
        return CURSOR if action == 0x80000001 else RECEIVED


def test_a_cursor_that_never_ends() -> None:
    server = Teasing(matches=by_low_bits)
    server.queues = {ORDERS: []}
    with pytest.raises(ProtocolError, match="come forward"):
        list(batches(Scan(orders()), Wire(server)))


def test_nothing_but_what_cannot_be_read() -> None:
    server = new_server()
    for _ in range(2000):
        stored = server.put(ORDERS, b"")
        stored.packet, stored.body_at = b"nonsense", 8
    with pytest.raises(Unsettled):
        list(batches(Drain(orders()), Wire(server)))
    assert len(server.queues[ORDERS]) == 2000
