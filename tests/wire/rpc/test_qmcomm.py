"""The stubs of qmcomm's four calls. MS-MQMP 3.1.4"""

import struct

import pytest

from bridge.model.guid import Guid
from bridge.wire.rpc import qmcomm as wire
from bridge.wire.rpc.ndr import BadStub
from bridge.wire.rpc.queue_format import QueueFormat
from bridge.wire.rpc.remote_read import Port
from tests.outside.rpc import idl

G = Guid(bytes(range(16)))
H = bytes(4) + bytes(range(16, 32))


def opened(name: QueueFormat | None) -> wire.OpenRemoteQueue:
    return wire.OpenRemoteQueue(name=name, process=1, access=2, share=3, license=G, mqs=4)


def test_open() -> None:
    call = idl.R_QMOpenRemoteQueue()
    call["pQueueFormat"] = idl.queue_format(3, 0, m_pDirectID="OS:a\\bc")
    call["dwCallingProcessID"], call["dwDesiredAccess"], call["dwShareMode"] = 1, 2, 3
    call["pLicGuid"], call["dwMQS"] = G, 4
    request = opened(QueueFormat(kind=3, text="OS:a\\bc"))
    assert wire.OpenRemoteQueue.unpack(call.getData()) == request
    assert len(request.pack()) == len(call.getData())


def test_open_of_nothing() -> None:
    raw = struct.pack("<IIII", 0, 1, 2, 3) + bytes(G) + struct.pack("<I", 4)
    assert opened(None).pack() == raw
    assert wire.OpenRemoteQueue.unpack(raw) == opened(None)


def test_what_open_answers() -> None:
    response = wire.RemoteOpened(H, 7, 7, 7, 0)
    assert response.pack() == H + struct.pack("<IIII", 7, 7, 7, 0)
    answer = idl.R_QMOpenRemoteQueueResponse(response.pack())
    assert idl.raw_handle(answer["pphContext"]) == H
    assert wire.RemoteOpened.unpack(response.pack()) == response


def test_close_is_void() -> None:
    assert wire.CloseRemoteQueueContext(H).pack() == H
    assert wire.RemoteClosed(bytes(20)).pack() == bytes(20)


def test_the_buffer_is_there_for_nothing() -> None:
    """MP-58: 228 bytes of zeros, then hQueue."""
    raw = bytes(228) + struct.pack("<I", 7)
    assert wire.CreateRemoteCursor(remote_queue=7).pack() == raw
    assert wire.CreateRemoteCursor.unpack(raw).remote_queue == 7


@pytest.mark.parametrize(("kind", "size"), [(0, 228), (1, 284), (2, 232)])
def test_its_arms(kind: int, size: int) -> None:
    """queue-manager-client.md section 2: flat sizes with Send, Receive and CreateCursor."""
    raw = struct.pack("<II", kind, kind) + bytes(size - 8) + struct.pack("<I", 7)
    assert wire.CreateRemoteCursor.unpack(raw).remote_queue == 7


def test_numbers_in_it_are_ignored_pointers_are_not() -> None:
    plain = {60, 64, 76, 84, 92, 120, 140, 152, 164, 172, 180, 188, 208}  # the table's u32
    for offset in range(8, 228, 4):
        raw = bytearray(bytes(228) + struct.pack("<I", 7))
        raw[offset] = 1
        if offset in plain:
            assert wire.CreateRemoteCursor.unpack(bytes(raw)).remote_queue == 7
        else:
            with pytest.raises(BadStub):
                wire.CreateRemoteCursor.unpack(bytes(raw))


@pytest.mark.parametrize(("kind", "tag"), [(3, 3), (0, 1), (2**32 - 1, 2**32 - 1)])
def test_bad_tags(kind: int, tag: int) -> None:
    with pytest.raises(BadStub):
        wire.CreateRemoteCursor.unpack(struct.pack("<II", kind, tag) + bytes(300))


def test_ports() -> None:
    """V1 of queue-manager-client.md section 10."""
    assert wire.GetServerPort.unpack(bytes(4)).kind == 0
    assert Port(2103).pack() == bytes.fromhex("37080000")
    assert wire.GetServerPort.OPNUM == 31
