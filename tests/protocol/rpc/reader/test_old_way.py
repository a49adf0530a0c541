"""Calls of MS-MQRR over MS-MQQP, byte by byte as the IDL of MS-MQQP 6 and MS-MQMP 6 has them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from bridge.model.errors import ProtocolError
from bridge.protocol.rpc.calls import Fault
from bridge.protocol.rpc.reader.old_way import NotOffered, OldWay, Side, Talk, is_numbered
from bridge.protocol.rpc.reader.opening import Client, OpenedQueue, open_queue
from bridge.protocol.rpc.reader.results import Refused
from bridge.protocol.rpc.reader.steps import Answer, Ask
from bridge.wire.rpc import remote_read as new
from bridge.wire.rpc.qm2qm import Version
from bridge.wire.rpc.remote_read import ACK, NACK
from bridge.wire.rpc.stub import Request, Result
from tests.outside.rawmsmq import Message, build, direct
from tests.protocol.rpc.reader.fake_server import SOURCE
from tests.protocol.rpc.reader.running import orders

CONTEXT = bytes(4) + b"c" * 16
SESSION = bytes(4) + b"s" * 16
READ = bytes(4) + b"r" * 16
NULL = bytes(20)
PH_QUEUE, DWP_QUEUE, DW_CONTEXT = 0x11, 0x22, 0x33  # NT 4: they may differ. MS-MQMP 3.1.4.2 <27>
NO_SUCH_CALL = 0x1C010002


def opening(share: int = 0) -> Request:
    step = next(open_queue(orders("q"), 1, Client(exclusive=bool(share))))
    assert isinstance(step, Ask)
    return step.requests[0]


class Host:
    """Runs talks with answers that are written down; keeps what was asked."""

    def __init__(self, *, is_numbered: bool = True) -> None:
        self.way = OldWay(is_numbered=is_numbered)
        self.asked: list[tuple[Side, int, bytes]] = []

    def run(self, request: Request, *answers: bytes | Fault) -> Answer:
        talk: Talk = self.way.talk(request)
        left = list(answers)
        try:
            call = next(talk)
            while True:
                self.asked.append((call.side, call.request.OPNUM, call.request.pack()))
                answer = left.pop(0)
                known: Answer = (
                    answer if isinstance(answer, Fault) else call.request.RESPONSE.unpack(answer)
                )
                call = talk.send(known)
        except StopIteration as end:
            assert not left
            found: Answer = end.value
            return found

    def open(self, share: int = 0) -> OpenedQueue:
        opened = CONTEXT + struct.pack("<IIII", DW_CONTEXT, DWP_QUEUE, PH_QUEUE, 0)
        answer = self.run(opening(share), opened, SESSION + bytes(4), NULL)
        assert answer == new.Opened(SESSION)
        self.last = self.asked[-3:]
        self.asked.clear()
        return OpenedQueue(SESSION)


def packet(**fields: Any) -> bytes:
    known: dict[str, Any] = {"source": SOURCE, "message_id": 1, "body": b"body"}
    known["destination"] = direct("OS:host\\q")
    return build(Message(**known | {"sent_time": 1_700_000_000, "ttrq": 86_400} | fields))


def descriptor(action: int, request_id: int, cursor: int = 0, timeout_ms: int = 0) -> bytes:
    """REMOTEREADDESC, as a client sends it: dwSize 0, lpBuffer NULL. MS-MQQP 2.2.2.1"""
    head = struct.pack("<IIIIII", PH_QUEUE, cursor, action, timeout_ms, 0, DWP_QUEUE)
    return head + struct.pack("<IIIHxxI", request_id, 0, 0, 0, 0)


def answered(data: bytes, arrived: int = 1_700_000_123) -> bytes:
    """The same, as a server answers: a conformant varying array of dwSize bytes."""
    head = struct.pack("<IIIIII", PH_QUEUE, 0, 0, 0, len(data), DWP_QUEUE)
    head += struct.pack("<IIIHxxI", 1, 1, arrived, 0, 0x20000)
    head += struct.pack("<III", len(data), 0, len(data)) + data
    return head + bytes(-len(head) % 4)


def started2(data: bytes, number: int, handle: bytes) -> bytes:
    """pphContext, REMOTEREADDESC2 (aligned to 8 by its ULONGLONG), HRESULT."""
    stub = handle + bytes(4) + struct.pack("<IxxxxQ", 0x20000, number)
    return stub + answered(data) + bytes(4)


def test_open() -> None:
    """MS-MQMP 4.2 steps 5, 8 and 11, on one machine: R_QMOpenRemoteQueue, RemoteQMOpenQueue,
    R_QMCloseRemoteQueueContext."""
    host = Host()
    host.open(share=1)
    (side, opnum, stub), (other, second, session), (last, third, closing) = host.last
    assert (side, opnum, other, second) == (Side.QMCOMM, 2, Side.QM2QM, 2)
    text = "OS:host\\q\0".encode("utf-16-le")
    wanted = struct.pack("<IBBHBxxxI", 0x20000, 3, 0, 0, 3, 0x20004)  # unique pointers
    wanted += struct.pack("<III", len(text) // 2, 0, len(text) // 2) + text
    wanted += bytes(-len(wanted) % 4)
    license_at = len(wanted) + 12
    wanted += struct.pack("<III", 0, 1, 1)  # dwCallingProcessID, MQ_RECEIVE_ACCESS, exclusive
    license_guid = stub[license_at : license_at + 16]
    assert stub == wanted + license_guid + bytes(4)  # dwMQS: not declared
    assert license_guid != bytes(16)
    numbers = struct.pack("<IIII", 0, PH_QUEUE, DWP_QUEUE, DW_CONTEXT)
    assert session == license_guid + numbers
    assert (last, third, closing) == (Side.QMCOMM, 3, CONTEXT)


@pytest.mark.parametrize("status", [0xC00E0003, 0xC0000043])
def test_an_open_that_fails_is_a_fault(status: int) -> None:
    """As in MS-MQRR 3.1.4.2."""
    host = Host()
    answer = host.run(opening(), NULL + struct.pack("<IIII", 0, 0, 0, status))
    assert isinstance(answer, Fault)
    assert answer.status == status
    opened = CONTEXT + struct.pack("<IIII", 3, 2, 1, 0)
    answer = host.run(opening(), opened, NULL + struct.pack("<I", status), NULL)
    assert isinstance(answer, Fault)
    assert host.asked[-1] == (Side.QMCOMM, 3, CONTEXT)  # the queue does not stay open
    answer = host.run(opening(), Fault(5))
    assert isinstance(answer, Fault)
    assert answer.status == 5


def test_receive_and_end() -> None:
    """RemoteQMStartReceive2 (opnum 9), RemoteQMEndReceive (opnum 1) by the handle of the read."""
    host = Host()
    queue = host.open()
    data = packet()
    answer = host.run(queue.start(0, timeout_ms=500), started2(data, 0x77, READ))
    assert host.asked == [
        (
            Side.QM2QM,
            9,
            struct.pack("<IxxxxQ", 0x20000, 0) + descriptor(0, 1, timeout_ms=500),
        )
    ]
    assert isinstance(answer, new.Started)
    assert (answer.status, answer.arrived, answer.sequence_id) == (0, 1_700_000_123, 0x77)
    (section,) = answer.sections
    assert (section.kind, section.alloc) == (0, len(data))
    # TimeToReachQueue is relative here; MS-MQRR 3.1.4.7 wants SentTime + TimeToReachQueue.
    assert section.data == data[:12] + struct.pack("<I", 1_700_086_400) + data[16:]
    ended = host.run(new.EndReceive(SESSION, NACK, 1), NULL + bytes(4))
    assert host.asked[-1] == (Side.QM2QM, 1, READ + struct.pack("<I", NACK))
    assert ended == Result(0)
    assert host.run(new.EndReceive(SESSION, ACK, 1)) == Result(0xC00E0007)  # nothing is called


def test_a_time_without_end_stays_so() -> None:
    host = Host()
    queue = host.open()
    data = packet(ttrq=0xFFFFFFFF)
    answer = host.run(queue.start(0x80000000), started2(data, 1, NULL))
    assert isinstance(answer, new.Started)
    assert answer.sections[0].data == data


def test_a_peek_has_no_handle() -> None:
    """MS-MQQP 3.1.4.1: "This handle MUST NOT be set upon failure, or for peek calls": it is not
    used, whatever it is."""
    host = Host()
    queue = host.open()
    for action in (0x80000000, 0x40000010, 0x40000011, 0x40000012):
        start = queue.start(action, lookup_id=5 if action & 0x40000000 else 0)
        host.run(start, started2(packet(), 1, READ))
        assert host.run(new.EndReceive(SESSION, ACK, start.request_id)) == Result(0xC00E0007)


def test_lookup() -> None:
    """RemoteQMStartReceiveByLookupId (opnum 10): LookupId, then REMOTEREADDESC2."""
    host = Host()
    queue = host.open()
    host.run(queue.start(0x40000020, lookup_id=0x0400000000000009), started2(packet(), 9, READ))
    wanted = struct.pack("<QIxxxxQ", 0x0400000000000009, 0x20000, 0) + descriptor(0x40000020, 1)
    assert host.asked == [(Side.QM2QM, 10, wanted)]
    assert host.run(new.EndReceive(SESSION, ACK, 1), NULL + bytes(4)) == Result(0)


def test_cursors_purge_and_close() -> None:
    host = Host()
    queue = host.open()
    made = host.run(new.CreateCursor(SESSION), struct.pack("<II", 99, 0))
    side, opnum, stub = host.asked[-1]
    assert (made, side, opnum) == (new.CursorCreated(99, 0), Side.QMCOMM, 4)
    assert stub[-4:] == struct.pack("<I", PH_QUEUE)
    assert not any(stub[:-4])  # CACTransferBufferV1: zeros. MS-MQMP 3.1.4.4 <29>
    host.run(queue.start(0x80000001, cursor=99), started2(packet(), 1, NULL))
    assert descriptor(0x80000001, 1, cursor=99) in host.asked[-1][2]
    assert host.run(new.CloseCursor(SESSION, 99), bytes(4)) == Result(0)
    assert host.asked[-1] == (Side.QM2QM, 4, struct.pack("<II", PH_QUEUE, 99))
    assert host.run(new.PurgeQueue(SESSION), bytes(4)) == Result(0)
    assert host.asked[-1] == (Side.QM2QM, 6, struct.pack("<I", PH_QUEUE))
    assert host.run(new.PurgeQueue(SESSION), Fault(0xC00E0025)) == Result(0xC00E0025)  # <18>
    assert host.run(new.CloseQueue(SESSION), NULL + bytes(4)) == new.Closed(NULL, 0)
    assert host.asked[-1] == (Side.QM2QM, 3, SESSION)
    with pytest.raises(Refused):
        host.run(new.PurgeQueue(SESSION))


@pytest.mark.parametrize("failure", [Fault(5), 0xC00E001B, 0xC000000D])
def test_failures_of_a_start(failure: Fault | int) -> None:
    host = Host()
    queue = host.open()
    if isinstance(failure, Fault):
        answer = host.run(queue.start(0), failure)
        assert answer == new.Started(status=5)
        return
    nothing = NULL + bytes(4) + struct.pack("<IxxxxQ", 0x20000, 0) + answered(b"")[:-12]
    nothing = nothing[:-4] + bytes(4) + struct.pack("<I", failure)  # lpBuffer is NULL
    assert host.run(queue.start(0), nothing) == new.Started(status=failure)
    made = host.run(new.CreateCursor(SESSION), struct.pack("<II", 0, 0xC00E0007))
    assert made == new.CursorCreated(0, 0xC00E0007)


def test_an_answer_without_a_descriptor() -> None:
    host = Host()
    queue = host.open()
    with pytest.raises(ProtocolError, match="REMOTEREADDESC"):
        host.run(queue.start(0), READ + bytes(4) + struct.pack("<IxxxxQ", 0, 1) + bytes(4))


def test_a_packet_that_is_too_short_is_handed_on() -> None:
    """`read_of` refuses it: a receive is then ended with NACK."""
    host = Host()
    queue = host.open()
    answer = host.run(queue.start(0), started2(b"short", 1, READ))
    assert isinstance(answer, new.Started)
    assert answer.sections[0].data == b"short"


# -- NT 4 and 2000 ----------------------------------------------------------------------------


def test_versions() -> None:
    """MS-MQQP 3.2.4.2: RemoteQMStartReceive if pMajor is less than 5, or 5 with pMinor less than 1.
    3.1.4.9 <21>: "not implemented by Windows NT or Windows 2000"."""
    assert not is_numbered(Fault(NO_SUCH_CALL))
    assert not is_numbered(Version(4, 9, 1))
    assert not is_numbered(Version(5, 0, 2195))
    for version in (Version(5, 1, 1020), Version(5, 2, 1716), Version(6, 0, 6000)):
        assert is_numbered(version)
    with pytest.raises(Refused):
        is_numbered(Fault(5))


def test_start_receive() -> None:
    """RemoteQMStartReceive (opnum 0): a REMOTEREADDESC, and no SequentialId."""
    host = Host(is_numbered=False)
    queue = host.open()
    answers = [host.run(queue.start(0), READ + answered(packet()) + bytes(4)) for _ in range(2)]
    assert host.asked[0] == (Side.QM2QM, 0, descriptor(0, 1))
    numbers = [answer.sequence_id for answer in answers if isinstance(answer, new.Started)]
    assert numbers == [1, 2]  # in the order in which they came
    assert host.run(new.EndReceive(SESSION, ACK, 2), NULL + bytes(4)) == Result(0)


def test_no_lookup_there() -> None:
    host = Host(is_numbered=False)
    queue = host.open()
    answer = host.run(queue.start(0x40000010, lookup_id=7))
    assert isinstance(answer, Fault)
    assert answer.status == NO_SUCH_CALL
    assert host.asked == []


def test_what_ms_mqqp_does_not_have() -> None:
    way = OldWay(is_numbered=True)
    for request, words in (
        (new.MoveMessage(SESSION, 1, 1), "cannot move"),
        (new.CancelReceive(SESSION, 1), "CancelReceive"),
        (new.SetUserAcknowledgementClass(SESSION, 1, 1), "SetUserAcknowledgementClass"),
    ):
        with pytest.raises(NotOffered, match=words):
            way.talk(request)
