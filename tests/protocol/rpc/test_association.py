"""Dialogues with the server's side of one connection. RR-3 to RR-13"""

from __future__ import annotations

import struct
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.guid import Guid
from bridge.protocol.commands import Close
from bridge.protocol.events import BytesReceived, Instant, PeerClosed, Tick
from bridge.protocol.rpc.association import Association, State
from bridge.protocol.rpc.calls import AuthLevel, Call
from bridge.protocol.rpc.dialogue import (
    Answered,
    Command,
    Event,
    Faulted,
    Invoke,
    Limits,
    Refused,
    RunDown,
    Runtime,
    Transmit,
    Withdraw,
)
from bridge.protocol.rpc.groups import AssociationGroups
from bridge.protocol.rpc.negotiate import NegotiateAcceptor
from bridge.protocol.rpc.ntlm import Acceptor
from bridge.wire.rpc.bind import Syntax
from tests.protocol.rpc.ntlm_peer import NtlmPeer, PeerSession, acceptor
from tests.protocol.rpc.test_negotiate import ALONE, response
from tests.wire.rpc import raw
from tests.wire.rpc.test_spnego import init

PEER, LOCAL = "10.0.0.1", ("10.0.0.9", 2103)
FIRST_GROUP = 0x1001


def make(auth_type: int, level: AuthLevel, peer: str) -> Acceptor | None:
    ntlm = acceptor(peer=peer, strong=level >= AuthLevel.INTEGRITY)
    if auth_type == 10:
        return ntlm
    return NegotiateAcceptor(ntlm) if auth_type == 9 else None


def runtime(**limits: float) -> Runtime:
    served = [Syntax(Guid.random(), 1, 0), Syntax(Guid.parse(raw.ECHO_UUID), 1, 0)]
    groups = AssociationGroups(count(FIRST_GROUP).__next__)
    return Runtime(served, groups, make, Limits(**limits))  # type: ignore[arg-type]


class Dialogue:
    """A connection, and what it said and wanted so far."""

    def __init__(self, shared: Runtime | None = None, peer: str = PEER) -> None:
        self.runtime = shared or runtime()
        self.association = Association(
            self.runtime, connection=7, peer=peer, local=LOCAL, now=Instant(0.0, 0.0)
        )
        self.commands: list[Command] = []

    def tell(self, event: Event, at: float = 0.0) -> list[Command]:
        found = self.association.handle(event, Instant(at, 1_700_000_000.0))
        self.commands += found
        return found

    def say(self, data: bytes, at: float = 0.0) -> bytes:
        """What it sends back."""
        return sent(self.tell(BytesReceived(data), at))

    def bind(self, **kwargs: int) -> bytes:
        return self.say(raw.bind(**kwargs))  # type: ignore[arg-type]

    @property
    def invoked(self) -> list[Invoke]:
        return [one for one in self.commands if isinstance(one, Invoke)]

    @property
    def closed(self) -> str:
        return next((one.reason for one in self.commands if isinstance(one, Close)), "")

    @property
    def refusals(self) -> list[str]:
        return [one.reason for one in self.commands if isinstance(one, Refused)]


def sent(commands: list[Command]) -> bytes:
    buffers = [one.buffers for one in commands if isinstance(one, Transmit)]
    return b"".join(b"".join(some) for some in buffers)


def bound(shared: Runtime | None = None) -> Dialogue:
    dialogue = Dialogue(shared)
    dialogue.bind()
    return dialogue


# -- bind -------------------------------------------------------------------------------------


def test_the_bytes_of_a_bind_ack() -> None:  # RR-3, RR-6
    dialogue = Dialogue()
    body = raw.bind_body(
        raw.proposal(0, raw.ECHO, raw.NDR),
        raw.proposal(1, raw.ECHO, raw.NDR64),
        raw.proposal(2, raw.ECHO, raw.features(3)),
        raw.proposal(3, raw.NDR, raw.NDR),
        xmit=4280,
        recv=5840,
    )
    answer = dialogue.say(raw.pdu(raw.BIND, body, flags=0x17, call_id=3))
    expected = struct.pack("<HHIH", 5840, 4280, FIRST_GROUP, 5) + b"2103\0\0"
    expected += struct.pack("<BxH", 4, 0) + struct.pack("<HH", 0, 0) + raw.NDR
    expected += struct.pack("<HH20x", 2, 2) + struct.pack("<HH20x", 3, 3)
    expected += struct.pack("<HH20x", 2, 1)
    # PFC_CONC_MPX and PFC_SUPPORT_HEADER_SIGN are echoed
    assert answer == raw.pdu(raw.BIND_ACK, expected, flags=0x17, call_id=3)
    assert dialogue.association.state is State.BOUND


@pytest.mark.parametrize(("wanted", "given_size"), [(0, 1432), (100, 1432), (0xFFFF, 65528)])
def test_fragment_sizes_have_bounds(wanted: int, given_size: int) -> None:  # C706 12.6.3.4
    body = raw.bind_body(raw.proposal(0, raw.ECHO, raw.NDR), xmit=wanted, recv=wanted)
    answer = Dialogue().say(raw.pdu(raw.BIND, body))
    assert struct.unpack_from("<HH", answer, 16) == (given_size, given_size)


def test_groups_are_joined_by_the_same_client_only() -> None:  # RR-5
    one = bound()
    assert raw.group_of(Dialogue(one.runtime).bind(group=FIRST_GROUP)) == FIRST_GROUP
    foreign = Dialogue(one.runtime, peer="10.0.0.2")
    assert foreign.bind(group=FIRST_GROUP) == raw.nak(0)
    assert foreign.closed == "rpc-unknown-group"
    unknown = Dialogue(one.runtime)
    assert unknown.bind(group=999) == raw.nak(0)
    assert [type(command) for command in unknown.commands] == [Transmit, Close]


def test_another_protocol_version() -> None:  # C706 12.6.3.1
    dialogue = Dialogue()
    assert dialogue.say(raw.pdu(raw.BIND, version=(6, 0))) == raw.nak(4, call_id=0)
    assert dialogue.closed == "malformed"


def test_an_unknown_kind_of_authentication() -> None:  # MS-RPCE 2.2.2.5
    dialogue = Dialogue()
    assert dialogue.say(raw.bind(auth=raw.trailer(16, 6, b"krb5"))) == raw.nak(8)
    assert dialogue.closed == "rpc-auth-type"


@pytest.mark.parametrize(
    "auth", [raw.trailer(10, 6, b"nonsense"), raw.trailer(9, 6, b"x"), raw.trailer(10, 7, b"x")]
)
def test_a_bind_whose_token_makes_no_sense(auth: bytes) -> None:
    dialogue = Dialogue()
    assert dialogue.say(raw.bind(auth=auth)) == raw.nak(0)
    assert dialogue.closed.startswith("rpc-auth-")
    assert len(dialogue.runtime.groups) == 0


@pytest.mark.parametrize(
    "data",
    [
        raw.request(),
        raw.pdu(raw.ALTER, raw.bind_body()),
        raw.pdu(raw.AUTH3, bytes(4)),
        raw.pdu(raw.CO_CANCEL),
        raw.pdu(raw.RESPONSE, bytes(8)),
        raw.pdu(raw.BIND, raw.bind_body(), flags=raw.FIRST),  # a bind is not fragmented
        raw.pdu(raw.BIND, raw.bind_body(count=200)),
        raw.pdu(raw.BIND, drep=b"\0\0\0\0"),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_bind_hears_nothing(data: bytes) -> None:
    dialogue = Dialogue()
    assert dialogue.say(data) == b""
    assert dialogue.closed
    assert dialogue.say(raw.bind()) == b""


@pytest.mark.parametrize("kind", [raw.BIND, raw.BIND_ACK, raw.RESPONSE, raw.FAULT, raw.SHUTDOWN])
def test_what_a_client_does_not_send(kind: int) -> None:
    dialogue = bound()
    dialogue.say(raw.bind() if kind == raw.BIND else raw.pdu(kind, bytes(16)))
    assert dialogue.closed == "rpc-unexpected-pdu"
    assert dialogue.commands[-1] == RunDown(FIRST_GROUP)


def test_a_thousand_binds_make_one_group() -> None:
    dialogue = Dialogue()
    answer = dialogue.say(raw.bind() * 1000)
    assert raw.kinds(answer) == [raw.BIND_ACK]
    assert dialogue.closed == "rpc-unexpected-pdu"
    assert len(dialogue.runtime.groups) == 0


def test_alter_context_adds_a_context() -> None:  # RR-4
    dialogue = bound()
    assert raw.fault_status(dialogue.say(raw.request(context=4))) == 0x1C00001C
    body = raw.bind_body(raw.proposal(4, raw.ECHO, raw.NDR))
    answer = dialogue.say(raw.pdu(raw.ALTER, body, call_id=3))
    expected = struct.pack("<HHIH2xBxH", 5840, 5840, FIRST_GROUP, 0, 1, 0)
    expected += struct.pack("<HH", 0, 0) + raw.NDR
    assert answer == raw.pdu(raw.ALTER_RESP, expected, call_id=3)
    dialogue.say(raw.request(context=4, call_id=4))
    assert [one.call_id for one in dialogue.invoked] == [4]


# -- calls ------------------------------------------------------------------------------------


def test_a_call_and_its_answer() -> None:
    dialogue = bound()
    assert dialogue.say(raw.request(b"stub", opnum=5)) == b""
    call = Call(5, b"stub", AuthLevel.NONE, "", FIRST_GROUP, 7, PEER, LOCAL)
    assert dialogue.invoked == [Invoke(2, 1, call)]
    assert sent(dialogue.tell(Answered(2, [b"an", b"swer"]))) == raw.response(b"answer")
    assert dialogue.tell(Answered(2, b"twice")) == []


def test_a_fault() -> None:  # RR-11
    dialogue = bound()
    dialogue.say(raw.request() + raw.request(call_id=3))
    assert sent(dialogue.tell(Faulted(2, 0xC00E0003))) == raw.fault(0xC00E0003, ran=True)
    answer = sent(dialogue.tell(Faulted(3, 0x1C010002, did_not_execute=True)))
    assert answer == raw.fault(0x1C010002, call_id=3)


def test_calls_are_answered_as_they_end() -> None:  # RR-6
    dialogue = bound()
    dialogue.say(b"".join(raw.request(bytes([n]), call_id=n) for n in (2, 3, 4)))
    assert [one.call_id for one in dialogue.invoked] == [2, 3, 4]
    answers = b"".join(sent(dialogue.tell(Answered(n, bytes([n])))) for n in (4, 2, 3))
    assert answers == b"".join(raw.response(bytes([n]), call_id=n) for n in (4, 2, 3))


def test_a_fragmented_request_and_answer() -> None:  # RR-7
    dialogue = Dialogue()
    dialogue.bind(recv=1432)
    dialogue.say(raw.request(b"a" * 4000, flags=raw.FIRST))
    dialogue.say(raw.request(b"b" * 4000, flags=0))
    dialogue.say(raw.request(b"c" * 4000, flags=raw.LAST))
    assert dialogue.invoked[0].call.stub == b"a" * 4000 + b"b" * 4000 + b"c" * 4000
    (transmit,) = dialogue.tell(Answered(2, bytes(5000)))  # contiguous: one command
    pieces = raw.pdus(sent([transmit]))
    assert [one[3] for one in pieces] == [raw.FIRST, 0, 0, raw.LAST]
    assert [struct.unpack_from("<I", one, 16)[0] for one in pieces] == [5000, 3592, 2184, 776]
    assert all(len(one) <= 1432 for one in pieces)


def test_an_object_uuid_is_no_part_of_the_stub() -> None:
    dialogue = bound()
    body = struct.pack("<IHH", 4, 0, 1) + bytes(16) + b"stub"
    dialogue.say(raw.pdu(raw.REQUEST, body, call_id=2, flags=0x83))
    assert dialogue.invoked[0].call.stub == b"stub"


def test_maybe_calls_are_not_answered() -> None:  # C706 12.6.3.1
    dialogue = bound()
    dialogue.say(raw.request(flags=0x43) + raw.request(flags=0x43, call_id=3))
    assert dialogue.tell(Answered(2, b"x")) == []
    assert dialogue.tell(Faulted(3, 5)) == []
    assert dialogue.say(raw.request(flags=0x43, call_id=4, context=9)) == b""


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (raw.request(context=9), 0x1C00001C),
        (raw.request(context=0xFFFF), 0x1C00001C),
        (raw.request(flags=raw.LAST), 0x1C01000B),
        (raw.request(flags=0), 0x1C01000B),
        (raw.request(flags=raw.WHOLE | 4), 0x1C00000D),
    ],
)
def test_requests_that_do_not_run(data: bytes, status: int) -> None:  # RR-7, RR-11
    dialogue = bound()
    (context,) = struct.unpack_from("<H", data, 20)
    assert dialogue.say(data) == raw.fault(status, context=context)
    assert dialogue.invoked == []
    assert not dialogue.closed


def test_a_request_that_is_too_large() -> None:  # RR-7: fault 5
    dialogue = bound(runtime(stub=10_000))
    dialogue.say(raw.request(bytes(5000), flags=raw.FIRST))
    dialogue.say(raw.request(bytes(5000), flags=0))
    assert dialogue.say(raw.request(b"x", flags=0)) == raw.fault(5)
    assert dialogue.say(raw.request(bytes(5000), flags=0)) == b""
    assert (dialogue.association.held, dialogue.refusals) == (0, ["rpc-too-large"])


def test_alloc_hint_is_a_hint() -> None:  # RR-7, RR-12
    dialogue = bound()
    dialogue.say(raw.request(b"x", hint=0xFFFFFFFF))
    assert dialogue.invoked[0].call.stub == b"x"


def test_too_many_calls_at_once() -> None:
    dialogue = bound(runtime(calls=3))
    answer = dialogue.say(b"".join(raw.request(call_id=n) for n in range(2, 7)))
    assert [raw.fault_status(one) for one in raw.pdus(answer)] == [0x1C010014] * 2
    assert dialogue.refusals == ["rpc-too-busy"] * 2
    dialogue.tell(Answered(2, b""))
    assert dialogue.say(raw.request(call_id=9)) == b""


# -- cancel -----------------------------------------------------------------------------------


def test_co_cancel_of_a_waiting_call() -> None:  # RR-13: fault 1C00000D
    dialogue = bound()
    dialogue.say(raw.request())
    assert dialogue.tell(BytesReceived(raw.pdu(raw.CO_CANCEL, call_id=2))) == [Withdraw(2)]
    answer = sent(dialogue.tell(Faulted(2, 0x1C00000D)))
    assert answer == raw.fault(0x1C00000D, ran=True)


def test_a_call_may_end_before_it_hears_of_the_cancel() -> None:
    dialogue = bound()
    dialogue.say(raw.request())
    dialogue.say(raw.pdu(raw.CO_CANCEL, call_id=2))
    assert sent(dialogue.tell(Answered(2, b"done"))) == raw.response(b"done")


def test_orphaned_calls_are_not_answered() -> None:  # RR-13
    dialogue = bound()
    dialogue.say(raw.request(b"x" * 100))
    orphaned = raw.pdu(raw.ORPHANED, call_id=2)
    assert dialogue.tell(BytesReceived(orphaned)) == [Withdraw(2, orphaned=True)]
    assert dialogue.association.held == 0
    assert dialogue.tell(Faulted(2, 0x1C00000D)) == []
    assert dialogue.tell(BytesReceived(orphaned)) == []


def test_cancel_of_a_request_that_is_half_here() -> None:
    dialogue = bound()
    dialogue.say(raw.request(b"x", flags=raw.FIRST))
    assert dialogue.say(raw.pdu(raw.CO_CANCEL, call_id=2)) == raw.fault(0x1C00000D)
    dialogue.say(raw.request(b"x", flags=raw.FIRST, call_id=3))
    assert dialogue.say(raw.pdu(raw.ORPHANED, call_id=3)) == b""
    assert dialogue.say(raw.request(b"x", flags=raw.LAST, call_id=3)) == b""
    assert dialogue.say(raw.pdu(raw.CO_CANCEL, call_id=77)) == b""
    assert dialogue.invoked == []


# -- the end ----------------------------------------------------------------------------------


def test_a_lost_connection_withdraws_its_calls_and_runs_the_group_down() -> None:  # 2.3
    one = bound()
    two = Dialogue(one.runtime)
    two.bind(group=FIRST_GROUP)
    one.say(raw.request() + raw.request(call_id=3))
    assert one.tell(PeerClosed()) == [
        Withdraw(2, orphaned=True),
        Withdraw(3, orphaned=True),
        Close("peer-closed"),
    ]
    assert one.tell(Answered(2, b"late")) == []
    assert two.tell(PeerClosed()) == [Close("peer-closed"), RunDown(FIRST_GROUP)]


def test_who_never_bound_has_nothing_to_run_down() -> None:
    assert Dialogue().tell(PeerClosed()) == [Close("peer-closed")]


def test_the_owner_can_close_it_once() -> None:
    dialogue = bound()
    assert dialogue.association.close("shutdown") == [Close("shutdown"), RunDown(FIRST_GROUP)]
    assert dialogue.association.close("shutdown") == []
    assert dialogue.association.next_wakeup() is None


# -- time -------------------------------------------------------------------------------------


def closed_at(dialogue: Dialogue, at: float) -> str:
    assert dialogue.association.next_wakeup() == at
    assert dialogue.tell(Tick(), at - 0.001) == []
    dialogue.tell(Tick(), at)
    return dialogue.closed


def test_who_does_not_bind() -> None:
    dialogue = Dialogue()
    dialogue.say(raw.bind()[:20], at=5.0)
    assert closed_at(dialogue, 30.0) == "rpc-slow"


def test_who_binds_may_stay() -> None:
    assert bound().association.next_wakeup() is None


def test_who_does_not_authenticate() -> None:
    dialogue = Dialogue()
    dialogue.say(raw.bind(auth=raw.trailer(10, 6, NtlmPeer().negotiate)), at=10.0)
    assert closed_at(dialogue, 70.0) == "rpc-slow"


@pytest.mark.parametrize("data", [raw.request(b"x", flags=raw.FIRST), raw.request()[:10]])
def test_a_request_that_never_ends(data: bytes) -> None:
    dialogue = bound()
    dialogue.say(data, at=10.0)
    dialogue.say(raw.request(flags=0) if len(data) > 10 else b"", at=100.0)
    assert closed_at(dialogue, 130.0) == "rpc-slow"


def test_every_request_that_comes_to_its_end_counts() -> None:
    dialogue = bound()
    dialogue.say(raw.request()[:10], at=10.0)
    dialogue.say(raw.request()[10:] + raw.request(call_id=3)[:10], at=100.0)
    assert dialogue.association.next_wakeup() == 220.0
    dialogue.say(raw.request(call_id=3)[10:], at=101.0)
    assert dialogue.association.next_wakeup() is None


# -- security ---------------------------------------------------------------------------------


def log_on(
    level: int, peer: NtlmPeer | None = None, auth_type: int = 10
) -> tuple[Dialogue, PeerSession]:
    dialogue, peer = Dialogue(), peer or NtlmPeer()
    answer = dialogue.say(raw.bind(auth=raw.trailer(auth_type, level, peer.negotiate, context=5)))
    assert answer[2] == raw.BIND_ACK
    token = peer.authenticate(raw.auth_value(answer))
    auth3 = raw.pdu(raw.AUTH3, bytes(4), auth=raw.trailer(auth_type, level, token, context=5))
    assert dialogue.say(auth3) == b""
    return dialogue, peer.session()


def sealed(
    session: PeerSession, stub: bytes, *, level: int = 6, call_id: int = 2, flags: int = raw.WHOLE
) -> bytes:
    """A request, sealed or signed by hand."""
    pad = -len(stub) & 15
    auth = raw.trailer(10, level, bytes(16), pad=pad, context=5)
    plain = raw.request(stub + b"\xbb" * pad, call_id=call_id, flags=flags, auth=auth)
    if level < 6:
        return plain[:-16] + session.sign(plain[:-16])
    head, body, tail = plain[:24], plain[24:-24], plain[-24:-16]
    body, signature = session.seal(head, body, tail)
    return head + body + tail + signature


def test_privacy_by_hand_with_fragments_both_ways() -> None:  # RR-8, traps 18 and 20
    dialogue, session = log_on(6)
    dialogue.say(sealed(session, b"a" * 33, flags=raw.FIRST))
    dialogue.say(sealed(session, b"b" * 5, flags=raw.LAST))
    call = dialogue.invoked[0].call
    assert (call.stub, call.level, call.user) == (
        b"a" * 33 + b"b" * 5,
        AuthLevel.PRIVACY,
        "DOM\\ann",
    )
    got = b""
    for one in raw.pdus(sent(dialogue.tell(Answered(2, bytes(range(200)) * 60)))):
        plain = session.unseal(one[:24], one[24:-24], one[-24:-16], one[-16:])
        got += plain[: len(plain) - one[-22]]
    assert got == bytes(range(200)) * 60
    assert sent(dialogue.tell(Answered(99, b""))) == b""


def test_integrity_by_hand() -> None:
    dialogue, session = log_on(5)
    dialogue.say(sealed(session, b"stub", level=5))
    assert dialogue.invoked[0].call.level is AuthLevel.INTEGRITY
    answer = sent(dialogue.tell(Answered(2, b"back")))
    session.check(answer[:-16], answer[-16:])
    assert answer[24:28] == b"back"


def test_a_seal_with_one_bit_changed() -> None:
    for at in (16, 24, 30, -1, -10):
        dialogue, session = log_on(6)
        data = bytearray(sealed(session, b"stub"))
        data[at] ^= 1
        assert raw.fault_status(dialogue.say(bytes(data))) == 5
        assert dialogue.closed in ("rpc-bad-seal", "rpc-access-denied")
        assert dialogue.invoked == []


def test_a_replayed_request() -> None:
    dialogue, session = log_on(6)
    data = sealed(session, b"stub")
    dialogue.say(data)
    assert raw.fault_status(dialogue.say(data)) == 5
    assert dialogue.closed == "rpc-bad-seal"
    assert len(dialogue.invoked) == 1


@pytest.mark.parametrize("level", [5, 6])
def test_a_bare_request_among_sealed_ones(level: int) -> None:
    dialogue, _ = log_on(level)
    assert dialogue.say(raw.request(b"bare")) == raw.fault(5)
    assert dialogue.closed == "rpc-access-denied"


@pytest.mark.parametrize("level", [2, 3, 4, 5, 6])
def test_a_wrong_password_faults_the_next_request(level: int) -> None:  # RR-9
    dialogue, session = log_on(level, NtlmPeer(nt_hash=bytes(16)))
    assert dialogue.refusals == ["rpc-auth-failed"]
    data = raw.request(b"x") if level < 5 else sealed(session, b"x", level=level)
    assert raw.fault_status(dialogue.say(data)) == 5
    assert not dialogue.closed
    assert dialogue.invoked == []


def test_a_request_before_auth3() -> None:  # RR-9
    dialogue = Dialogue()
    dialogue.say(raw.bind(auth=raw.trailer(10, 2, NtlmPeer().negotiate)))
    assert dialogue.say(raw.request()) == raw.fault(5)


def test_spnego_through_alter_context() -> None:  # trap 19
    dialogue, peer = Dialogue(), NtlmPeer()
    first = raw.trailer(9, 6, init(ALONE, peer.negotiate), context=5)
    challenge = raw.auth_value(dialogue.say(raw.bind(auth=first)))
    start = challenge.index(b"NTLMSSP\0")
    token = peer.authenticate(challenge[start:])
    last = raw.trailer(9, 6, response(token, peer.session().sign(ALONE)), context=5)
    body = raw.bind_body(raw.proposal(0, raw.ECHO, raw.NDR))
    answer = dialogue.say(raw.pdu(raw.ALTER, body, auth=last))
    assert answer[2] == raw.ALTER_RESP
    assert raw.auth_value(answer)[-20:-16] == bytes.fromhex("a3120410")  # our MIC


def test_spnego_with_a_wrong_password() -> None:
    dialogue, peer = Dialogue(), NtlmPeer(nt_hash=bytes(16))
    first = raw.trailer(9, 6, init(ALONE, peer.negotiate), context=5)
    challenge = raw.auth_value(dialogue.say(raw.bind(auth=first)))
    token = peer.authenticate(challenge[challenge.index(b"NTLMSSP\0") :])
    last = raw.trailer(9, 6, response(token), context=5)
    answer = dialogue.say(raw.pdu(raw.ALTER, raw.bind_body(), auth=last, call_id=2))
    assert answer == raw.fault(5)
    assert dialogue.refusals == ["rpc-auth-failed"]


def test_a_signed_cancel_moves_the_counter() -> None:  # RR-13
    dialogue, session = log_on(6)
    dialogue.say(sealed(session, b"one"))
    bare = raw.pdu(raw.CO_CANCEL, call_id=2, auth=raw.trailer(10, 6, bytes(16), context=5))
    cancel = bare[:-16] + session.sign(bare[:-16])
    assert dialogue.tell(BytesReceived(cancel)) == [Withdraw(2)]
    dialogue.say(sealed(session, b"two", call_id=3))
    assert [one.call_id for one in dialogue.invoked] == [2, 3]


def test_fragments_of_one_request_under_two_names() -> None:
    dialogue, session = log_on(2)
    dialogue.say(raw.request(b"a", flags=raw.FIRST))
    peer = NtlmPeer(user="Ann", domain="X")
    body = raw.bind_body(raw.proposal(0, raw.ECHO, raw.NDR))
    ask = raw.pdu(raw.ALTER, body, auth=raw.trailer(10, 2, peer.negotiate, context=6))
    token = peer.authenticate(raw.auth_value(dialogue.say(ask)))
    dialogue.say(raw.pdu(raw.AUTH3, bytes(4), auth=raw.trailer(10, 2, token, context=6)))
    assert dialogue.say(raw.request(b"b", flags=raw.LAST)) == raw.fault(0x1C01000B)
    assert dialogue.invoked == []
    assert session.numbers == [0, 0]


# -- any bytes --------------------------------------------------------------------------------

BITS = st.sampled_from(
    [
        raw.bind(),
        raw.request(b"stub"),
        raw.request(b"x", call_id=3, flags=raw.FIRST),
        raw.request(b"x", call_id=3, flags=raw.LAST),
        raw.pdu(raw.ALTER, raw.bind_body(raw.proposal(1, raw.ECHO, raw.NDR))),
        raw.pdu(raw.AUTH3, bytes(4), auth=raw.trailer(10, 6, b"x")),
        raw.pdu(raw.ALTER, raw.bind_body(), auth=raw.trailer(10, 6, NtlmPeer().negotiate)),
        raw.pdu(raw.CO_CANCEL, call_id=2),
        raw.pdu(raw.ORPHANED, call_id=3),
        raw.request(b"x", call_id=4, auth=raw.trailer(10, 6, bytes(16))),
    ]
)


@given(st.lists(BITS | st.binary(max_size=60), max_size=12), st.integers(1, 100))
@settings(max_examples=200)
def test_any_bytes_end_in_a_clean_close(parts: list[bytes], step: int) -> None:
    dialogue = bound()
    stream = b"".join(parts)
    for at in range(0, len(stream), step):
        for command in dialogue.tell(BytesReceived(stream[at : at + step])):
            if isinstance(command, Invoke):
                dialogue.tell(Answered(command.call_id, b"ok"))
    dialogue.tell(PeerClosed())
    assert dialogue.association.state is State.CLOSED
    assert dialogue.association.held == 0
    assert len(dialogue.runtime.groups) == 0
    assert [one for one in dialogue.commands if isinstance(one, RunDown)] == [RunDown(FIRST_GROUP)]
