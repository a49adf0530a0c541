"""Opnums, stubs and levels, before an interface sees a call. RR-11"""

import pytest

from bridge.adapters.remote_read.served import Entry, ServedInterface
from bridge.core.remote_read.access import ReadAccess
from bridge.core.remote_read.codes import Failed
from bridge.core.retained.errors import Refused, Status
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel, Call, Fault
from bridge.wire.rpc.remote_read import CloseCursor, CreateCursor, EndReceive, GetServerPort, Port
from bridge.wire.rpc.stub import Result
from tests.adapters.remote_read.world import ask, call, running

H = bytes(20)


def answer(_call: Call, request: CloseCursor) -> Result:
    return Result(request.cursor)


async def later(_call: Call, _request: EndReceive) -> Result:
    raise Refused(Status.IO_TIMEOUT)


def fails(_call: Call, _request: CreateCursor) -> Result:
    raise Failed(7)


INTERFACE = ServedInterface(
    Guid(bytes(16)),
    ReadAccess(AuthLevel.PRIVACY, has_users=True),
    (
        Entry(CloseCursor, answer),
        Entry(EndReceive, later),
        Entry(CreateCursor, fails),
        Entry(GetServerPort, lambda _call, _request: Port(5), is_open=True),
    ),
)


async def fault(request: Call) -> int:
    with pytest.raises(Fault) as caught:
        await INTERFACE.call(request)
    return caught.value.status


@running
async def test_calls_and_faults() -> None:
    strong = AuthLevel.PRIVACY
    assert (await ask(INTERFACE, CloseCursor(H, 9), Result, level=strong)).status == 9
    assert await fault(call(CloseCursor(H, 9), level=strong, opnum=1)) == 0x1C010002
    assert await fault(call(CloseCursor(H, 9), level=strong, opnum=2**16 - 1)) == 0x1C010002
    assert await fault(call(CloseCursor(H, 9), level=strong, stub=b"short")) == 0x6F7
    assert await fault(call(EndReceive(H, 1, 1), level=strong)) == 0xC00E001B  # RR-15
    assert await fault(call(CreateCursor(H), level=strong)) == 7


@running
async def test_a_level_that_is_too_low() -> None:
    """RR-14: what is open is open at any level."""
    for level in AuthLevel:
        assert (await ask(INTERFACE, GetServerPort(), Port, level=level)).port == 5
        if level < AuthLevel.PRIVACY:
            assert await fault(call(CloseCursor(H, 9), level=level)) == 5
            assert await fault(call(CloseCursor(H, 9), level=level, stub=b"")) == 5  # first


def test_nothing_to_run_down() -> None:
    INTERFACE.rundown(1)
