"""The client's side, against a server by hand and against our own."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import BindRefused, BridgeError, ProtocolError
from bridge.model.guid import Guid
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.client import Client, Failed, Opened, Outcome, Reply, Returned
from bridge.protocol.rpc.dialogue import Answered, Faulted
from bridge.protocol.rpc.seal import BadSeal, NtlmSeal
from bridge.wire.rpc.bind import Syntax
from tests.protocol.rpc.ntlm_peer import FLAGS, NtlmPeer
from tests.protocol.rpc.test_association import Dialogue, sent
from tests.protocol.rpc.test_negotiate import ALONE, response
from tests.wire.rpc import raw
from tests.wire.rpc.test_spnego import init

ECHO = Syntax(Guid.parse(raw.ECHO_UUID), 1, 0)


class NtlmAuth:
    """The port `Authenticator` with a client by hand."""

    type = 10

    def __init__(self, peer: NtlmPeer | None = None) -> None:
        self.peer = peer or NtlmPeer()
        self.complete = False
        self.seal = NtlmSeal(bytes(16), 0, server=False)

    def step(self, token: bytes | None) -> bytes:
        if token is None:
            return self.peer.negotiate
        answer = self.peer.authenticate(token)
        self.complete = True
        self.seal = NtlmSeal(self.peer.key, FLAGS, server=False)
        return answer


class SpnegoAuth(NtlmAuth):
    type = 9

    def step(self, token: bytes | None) -> bytes:
        if token is None:
            return init(ALONE, self.peer.negotiate)
        if b"NTLMSSP\0" not in token:
            self.complete = True
            return b""
        token = self.peer.authenticate(token[token.index(b"NTLMSSP\0") :])
        self.seal = NtlmSeal(self.peer.key, FLAGS, server=False)
        return response(token)


def ack(
    code: int = 0, reason: int = 0, *, recv: int = 5840, count: int = 1, flags: int = 0x13
) -> bytes:
    body = struct.pack("<HHIH", 5840, recv, 77, 5) + b"2103\0\0" + struct.pack("<BxH", count, 0)
    body += (struct.pack("<HH", code, reason) + raw.NDR) * count
    return raw.pdu(raw.BIND_ACK, body, flags=flags)


def opened(**kwargs: int) -> Client:
    client = Client(ECHO)
    client.open()
    assert list(client.receive(ack(**kwargs))) == [Opened()]
    return client


def talk(client: Client, dialogue: Dialogue, data: bytes) -> list[Outcome]:
    """Until neither has more to say."""
    found: list[Outcome] = []
    while data:
        outcomes = list(client.receive(dialogue.say(data)))
        found += outcomes
        data = b"".join(one.data for one in outcomes if isinstance(one, Reply))
    return found


# -- by hand ----------------------------------------------------------------------------------


def test_the_bytes_of_a_bind() -> None:
    body = raw.bind_body(raw.proposal(0, raw.ECHO, raw.NDR), group=5, xmit=65528, recv=65528)
    assert Client(ECHO, group=5).open() == raw.pdu(raw.BIND, body, flags=0x13)


def test_the_group_is_what_the_server_says() -> None:
    assert opened().group == 77


def test_calls_have_ids_of_their_own_and_come_back_in_any_order() -> None:
    client = opened()
    first, buffers = client.call(7, b"one")
    second, _ = client.call(8, [b"t", b"wo"])
    assert b"".join(buffers) == raw.request(b"one", opnum=7)
    assert (first, second) == (2, 3)
    answers = raw.response(b"2", call_id=3) + raw.response(b"1", call_id=2)
    assert list(client.receive(answers)) == [Returned(3, b"2"), Returned(2, b"1")]


def test_a_server_without_concurrent_multiplexing_gets_one_call_at_a_time() -> None:
    """C706 12.6.3.1: PFC_CONC_MPX (0x10) "supports concurrent multiplexing of a single connection";
    the bind_ack says whether the server does."""
    client = opened(flags=0x03)
    assert not client.is_concurrent
    assert not client.is_busy
    client.call(7, b"one")
    assert client.is_busy
    with pytest.raises(ProtocolError, match="one call at a time"):
        client.call(8, b"two")
    assert list(client.receive(raw.response(b"1", call_id=2))) == [Returned(2, b"1")]
    assert client.call(8, b"two")[0] == 3
    assert list(client.receive(raw.fault(5, call_id=3))) == [Failed(3, 5, True)]
    client.call(9, b"three")
    client.orphan(4)
    assert not client.is_busy
    assert opened().is_concurrent


def test_fragments_both_ways() -> None:
    client = opened(recv=1432)
    _, buffers = client.call(1, bytes(3000))
    assert [one[3] for one in raw.pdus(b"".join(buffers))] == [raw.FIRST, 0, raw.LAST]
    answer = raw.response(b"a", flags=raw.FIRST) + raw.response(b"b", flags=0)
    assert list(client.receive(answer)) == []
    assert list(client.receive(raw.response(b"c", flags=raw.LAST))) == [Returned(2, b"abc")]


def test_a_fault_carries_its_status() -> None:
    client = opened()
    client.call(1, b"")
    assert list(client.receive(raw.fault(0xC00E0003, ran=True))) == [Failed(2, 0xC00E0003, False)]
    client.call(1, b"")
    assert list(client.receive(raw.fault(5, call_id=3))) == [Failed(3, 5, True)]


def test_an_orphan_and_what_still_comes_of_it() -> None:
    client = opened()
    client.call(1, b"")
    assert client.orphan(2) == raw.pdu(raw.ORPHANED, call_id=2)
    assert client.orphan(2) == b""
    assert list(client.receive(raw.response(b"late") + raw.fault(5))) == []


def test_shutdown_is_no_reason_to_stop() -> None:
    assert list(opened().receive(raw.pdu(raw.SHUTDOWN))) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (raw.nak(8), "kind of authentication"),
        (raw.nak(0), "reason 0"),
        (ack(2, 1), "does not serve"),
        (ack(2, 2), "refuses the interface"),
        (raw.fault(5, call_id=1), "access denied"),
        (raw.fault(0x1C010014, call_id=1), "1C010014"),
    ],
)
def test_who_is_not_let_in(data: bytes, words: str) -> None:
    client = Client(ECHO)
    client.open()
    with pytest.raises(BindRefused, match=words):
        list(client.receive(data))


@pytest.mark.parametrize(
    "data",
    [
        raw.bind(),
        raw.request(),
        ack(),
        raw.nak(0),
        raw.pdu(raw.ALTER_RESP, bytes(12)),
        raw.response(b"a", flags=raw.FIRST) * 2,
        raw.pdu(raw.RESPONSE, bytes(4), call_id=2),
        b"HTTP/1.1 200 OK\r\n",
    ],
)
def test_a_server_that_breaks_the_protocol(data: bytes) -> None:
    client = opened()
    client.call(1, b"")
    with pytest.raises(ProtocolError):
        list(client.receive(data))


def test_a_bind_ack_with_other_results_than_asked_for() -> None:
    client = Client(ECHO)
    client.open()
    with pytest.raises(ProtocolError):
        list(client.receive(ack(count=2)))


def test_an_answer_without_end() -> None:
    client = opened()
    client.call(1, b"")
    piece = raw.response(bytes(65_000), flags=0)
    list(client.receive(raw.response(b"", flags=raw.FIRST)))
    with pytest.raises(ProtocolError, match="large"):
        [list(client.receive(piece)) for _ in range(300)]


def test_no_call_before_the_bind_is_through() -> None:
    with pytest.raises(ProtocolError):
        Client(ECHO).call(1, b"")


def test_a_level_needs_somebody() -> None:
    with pytest.raises(ValueError, match="NONE"):
        Client(ECHO, level=AuthLevel.PRIVACY)
    with pytest.raises(ValueError, match="NONE"):
        Client(ECHO, auth=NtlmAuth())


def test_a_server_that_does_not_answer_our_token() -> None:
    client = Client(ECHO, auth=NtlmAuth(), level=AuthLevel.PRIVACY)
    client.open()
    with pytest.raises(BindRefused):
        list(client.receive(ack()))


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(data: bytes, is_open: bool) -> None:
    client = opened() if is_open else Client(ECHO)
    with contextlib.suppress(BridgeError):
        list(client.receive(data))


# -- with our own server ----------------------------------------------------------------------

LEVELS = [level for level in AuthLevel if level is not AuthLevel.NONE]


def log_on(level: AuthLevel, auth: NtlmAuth) -> tuple[Client, Dialogue]:
    client, dialogue = Client(ECHO, auth=auth, level=level), Dialogue()
    outcomes = talk(client, dialogue, client.open())
    assert [type(one) for one in outcomes] == [Reply, Opened]
    return client, dialogue


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", [NtlmAuth, SpnegoAuth])
def test_every_level(level: AuthLevel, kind: type[NtlmAuth]) -> None:
    client, dialogue = log_on(level, kind())
    for number, stub in enumerate((b"", b"stub", bytes(70_000)), start=2):
        _, buffers = client.call(1, stub)
        dialogue.say(b"".join(buffers))
        call = dialogue.invoked[-1].call
        assert (call.stub, call.level, call.user) == (stub, level, "DOM\\ann")
        answer = sent(dialogue.tell(Answered(number, stub[::-1])))
        assert list(client.receive(answer)) == [Returned(number, stub[::-1])]


@pytest.mark.parametrize("level", [AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_an_answer_that_was_changed_on_its_way(level: AuthLevel) -> None:
    client, dialogue = log_on(level, NtlmAuth())
    _, buffers = client.call(1, b"stub")
    dialogue.say(b"".join(buffers))
    answer = bytearray(sent(dialogue.tell(Answered(2, b"answer"))))
    answer[25] ^= 1
    with pytest.raises(BadSeal):
        list(client.receive(bytes(answer)))


@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_a_bare_answer_is_refused_and_a_bare_fault_is_not(level: AuthLevel) -> None:
    client, dialogue = log_on(level, NtlmAuth())
    client.call(1, b"stub")
    with pytest.raises(BadSeal):
        list(client.receive(raw.response(b"bare")))
    client, dialogue = log_on(level, NtlmAuth())
    _, buffers = client.call(1, b"stub")
    dialogue.say(b"".join(buffers))
    fault = sent(dialogue.tell(Faulted(2, 0xC00E0007)))
    assert list(client.receive(fault)) == [Failed(2, 0xC00E0007, False)]


def test_a_wrong_password_shows_at_the_first_call() -> None:  # RR-9
    client, dialogue = log_on(AuthLevel.PRIVACY, NtlmAuth(NtlmPeer(nt_hash=bytes(16))))
    _, buffers = client.call(1, b"stub")
    assert list(client.receive(dialogue.say(b"".join(buffers)))) == [Failed(2, 5, True)]
