"""The call sequences of MS-MQRR 4 and MS-MQQP 4 (digest remote-read.md section 6), by impacket."""

from collections.abc import Iterator

import pytest
from impacket.dcerpc.v5 import epm
from impacket.dcerpc.v5.transport import DCERPCTransportFactory
from impacket.uuid import uuidtup_to_bin

from tests.outside.appliance import Appliance
from tests.outside.rpc import idl
from tests.outside.rpc.conftest import ANN, OpenReader, Send, path
from tests.outside.rpc.reader import (
    DO_RECEIVE,
    LOOKUP_PEEK,
    LOOKUP_RECEIVE,
    NACK,
    NULL_HANDLE,
    PEEK,
    PEEK_CURRENT,
    PEEK_NEXT,
    Door,
    FaultError,
    OldReader,
    body_of,
    old_started,
    started,
)

pytestmark = pytest.mark.kafka
LONG = 30_000  # ms: longer than any of these tests
EMPTY = 0xC00E001B


def mapped_port(appliance: Appliance, interface: tuple[str, str]) -> int:
    host, port = appliance.listeners["endpoint_mapper"]
    dce = DCERPCTransportFactory(f"ncacn_ip_tcp:{host}[{port}]").get_dce_rpc()
    dce.connect()
    try:
        found = epm.hept_map(host, uuidtup_to_bin(interface), protocol="ncacn_ip_tcp", dce=dce)
    finally:
        dce.disconnect()
    return int(found.rpartition("[")[2].rstrip("]"))


def test_purge(appliance: Appliance, kept: str, send: Send, open_reader: OpenReader) -> None:
    """6.1; RR-2, RR-14: the mapper and op 0 tell the port."""
    port = appliance.listeners["rpc"][1]
    assert mapped_port(appliance, idl.REMOTE_READ) == port
    assert mapped_port(appliance, idl.QM2QM) == appliance.listeners["rpc_qp"][1]
    reader = open_reader()
    assert reader.port() == port
    queue = reader.open(path(kept))
    send(kept, b"M1", b"M2")
    assert reader.start(queue, PEEK_CURRENT, timeout=LONG).body == b"M1"
    cursor, _ = reader.create_cursor(queue)  # both are there
    reader.start(queue, PEEK_CURRENT, cursor=cursor)
    assert reader.start(queue, PEEK_NEXT, cursor=cursor, timeout=LONG).body == b"M2"
    assert reader.purge(queue) == 0
    assert reader.close_queue(queue) == (NULL_HANDLE, 0)
    again = reader.open(path(kept), PEEK)
    assert reader.start(again, PEEK_CURRENT).status == EMPTY


def test_receive(kept: str, send: Send, open_reader: OpenReader) -> None:  # 6.2
    one, other = open_reader(), open_reader()
    here, there = one.open(path(kept)), other.open(path(kept), PEEK)
    send(kept, b"M1", b"M2")
    given = one.start(here, request_id=1, timeout=LONG)
    assert (given.status, given.body) == (0, b"M1")
    assert other.start(there, PEEK_CURRENT, timeout=LONG).body == b"M2"  # RR-20
    assert one.end(here, 1) == 0
    assert other.start(there, PEEK_CURRENT).body == b"M2"
    assert one.end(here, 1) == 0xC00E0007  # RR-23: nothing is pending
    assert one.close_queue(here) == (NULL_HANDLE, 0)
    with pytest.raises(FaultError) as caught:  # RR-11: replayed
        one.start(here)
    assert caught.value.status == 0x1C00001A


def test_nack(kept: str, send: Send, open_reader: OpenReader) -> None:
    """6.3; RR-24, RR-33: headers only, then the same message at the same place."""
    reader = open_reader()
    queue = reader.open(path(kept))
    send(kept, b"M1 is long", b"M2")
    cut = reader.start(queue, request_id=1, timeout=LONG, most=0)
    (kind, alloc, first), (second_kind, second_alloc, second) = cut.sections
    assert (kind, second_kind) == (1, 2)
    assert alloc == len(first) + 12  # the body and its padding: digest 3.2
    assert second_alloc == len(second) == 12 + 148 + 28
    assert reader.end(queue, 1, NACK) == 0
    whole = reader.start(queue, request_id=2)
    assert whole.body == b"M1 is long"
    assert (whole.sequence_id, whole.arrived) == (cut.sequence_id, cut.arrived)
    assert whole.packet == first + whole.packet[len(first) : alloc] + second
    assert reader.end(queue, 2) == 0


def test_blocked_and_cancelled(kept: str, open_reader: OpenReader) -> None:
    """6.4; RR-18: the cancel comes on the connection that waits."""
    reader = open_reader()
    queue = reader.open(path(kept))
    reader.send(reader.start_request(queue, request_id=5, timeout=LONG))
    reader.send(reader.cancel_request(queue, 5))
    answers = [reader.dce.recv(), reader.dce.recv()]  # in the order they are done
    codes = sorted((len(raw), int.from_bytes(raw[-4:], "little")) for raw in answers)
    assert codes == [(4, 0), (28, 0xC00E0008)]
    assert reader.cancel(queue, 5) == 0xC0000225


def test_blocked_until_something_comes(kept: str, send: Send, open_reader: OpenReader) -> None:
    """6.5: one arrival is for one receiver; given back it is for the next."""
    reader, other = open_reader(), open_reader()
    queue = reader.open(path(kept))
    for number in (1, 2):
        reader.send(reader.start_request(queue, request_id=number, timeout=LONG))
    other_queue = other.open(path(kept))
    send(kept, b"M1")
    first = started(reader.receive(idl.R_StartReceiveResponse()))
    assert first.body == b"M1"
    assert other.start(other_queue).status == EMPTY
    reader.send(_end(reader.cancel_request(queue, 1), NACK))
    raw = [reader.dce.recv(), reader.dce.recv()]
    (answer,) = [each for each in raw if len(each) > 4]
    again = started(idl.R_StartReceiveResponse(answer))
    assert (again.body, again.sequence_id) == (b"M1", first.sequence_id)
    assert reader.end(queue, 2) == 0


def _end(cancel: object, ack: int) -> object:
    request = idl.R_EndReceive()
    request["phContext"], request["dwAck"] = cancel["phContext"], ack  # type: ignore[index]
    request["dwRequestId"] = cancel["dwRequestId"]  # type: ignore[index]
    return request


def test_cursor(kept: str, send: Send, open_reader: OpenReader) -> None:  # 6.6
    reader, other = open_reader(), open_reader()
    queue, theirs = reader.open(path(kept)), other.open(path(kept))
    send(kept, b"M1", b"M2", b"M3")
    cursor, status = reader.create_cursor(queue)
    assert status == 0
    at = {"cursor": cursor, "timeout": LONG}
    assert reader.start(queue, PEEK_NEXT, **at).status == 0xC00E001C
    assert reader.start(queue, PEEK_CURRENT, **at).body == b"M1"
    second = reader.start(queue, PEEK_NEXT, **at)
    assert second.body == b"M2"
    assert reader.start(queue, PEEK_NEXT, **at).body == b"M3"  # it is there, too
    cursor, _ = reader.create_cursor(queue)
    at = {"cursor": cursor}
    reader.start(queue, PEEK_CURRENT, **at)
    reader.start(queue, PEEK_NEXT, **at)
    taken = other.take(theirs, action=LOOKUP_RECEIVE, lookup=second.sequence_id)
    assert taken == b"M2"
    assert reader.start(queue, PEEK_CURRENT, **at).status == 0xC00E001D
    assert reader.start(queue, PEEK_NEXT, **at).body == b"M3"
    assert reader.start(queue, PEEK_NEXT, **at).status == EMPTY
    assert reader.take(queue, cursor=cursor) == b"M3"
    assert reader.close_cursor(queue, cursor) == 0
    assert reader.start(queue, DO_RECEIVE, **at).status == 0xC0000008


def test_lookup(kept: str, send: Send, open_reader: OpenReader) -> None:  # 6.7, RR-31
    reader = open_reader()
    queue = reader.open(path(kept))
    send(kept, b"M1", b"M2")
    cursor, _ = reader.create_cursor(queue)
    first = reader.start(queue, PEEK_CURRENT, cursor=cursor, timeout=LONG).sequence_id
    second = reader.start(queue, PEEK_NEXT, cursor=cursor, timeout=LONG).sequence_id
    assert reader.start(queue, LOOKUP_PEEK, lookup=second).body == b"M2"
    assert reader.start(queue, LOOKUP_PEEK + 2, lookup=second).body == b"M1"
    assert reader.start(queue, LOOKUP_PEEK + 2, lookup=first).status == 0xC00E0088
    for code in (LOOKUP_PEEK, LOOKUP_PEEK + 2, LOOKUP_RECEIVE, LOOKUP_RECEIVE + 2):
        assert reader.start(queue, code, lookup=0).status == 0xC00E0006
    assert reader.start(queue, LOOKUP_PEEK + 1, lookup=0).body == b"M1"  # MS-MQQP 3.1.4.11
    taken = reader.start(queue, LOOKUP_RECEIVE + 1, lookup=0, request_id=900)
    assert (taken.body, taken.sequence_id) == (b"M1", first)
    assert reader.end(queue, 900, NACK) == 0
    assert reader.start(queue, LOOKUP_PEEK + 2, lookup=2**64 - 1).body == b"M2"
    assert reader.take(queue, action=LOOKUP_RECEIVE + 1, lookup=first) == b"M2"  # D-2


def test_transaction_without_a_coordinator(
    kept: str, send: Send, open_reader: OpenReader
) -> None:  # 6.8, RR-35, RR-36
    reader = open_reader()
    queue = reader.open(path(kept))
    ordered = reader.open(path("ordered"))
    send(kept, b"M1")
    assert reader.enlist(path("ordered"), b"token") == 0xC00E004C
    assert reader.start(ordered, uow=b"u" * 16).status == 0xC00E0051
    assert reader.start(queue, uow=b"u" * 16).status == 0xC00E0050  # it is not transactional
    assert reader.start(ordered, PEEK_CURRENT, uow=b"u" * 16).status == 0xC00E0050
    given = reader.start(queue, request_id=9, uow=bytes(16), timeout=LONG)
    assert given.body == b"M1"
    assert reader.end(queue, 9, op=15) == 0
    assert reader.start(queue, PEEK_CURRENT).status == EMPTY


def test_rundown(kept: str, send: Send, open_reader: OpenReader) -> None:
    """6.9, RR-28: the only connection is gone."""
    reader, other = open_reader(), open_reader()
    send(kept, b"M1")
    queue = reader.open(path(kept), share=1)
    assert reader.start(queue, timeout=LONG).body == b"M1"
    with pytest.raises(FaultError) as caught:
        other.open(path(kept))
    assert caught.value.status == 0xC00E0009
    theirs = other.open(path(kept), PEEK)
    other.send(other.start_request(theirs, PEEK_CURRENT, timeout=LONG))
    reader.close()
    assert started(other.receive(idl.R_StartReceiveResponse())).body == b"M1"


class OldSession:
    """A queue opened by qmcomm and read by qm2qm, each on its own connection."""

    def __init__(self, appliance: Appliance, name: str) -> None:
        self.door = Door(appliance.listeners["rpc"], ANN)
        self.reader = OldReader(appliance.listeners["rpc_qp"], ANN)
        self.context, self.number, opened = self.door.open(path(name))
        self.handle, ready = self.reader.open(self.number)
        assert (opened, ready) == (0, 0)

    def close(self) -> None:
        self.door.close()
        self.reader.close()


@pytest.fixture
def session(appliance: Appliance, kept: str) -> Iterator[OldSession]:
    made = OldSession(appliance, kept)
    yield made
    made.close()


def test_old_receive(appliance: Appliance, kept: str, send: Send, session: OldSession) -> None:
    """6.10, RR-38"""
    send(kept, b"M1")
    door, reader, number = session.door, session.reader, session.number
    ports = appliance.listeners["rpc"][1], appliance.listeners["rpc_qp"][1]
    assert [door.port(kind) for kind in range(4)] == [*ports, 0, 0]  # MP-24
    assert [reader.port(kind) for kind in range(4)] == [*ports, 0, 0]
    assert reader.version()[:2] == (6, 1)
    assert door.close_context(session.context) == NULL_HANDLE  # MP-57: the session has it
    read, packet, status = reader.start(number, 1, timeout=LONG)
    assert (status, body_of(packet)) == (0, b"M1")
    assert int.from_bytes(packet[8:12], "little") == len(packet)  # the bare UserMessage
    assert reader.end(read) == (NULL_HANDLE, 0)
    assert reader.start(number, 1)[1:] == (b"", EMPTY)
    assert reader.close_queue(session.handle) == (NULL_HANDLE, 0)
    assert reader.start(number, 1)[2] == 0xC00E0006
    assert reader.open(number)[1] == 0xC00E0006  # the number is used up


def test_old_purge(appliance: Appliance, kept: str, send: Send, session: OldSession) -> None:
    """6.11"""
    send(kept, b"M1")
    reader, number = session.reader, session.number
    assert reader.start(number, 1, PEEK_CURRENT, LONG)[2] == 0
    assert reader.purge(number) == 0
    assert reader.start(number, 1, PEEK_CURRENT)[2] == EMPTY
    with OldReader(appliance.listeners["rpc_qp"], ANN) as stranger:
        with pytest.raises(FaultError) as caught:
            stranger.purge(number)  # a number alone must not purge
        assert caught.value.status == 0xC00E0007


def test_an_old_receive_goes_back_with_its_connection(
    appliance: Appliance, kept: str, send: Send
) -> None:
    """MS-MQQP 3.1.6.2: "the connection between the client and server is severed before the context
    handle is closed": RR_NACK."""
    first, second = OldSession(appliance, kept), OldSession(appliance, kept)
    send(kept, b"M1")
    _, packet, status = first.reader.start(first.number, 1, timeout=LONG)
    assert (status, body_of(packet)) == (0, b"M1")
    second.reader.send(second.reader.start_request(second.number, 1, timeout=LONG))
    first.reader.close()
    answer = idl.RemoteQMStartReceive2Response(second.reader.dce.recv())
    read, packet, status = old_started(answer)
    assert (status, body_of(packet)) == (0, b"M1")
    assert second.reader.end(read) == (NULL_HANDLE, 0)
    first.door.close()
    second.close()


def test_old_cancel(session: OldSession) -> None:  # 6.12
    reader, number = session.reader, session.number
    reader.send(reader.start_request(number, 4, timeout=LONG))
    reader.send(reader.cancel_request(number, 4))
    answers = sorted((reader.dce.recv(), reader.dce.recv()), key=len)
    assert answers[0] == bytes(4)
    ended = old_started(idl.RemoteQMStartReceive2Response(answers[1]))
    assert ended == (NULL_HANDLE, b"", 0x400E03E9)
