"""Targets for remote read: every stub, and the packets that a reader gets."""

from __future__ import annotations

from contextlib import suppress

from bridge.core.remote_read.actions import plainly_wanted, wanted, wanted_by_lookup
from bridge.core.remote_read.naming import Home, queue_of
from bridge.core.retained.errors import Refused
from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.model.message import Message
from bridge.wire.binary.extension import Extension, Subqueue
from bridge.wire.binary.replied import read_reply
from bridge.wire.binary.reply import bare_packet, reply_packet
from bridge.wire.rpc import endpoint_mapper, management, qm2qm, qmcomm, remote_read
from bridge.wire.rpc.ndr import BadStub, Reader
from bridge.wire.rpc.queue_format import QueueFormat, read_queue_format
from bridge.wire.rpc.sections import check, split
from bridge.wire.rpc.stub import Request, Stub
from bridge.wire.rpc.tower import Tower

LOCAL = Guid(bytes(range(16)))
H = bytes(4) + LOCAL
_NAME = QueueFormat(kind=3, text="OS:host\\private$\\q;JOURNAL", suffix=0x81)
_HOME = Home(guid=LOCAL, is_ours={"host"}.__contains__, path_of={9: "private$\\q"}.get)


def _requests() -> list[type[Request]]:
    """All there are, in one order."""
    modules = remote_read, qm2qm, qmcomm, endpoint_mapper, management
    found = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Request) and value is not Request
    ]
    return sorted(set(found), key=lambda kind: (kind.__module__, kind.OPNUM))


REQUESTS = _requests()


def rpc_stubs(data: bytes) -> None:
    """What can be read can be written, and is the same again: requests and their answers."""
    request = REQUESTS[data[0] % len(REQUESTS)] if data else REQUESTS[0]
    kinds: tuple[type[Stub], ...] = (request, request.RESPONSE)
    for kind in kinds:
        with suppress(BadStub):
            found = kind.unpack(data[1:])
            assert kind.unpack(found.pack()) == found


def queue_formats(data: bytes) -> None:
    with suppress(BadStub, Refused):
        name = queue_of(read_queue_format(Reader(data)), _HOME)
        assert name == name.lower()


def towers(data: bytes) -> None:
    with suppress(BadStub):
        tower = Tower.unpack(data)
        assert tower is None or Tower.unpack(tower.pack()) == tower


def read_actions(data: bytes) -> None:
    numbers = [int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8)]
    code, cursor, timeout_ms = numbers
    lookup_id = int.from_bytes(data[12:20], "little")
    with suppress(Refused):
        wanted(code, lookup_id=lookup_id, cursor=cursor, timeout_ms=timeout_ms)
    with suppress(Refused):
        plainly_wanted(code, cursor=cursor, timeout_ms=timeout_ms)
    with suppress(Refused):
        wanted_by_lookup(code, lookup_id=lookup_id, cursor=cursor, timeout_ms=timeout_ms)


def read_replies(data: bytes) -> None:
    """A packet of a hostile server, whole or in two sections; what is read can be served again."""
    cut = int.from_bytes(data[:2], "little")
    first, second = data[2 : 2 + cut], data[2 + cut :]
    for whole, rest, is_cut in (
        (data[2:], None, False),
        (first, second, True),
        (first, None, True),
    ):
        with suppress(WireError):
            found = read_reply(whole, rest, is_cut=is_cut)
            again = reply_packet(found.message, Subqueue())
            check(split(again, cut))
            bare_packet(found.message)


def extensions(data: bytes) -> None:
    with suppress(WireError):
        chain = Extension.unpack(data)
        assert Extension.unpack(chain.pack()).subqueue.moves == chain.subqueue.moves


TARGETS = (rpc_stubs, queue_formats, towers, read_actions, read_replies, extensions)


def _packet(message: Message, at: int) -> bytes:
    raw = b"".join(reply_packet(message, Subqueue(name="s")).all)
    return at.to_bytes(2, "little") + raw


_MESSAGE = Message(LOCAL, 1, "DIRECT=OS:host\\private$\\q", body=b"hello", peer="10.1.2.3")
_HTTP = Message(LOCAL, 1, "DIRECT=OS:a\\q", body=b"b", soap="<e/>", soap_compound=b"POST\r\n\r\nb")
_DESCRIPTOR = qm2qm.ReadDescriptor(remote_queue=7, queue=7, packet=(b"packet",))
_STUBS: tuple[Request, ...] = (
    remote_read.CloseQueue(H),
    remote_read.EndReceive(H, 2, 1),
    remote_read.EnlistRemoteTransaction(bytes(16), b"token", _NAME),
    qm2qm.StartReceive(_DESCRIPTOR),
    qm2qm.StartReceive2(qm2qm.ReadDescriptor2(_DESCRIPTOR)),
    qmcomm.OpenRemoteQueue(name=_NAME, process=1, access=1, share=0, license=LOCAL, mqs=0),
    qmcomm.CreateRemoteCursor(remote_queue=7),
    endpoint_mapper.Map(tower=Tower(LOCAL, (1, 0), 2103).pack()),
    endpoint_mapper.Lookup(),
)
SEEDS = {
    "rpc_stubs": [
        *(bytes((REQUESTS.index(type(stub)),)) + stub.pack() for stub in _STUBS),
        bytes((REQUESTS.index(remote_read.StartReceive),))
        + remote_read.Started(1, 2, split(reply_packet(_MESSAGE, Subqueue()), 2), 0).pack(),
    ],
    "queue_formats": [remote_read.EnlistRemoteTransaction(bytes(16), b"", _NAME).pack()[24:]],
    "towers": [Tower(LOCAL, (1, 0), 2103, "10.1.2.3").pack()],
    "read_actions": [(0x40000012).to_bytes(4, "little") + bytes(8) + b"\xff" * 8],
    "read_replies": [_packet(_MESSAGE, 150), _packet(_HTTP, 180), _packet(_MESSAGE, 0)],
    "extensions": [Extension(deadletter="a\\dl", peer="fd00::7").pack()],
}
