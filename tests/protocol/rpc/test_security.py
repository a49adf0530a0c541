"""Security contexts of a connection. RR-4, RR-8, RR-9"""

from __future__ import annotations

import pytest

from bridge.model.errors import ProtocolError
from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.ntlm import Acceptor, AuthFailed
from bridge.protocol.rpc.seal import BadSeal
from bridge.protocol.rpc.security import MOST, Denied, SecurityTable, UnknownAuthType
from bridge.wire.rpc.pdu import Fragment, Verifier
from tests.protocol.rpc.ntlm_peer import NOW, NtlmPeer, acceptor, negotiate
from tests.wire.rpc import raw

NTLM = 10


def make(auth_type: int, level: AuthLevel) -> Acceptor | None:
    return acceptor(strong=level >= AuthLevel.INTEGRITY) if auth_type == NTLM else None


def fragment(auth: bytes = b"") -> Fragment:
    return Fragment.unpack(raw.request(b"stub", auth=auth))


def log_on(
    table: SecurityTable, level: AuthLevel, context: int = 0, peer: NtlmPeer | None = None
) -> NtlmPeer:
    peer = peer or NtlmPeer()
    answer = table.step(Verifier(NTLM, level, context, peer.negotiate), NOW)
    assert answer is not None
    assert (answer.type, answer.level, answer.context) == (NTLM, level, context)
    assert table.pending
    table.finish(Verifier(NTLM, level, context, peer.authenticate(answer.value)), NOW)
    assert not table.pending
    return peer


def test_without_authentication_everybody_is_anonymous() -> None:
    assert SecurityTable(make).of(fragment()) is None


@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.CALL, AuthLevel.PACKET])
def test_below_integrity_requests_need_no_verifier(level: AuthLevel) -> None:  # RR-8
    table = SecurityTable(make)
    log_on(table, level)
    context = table.of(fragment())
    assert context is not None
    assert (context.user, context.level, context.signs) == ("DOM\\ann", level, False)
    assert context.open(fragment(), 24) == b"stub"


def test_connect_does_not_look_at_verifiers() -> None:
    table = SecurityTable(make)
    log_on(table, AuthLevel.CONNECT)
    one = fragment(raw.trailer(NTLM, 2, bytes(16)))
    context = table.of(one)
    assert context is not None
    assert context.open(one, 24) == b"stub"
    assert not context.signs


def test_who_signs_at_packet_level_must_go_on_with_it() -> None:
    table = SecurityTable(make)
    session = log_on(table, AuthLevel.PACKET).session()
    bare = raw.request(b"stub", auth=raw.trailer(NTLM, 4, bytes(16)))
    one = Fragment.unpack(bare[:-16] + session.sign(bare[:-16]))
    context = table.of(one)
    assert context is not None
    assert context.open(one, 24) == b"stub"
    assert context.signs
    with pytest.raises(Denied) as caught:
        table.of(fragment())
    assert caught.value.fatal


@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_above_it_they_do(level: AuthLevel) -> None:
    table = SecurityTable(make)
    log_on(table, level)
    with pytest.raises(Denied) as caught:
        table.of(fragment())
    assert caught.value.fatal
    one = fragment(raw.trailer(NTLM, level, bytes(16)))
    context = table.of(one)
    assert context is not None
    with pytest.raises(BadSeal):
        context.open(one, 24)


@pytest.mark.parametrize(
    "auth",
    [raw.trailer(NTLM, 5, bytes(16)), raw.trailer(9, 6, bytes(16)), raw.trailer(NTLM, 2, b"x")],
)
def test_a_level_or_type_other_than_agreed_on(auth: bytes) -> None:
    table = SecurityTable(make)
    log_on(table, AuthLevel.PRIVACY)
    with pytest.raises(Denied) as caught:
        table.of(fragment(auth))
    assert caught.value.fatal


def test_an_unknown_context() -> None:
    table = SecurityTable(make)
    log_on(table, AuthLevel.PRIVACY)
    with pytest.raises(Denied):
        table.of(fragment(raw.trailer(NTLM, 6, bytes(16), context=9)))
    with pytest.raises(Denied):
        SecurityTable(make).of(fragment(raw.trailer(NTLM, 6, bytes(16))))


def test_a_failed_auth3_shows_at_the_next_request() -> None:  # RR-9
    table = SecurityTable(make)
    with pytest.raises(AuthFailed):
        log_on(table, AuthLevel.CONNECT, peer=NtlmPeer(nt_hash=bytes(16)))
    assert not table.pending
    for _ in range(2):
        with pytest.raises(Denied):
            table.of(fragment())


def test_a_request_before_the_proof() -> None:  # RR-9: at every level, connect included
    table = SecurityTable(make)
    table.step(Verifier(NTLM, 2, 0, negotiate()), NOW)
    with pytest.raises(Denied):
        table.of(fragment())


def test_two_contexts_side_by_side() -> None:  # RR-4
    table = SecurityTable(make)
    log_on(table, AuthLevel.PRIVACY, context=1)
    log_on(table, AuthLevel.CONNECT, context=2, peer=NtlmPeer(user="Ann", domain="X"))
    first = table.of(fragment(raw.trailer(NTLM, 6, bytes(16), context=1)))
    second = table.of(fragment())
    assert first is not None
    assert second is not None
    assert (first.user, second.user) == ("DOM\\ann", "X\\Ann")


def test_a_token_for_a_context_that_is_complete() -> None:
    table = SecurityTable(make)
    log_on(table, AuthLevel.CONNECT)
    with pytest.raises(AuthFailed):
        table.step(Verifier(NTLM, 2, 0, negotiate()), NOW)


@pytest.mark.parametrize("verifier", [None, Verifier(NTLM, 2, 5, b"x")])
def test_auth3_out_of_nowhere(verifier: Verifier | None) -> None:
    with pytest.raises(ProtocolError, match="auth3"):
        SecurityTable(make).finish(verifier, NOW)


def test_auth3_that_is_not_the_last_token() -> None:
    table = SecurityTable(make)

    class Endless:
        seal, user = None, ""

        def step(self, token: bytes, now: object) -> bytes:
            return b"more"

    table = SecurityTable(lambda *_: Endless())
    table.step(Verifier(NTLM, 6, 0, b"a"), NOW)
    with pytest.raises(AuthFailed):
        table.finish(Verifier(NTLM, 6, 0, b"b"), NOW)
    assert not table.pending


@pytest.mark.parametrize("level", [0, 1, 7, 255])
def test_levels_that_are_none(level: int) -> None:
    with pytest.raises(ProtocolError):
        SecurityTable(make).step(Verifier(NTLM, level, 0, negotiate()), NOW)


def test_an_unknown_kind_and_too_many() -> None:
    with pytest.raises(UnknownAuthType):
        SecurityTable(make).step(Verifier(16, 6, 0, b"x"), NOW)
    table = SecurityTable(make)
    for number in range(MOST):
        table.step(Verifier(NTLM, 6, number, negotiate()), NOW)
    with pytest.raises(ProtocolError):
        table.step(Verifier(NTLM, 6, MOST, negotiate()), NOW)
