"""qm2qm's stubs by hand, and as stock impacket writes and reads them. MS-MQQP 2.2.2, 3.1.4"""

import struct
from typing import Any

import pytest

from bridge.model.guid import Guid
from bridge.wire.rpc import qm2qm as wire
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.stub import Request
from tests.outside.rpc import idl

G = Guid(bytes(range(16)))
H = bytes(4) + bytes(range(16, 32))
ASKED = wire.ReadDescriptor(
    remote_queue=7, cursor=2, action=0x80000000, timeout_ms=9, queue=7, request_id=5
)
FLAT = struct.pack("<IIIIIIIIIHxxI", 7, 2, 0x80000000, 9, 0, 7, 5, 0, 0, 0, 0)  # 3.4: 44 bytes


def describe(described: Any) -> None:
    described["hRemoteQueue"] = described["dwQueue"] = 7
    described["hCursor"], described["ulAction"], described["ulTimeout"] = 2, 0x80000000, 9
    described["dwSize"] = described["Reserved"] = described["dwArriveTime"] = 0
    described["dwRequestID"], described["eAckNack"] = 5, 0
    described["lpBuffer"] = idl.NULL


def test_a_descriptor_by_hand() -> None:
    assert len(FLAT) == 44
    assert wire.StartReceive(ASKED).pack() == FLAT
    assert wire.StartReceive.unpack(FLAT).descriptor == ASKED
    call = idl.RemoteQMStartReceive()
    describe(call["lpRemoteReadDesc"])
    assert wire.StartReceive.unpack(call.getData()).descriptor == ASKED


def test_the_second_form_is_aligned_to_eight() -> None:
    """3.4: pointer, pad, SequentialId, then the 44 bytes; 60 bytes in all."""
    raw = struct.pack("<I4xQ", 0x20000, 3) + FLAT
    request = wire.StartReceive2(wire.ReadDescriptor2(ASKED, 3))
    assert len(raw) == 60
    assert request.pack() == raw
    assert wire.StartReceive2.unpack(raw) == request
    call = idl.RemoteQMStartReceive2()
    call["lpRemoteReadDesc2"]["SequentialId"] = 3
    describe(call["lpRemoteReadDesc2"]["pRemoteReadDesc"])
    assert wire.StartReceive2.unpack(call.getData()) == request


def test_no_descriptor() -> None:
    raw = struct.pack("<I4xQ", 0, 0)
    assert wire.StartReceive2.unpack(raw).descriptor == wire.ReadDescriptor2(None)
    assert wire.StartReceive2(wire.ReadDescriptor2(None)).pack() == raw


def test_by_lookup_id() -> None:
    request = wire.StartReceiveByLookupId(2**64 - 1, wire.ReadDescriptor2(ASKED, 0))
    raw = struct.pack("<QI4xQ", 2**64 - 1, 0x20000, 0) + FLAT
    assert request.pack() == raw
    assert wire.StartReceiveByLookupId.unpack(raw) == request


def test_an_answer_with_a_packet() -> None:
    """The handle, 20 bytes, then pad to 8; lpBuffer is conformant and varying."""
    answer = ASKED.answer(77, (b"pack", b"et"))
    response = wire.ReadStarted2(H, wire.ReadDescriptor2(answer, 3), 0)
    raw = H + bytes(4) + struct.pack("<I4xQ", 0x20000, 3)
    raw += struct.pack("<IIIIIIIIIHxxI", 7, 2, 0x80000000, 9, 6, 7, 5, 1, 77, 0, 0x20004)
    raw += struct.pack("<III6sxxI", 6, 0, 6, b"packet", 0)
    assert response.pack() == raw
    back = wire.ReadStarted2.unpack(raw).descriptor.descriptor
    assert back is not None
    assert (back.packet, back.size, back.arrived, back.reserved) == ((b"packet",), 6, 77, 1)
    theirs = idl.RemoteQMStartReceive2Response(raw)
    described = theirs["lpRemoteReadDesc2"]["pRemoteReadDesc"]
    assert bytes(described["lpBuffer"]) == b"packet"
    assert int(described["dwArriveTime"]) == 77
    old = wire.ReadStarted(H, answer, 0)
    assert bytes(idl.RemoteQMStartReceiveResponse(old.pack())["lpRemoteReadDesc"]["lpBuffer"]) == (
        b"packet"
    )


@pytest.mark.parametrize(
    ("size", "pointer", "rest"),
    [
        (0x420001, 1, b""),  # RR-41
        (4, 0, b""),  # a size, but no buffer
        (4, 1, struct.pack("<III", 5, 0, 4) + b"abcde"),
        (4, 1, struct.pack("<III", 4, 1, 4) + b"abcd"),
        (0x420000, 1, struct.pack("<III", 0x420000, 0, 0x420000) + b"abcd"),
    ],
)
def test_bad_buffers(size: int, pointer: int, rest: bytes) -> None:
    raw = struct.pack("<IIIIIIIIIHxxI", 7, 2, 0, 9, size, 7, 5, 0, 0, 0, pointer) + rest
    with pytest.raises(BadStub):
        wire.StartReceive.unpack(raw)


REQUESTS: list[tuple[Request, bytes]] = [
    (wire.EndReceive(H, 1), H + struct.pack("<I", 1)),
    (wire.OpenQueue(G, 3, 4, 5, 6), bytes(G) + struct.pack("<IIII", 3, 4, 5, 6)),
    (wire.CloseQueue(H), H),
    (wire.CloseCursor(7, 8), struct.pack("<II", 7, 8)),
    (wire.CancelReceive(7, 8, 9), struct.pack("<III", 7, 8, 9)),
    (wire.PurgeQueue(7), struct.pack("<I", 7)),
    (wire.GetServerPort(3), struct.pack("<I", 3)),
    (wire.GetVersion(), b""),
]


@pytest.mark.parametrize(("request_", "raw"), REQUESTS, ids=lambda v: type(v).__name__)
def test_plain_requests(request_: Request, raw: bytes) -> None:
    assert request_.pack() == raw
    assert type(request_).unpack(raw) == request_


def test_opnums() -> None:
    found = [request.OPNUM for request, _ in REQUESTS]
    assert sorted([*found, 0, 9, 10]) == list(range(11))


@pytest.mark.parametrize(
    ("request_", "raw"),
    [
        (wire.EndReceive, H + struct.pack("<I", 3)),
        (wire.OpenQueue, bytes(G) + struct.pack("<IIII", 17, 4, 5, 6)),
        (wire.GetServerPort, struct.pack("<I", 4)),
    ],
)
def test_ranges(request_: type[Request], raw: bytes) -> None:
    with pytest.raises(BadStub):
        request_.unpack(raw)


def test_a_version() -> None:
    assert wire.Version(6, 1, 7601).pack() == struct.pack("<BBH", 6, 1, 7601)
    answer = idl.RemoteQmGetVersionResponse(wire.Version(6, 1, 7601).pack())
    assert int(answer["pBuildNumber"]) == 7601
