"""SPNEGO around NTLM, against a client by hand. RFC 4178, trap 19"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.rpc.negotiate import NegotiateAcceptor, NegotiateChooser
from bridge.protocol.rpc.ntlm import AuthFailed
from bridge.wire.rpc.spnego import NTLM_OID, NegState, NegTokenResp
from tests.protocol.rpc.ntlm_peer import NOW, NtlmPeer, PeerSession, acceptor
from tests.wire.rpc.test_spnego import KERBEROS, NTLM, der, init

ALONE, SECOND = der(0x30, NTLM), der(0x30, KERBEROS, NTLM)


def response(token: bytes = b"", mic: bytes = b"", state: int | None = None) -> bytes:
    fields = der(0xA0, bytes((0x0A, 1, state))) if state is not None else b""
    fields += der(0xA2, der(0x04, token)) if token else b""
    fields += der(0xA3, der(0x04, mic)) if mic else b""
    return der(0xA1, der(0x30, fields))


def begin(mech_types: bytes = ALONE) -> tuple[NegotiateAcceptor, NtlmPeer, bytes]:
    """Up to the challenge."""
    negotiate, peer = NegotiateAcceptor(acceptor()), NtlmPeer()
    first = init(mech_types, peer.negotiate if mech_types == ALONE else b"kerberos token")
    answer = NegTokenResp.unpack(negotiate.step(first, NOW))
    assert answer.mechanism == NTLM_OID
    if mech_types == SECOND:
        assert (answer.state, answer.token) == (NegState.REQUEST_MIC, b"")
        answer = NegTokenResp.unpack(negotiate.step(response(peer.negotiate), NOW))
    assert answer.state == NegState.ACCEPT_INCOMPLETE
    return negotiate, peer, answer.token


@pytest.mark.parametrize("mech_types", [ALONE, SECOND])
def test_with_mics_both_ways(mech_types: bytes) -> None:
    negotiate, peer, challenge = begin(mech_types)
    token = peer.authenticate(challenge)
    session = peer.session()
    assert negotiate.seal is None
    answer = NegTokenResp.unpack(negotiate.step(response(token, session.sign(mech_types)), NOW))
    assert (answer.state, answer.token) == (NegState.ACCEPT_COMPLETED, b"")
    session.check(mech_types, answer.mic)
    session.rekey()  # and both counters go on at 1
    assert negotiate.user == "DOM\\ann"
    _exchange(negotiate, session)


def _exchange(negotiate: NegotiateAcceptor, session: PeerSession) -> None:
    assert negotiate.seal is not None
    sealed, signature = session.seal(b"h", b"body", b"t")
    assert negotiate.seal.unprotect(b"h", sealed, b"t", signature, encrypt=True) == b"body"
    out, signature = negotiate.seal.protect(b"h", b"back", b"t", encrypt=True)
    assert session.unseal(b"h", bytes(out), b"t", signature) == b"back"


def test_without_mics_the_counters_begin_at_nothing() -> None:
    negotiate, peer, challenge = begin()
    answer = negotiate.step(response(peer.authenticate(challenge)), NOW)
    assert NegTokenResp.unpack(answer) == NegTokenResp(NegState.ACCEPT_COMPLETED)
    _exchange(negotiate, peer.session())


def test_a_mic_is_needed_when_the_first_choice_was_not_taken() -> None:  # RFC 4178 5
    negotiate, peer, challenge = begin(SECOND)
    with pytest.raises(AuthFailed, match="missing"):
        negotiate.step(response(peer.authenticate(challenge)), NOW)
    assert negotiate.seal is None


def test_a_list_that_was_shortened_on_its_way() -> None:
    negotiate, peer, challenge = begin(ALONE)
    token = peer.authenticate(challenge)
    with pytest.raises(AuthFailed, match="wrong"):
        negotiate.step(response(token, peer.session().sign(SECOND)), NOW)
    assert negotiate.seal is None


def test_only_kerberos() -> None:
    with pytest.raises(AuthFailed, match="NTLM"):
        NegotiateAcceptor(acceptor()).step(init(der(0x30, KERBEROS), b"x"), NOW)


def test_a_client_that_rejects() -> None:
    negotiate, _, _ = begin()
    with pytest.raises(AuthFailed):
        negotiate.step(response(state=2), NOW)


def test_a_first_token_without_ntlm_inside() -> None:
    """The client waits to hear that it is NTLM."""
    negotiate, peer = NegotiateAcceptor(acceptor()), NtlmPeer()
    assert NegTokenResp.unpack(negotiate.step(init(ALONE), NOW)).token == b""
    challenge = NegTokenResp.unpack(negotiate.step(response(peer.negotiate), NOW)).token
    negotiate.step(response(peer.authenticate(challenge)), NOW)
    assert negotiate.user == "DOM\\ann"


def test_a_wrong_password() -> None:
    negotiate, _, challenge = begin()
    with pytest.raises(AuthFailed):
        negotiate.step(response(NtlmPeer(nt_hash=bytes(16)).authenticate(challenge)), NOW)
    assert negotiate.seal is None


class Kerberos:
    """Takes anything."""

    user, seal = "R\\ann", None

    def step(self, token: bytes, now: object) -> bytes:
        return b"kerberos"


def test_kerberos_if_the_client_would_rather() -> None:
    old = bytes.fromhex("06092a864882f712010202")  # 1.2.840.48018.1.2.2, as Windows has it first
    for mech_types in (der(0x30, KERBEROS, NTLM), der(0x30, old, KERBEROS, NTLM)):
        chooser = NegotiateChooser(Kerberos(), NegotiateAcceptor(acceptor()))
        assert (chooser.user, chooser.seal) == ("", None)
        assert chooser.step(init(mech_types, b"x"), NOW) == b"kerberos"
        assert chooser.user == "R\\ann"
    chooser = NegotiateChooser(Kerberos(), NegotiateAcceptor(acceptor()))
    answer = chooser.step(init(ALONE, NtlmPeer().negotiate), NOW)
    assert NegTokenResp.unpack(answer).mechanism == NTLM_OID


@pytest.mark.parametrize("token", [init(ALONE, b"x"), init(der(0x30)), b"nonsense"])
def test_who_has_no_kerberos_where_there_is_nothing_else(token: bytes) -> None:
    with pytest.raises(AuthFailed):
        NegotiateChooser(Kerberos(), None).step(token, NOW)


@given(st.binary(max_size=100), st.integers(0, 2))
def test_any_token(data: bytes, where: int) -> None:
    negotiate = NegotiateAcceptor(acceptor()) if where == 0 else begin()[0]
    token = response(data) if where == 2 and data else data
    with pytest.raises(AuthFailed):
        negotiate.step(token, NOW)
