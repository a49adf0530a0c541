"""Targets of RPC: any bytes give PDUs, tokens and calls, or a refusal."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

from bridge.model.errors import BridgeError, WireError
from bridge.model.guid import Guid
from bridge.protocol.events import BytesReceived, Instant, PeerClosed, Tick
from bridge.protocol.rpc.association import Association, State
from bridge.protocol.rpc.client import Client
from bridge.protocol.rpc.dialogue import Answered, Invoke, RunDown, Runtime
from bridge.protocol.rpc.groups import AssociationGroups
from bridge.protocol.rpc.negotiate import NegotiateAcceptor
from bridge.protocol.rpc.ntlm import Acceptor, AuthFailed
from bridge.wire.rpc.bind import Bind, BindAck, BindNak, Syntax
from bridge.wire.rpc.ntlm import Authenticate, Negotiate, NtResponse
from bridge.wire.rpc.pdu import FaultPdu, Fragment, FragmentReader, Request, Response
from bridge.wire.rpc.spnego import NegTokenResp, unpack_init
from bridge.wire.rpc.verification import SIGNATURE, find_trailer
from tests.protocol.rpc.ntlm_peer import FLAGS, NOW, NtlmPeer, acceptor, negotiate
from tests.protocol.rpc.test_client import ack
from tests.protocol.rpc.test_negotiate import ALONE, SECOND, response
from tests.wire.rpc import raw
from tests.wire.rpc.test_spnego import init

_ECHO = Syntax(Guid.parse(raw.ECHO_UUID), 1, 0)


def rpc_pdus(data: bytes) -> None:
    """How the bytes are cut does not matter, and every body is one of its kind or refused."""
    whole = _fragments([data])
    step = data[0] % 61 + 1 if data else 1
    assert _fragments([data[at : at + step] for at in range(0, len(data), step)]) == whole
    for fragment in whole:
        for kind in (Bind, BindAck, BindNak, Request, Response, FaultPdu):
            with suppress(WireError):
                kind.unpack(fragment)


def _fragments(chunks: list[bytes]) -> list[Fragment]:
    reader, found = FragmentReader(), list[Fragment]()
    with suppress(WireError):
        for chunk in chunks:
            for fragment in reader.feed(chunk):
                found.append(fragment)
            assert reader.unfinished < 0x10000
    return found


def rpc_server(data: bytes) -> None:
    """A connection that is bound, whatever comes: it ends, and its group is run down once."""
    groups = AssociationGroups(count(1).__next__)
    shared = Runtime([_ECHO], groups, _acceptor)
    one = Association(shared, connection=1, peer="p", local=("l", 1), now=Instant(0.0, 0.0))
    commands = one.handle(BytesReceived(raw.bind()), NOW)
    for chunk in (data[:700], data[700:]):
        for command in one.handle(BytesReceived(chunk), NOW):
            commands.append(command)
            if isinstance(command, Invoke):
                commands += one.handle(Answered(command.call_id, command.call.stub), NOW)
    commands += one.handle(Tick(), Instant(1000.0, NOW.unix))
    commands += one.handle(PeerClosed(), NOW)
    assert (one.state, one.held, len(groups)) == (State.CLOSED, 0, 0)
    assert [command for command in commands if isinstance(command, RunDown)] == [RunDown(1)]


def _acceptor(auth_type: int, *_: object) -> Acceptor | None:
    return acceptor() if auth_type == 10 else NegotiateAcceptor(acceptor())


def rpc_client(data: bytes) -> None:
    """A server that says anything."""
    for greeting in (b"", ack()):
        client = Client(_ECHO)
        client.open()
        with suppress(BridgeError):
            list(client.receive(greeting))
            if greeting:
                client.call(1, b"")
            list(client.receive(data))


def ntlm_tokens(data: bytes) -> None:
    """Nobody is let in without the key."""
    for kind in (Negotiate, Authenticate, NtResponse):
        with suppress(WireError):
            kind.unpack(data)
    one = acceptor()
    one.step(negotiate(), NOW)
    with suppress(AuthFailed):
        one.step(data, NOW)
    assert one.seal is None


def spnego_tokens(data: bytes) -> None:
    """What was read is the same when we write it."""
    with suppress(WireError):
        unpack_init(data)
    with suppress(WireError):
        answer = NegTokenResp.unpack(data)
        if answer.state is None or answer.state < 4:
            assert NegTokenResp.unpack(answer.pack()) == answer
    one = NegotiateAcceptor(acceptor())
    with suppress(AuthFailed):
        one.step(data, NOW)
        one.step(data, NOW)
    assert one.seal is None


def verification_trailer(data: bytes) -> None:
    with suppress(WireError):
        find_trailer(SIGNATURE + data)
    with suppress(WireError):
        find_trailer(data)


_NTLM = NtlmPeer()
_AUTHENTICATE = _NTLM.message(bytes(16) + b"\1\1" + bytes(40), bytes(16), FLAGS)
_BIND = raw.pdu(
    raw.BIND,
    raw.bind_body(
        raw.proposal(0, raw.ECHO, raw.NDR),
        raw.proposal(1, raw.ECHO, raw.NDR64, raw.NDR),
        raw.proposal(2, raw.ECHO, raw.features(3)),
    ),
    auth=raw.trailer(10, 6, negotiate()),
)
_STREAM = [
    raw.request(b"stub") + raw.request(b"more", call_id=3),
    raw.request(b"a", flags=raw.FIRST) + raw.request(b"b", flags=0) + raw.request(flags=raw.LAST),
    raw.pdu(raw.ALTER, raw.bind_body(raw.proposal(1, raw.ECHO, raw.NDR))) + raw.request(context=1),
    raw.pdu(raw.ALTER, raw.bind_body(), auth=raw.trailer(10, 2, negotiate()))
    + raw.pdu(raw.AUTH3, bytes(4), auth=raw.trailer(10, 2, _AUTHENTICATE))
    + raw.request(auth=raw.trailer(10, 2, bytes(16))),
    raw.request(flags=raw.FIRST) + raw.pdu(raw.CO_CANCEL, call_id=2),
    raw.request() + raw.pdu(raw.ORPHANED, call_id=2),
]
SEEDS: dict[str, list[bytes]] = {
    "rpc_pdus": [_BIND, *_STREAM, ack(), raw.nak(4), raw.fault(5), raw.response(b"x")],
    "rpc_server": [*_STREAM, _BIND],
    "rpc_client": [
        raw.response(b"x"),
        raw.response(b"a", flags=raw.FIRST) + raw.response(b"b", flags=raw.LAST),
        *(raw.fault(5), raw.nak(8), ack()),
    ],
    "ntlm_tokens": [negotiate(), _AUTHENTICATE],
    "spnego_tokens": [
        init(ALONE, negotiate()),
        init(SECOND, b"x", b"m" * 16),
        response(_AUTHENTICATE, b"m" * 16, 1),
    ],
    "verification_trailer": [
        bytes.fromhex("0100040001000000") + bytes.fromhex("03c01000") + bytes(16),
        bytes.fromhex("02c02800") + raw.ECHO + raw.NDR,
    ],
}
TARGETS = (rpc_pdus, rpc_server, rpc_client, ntlm_tokens, spnego_tokens, verification_trailer)
