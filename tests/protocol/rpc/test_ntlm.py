"""NTLM, the accepting side, against a client by hand. MS-NLMP 3.2, traps 17 and 18"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.events import Instant
from bridge.protocol.rpc.guesses import Guesses
from bridge.protocol.rpc.ntlm import AuthFailed, HostNames, NtlmAcceptor, ntowf_v2
from tests.protocol.rpc.ntlm_peer import (
    ANONYMOUS,
    ESS,
    FLAGS,
    KEY_56,
    KEY_128,
    KEY_EXCH,
    NONCE,
    NOW,
    UNICODE,
    NtlmPeer,
    OldPeer,
    acceptor,
    challenge_parts,
    negotiate,
)


def run(peer: NtlmPeer, ntlm: NtlmAcceptor | None = None) -> NtlmAcceptor:
    ntlm = ntlm or acceptor()
    assert ntlm.step(peer.authenticate(ntlm.step(peer.negotiate, NOW)), NOW) == b""
    return ntlm


def test_the_key_of_the_specification() -> None:  # MS-NLMP 4.2.4.1.1
    password = bytes.fromhex("a4f49c406510bdcab6824ee7c30fd852")
    assert ntowf_v2(password, "User", "Domain").hex() == "0c868a403bfd7a93a3001ef22ef02e3f"


def test_the_challenge() -> None:  # MS-NLMP 3.2.5.1.1
    flags, nonce, info = challenge_parts(acceptor().step(negotiate(), NOW))
    assert nonce == NONCE
    assert flags & FLAGS == FLAGS
    assert flags & 0x00820000 == 0x00820000  # target info, of a server
    found = {}
    while info != bytes(4):
        kind, size = struct.unpack_from("<HH", info)
        found[kind] = info[4 : 4 + size]
        info = info[4 + size :]
    assert found[1] == found[2] == "BRIDGE01".encode("utf-16-le")
    assert found[3] == found[4] == "bridge01.example.com".encode("utf-16-le")
    ticks = struct.unpack("<Q", found[7])[0]  # 100 ns since 1601
    assert ticks / 10_000_000 - 11_644_473_600 == NOW.unix


def test_only_what_the_client_has_is_agreed_on() -> None:
    flags, _, _ = challenge_parts(acceptor().step(negotiate(FLAGS & ~KEY_128), NOW))
    assert not flags & KEY_128


@pytest.mark.parametrize(
    "peer",
    [
        NtlmPeer(),
        NtlmPeer(mic=False),  # impacket has none
        NtlmPeer(mic=False, blob_end=b""),  # and leaves out the last four zeros
        NtlmPeer(flags=FLAGS & ~KEY_EXCH),
        NtlmPeer(flags=FLAGS & ~KEY_128),
        NtlmPeer(flags=FLAGS & ~(KEY_128 | KEY_56)),
        NtlmPeer(user="Ann", domain=""),
    ],
)
def test_who_is_let_in(peer: NtlmPeer) -> None:
    ntlm = run(peer)
    assert ntlm.user == (f"{peer.domain}\\{peer.user}" if peer.domain else peer.user)
    assert ntlm.seal is not None
    session = peer.session()
    sealed, signature = session.seal(b"h", b"body", b"t")
    assert ntlm.seal.unprotect(b"h", sealed, b"t", signature, encrypt=True) == b"body"


@pytest.mark.parametrize(
    "peer",
    [
        NtlmPeer(nt_hash=bytes(16)),
        NtlmPeer(user="bob"),
        NtlmPeer(user="bob", nt_hash=bytes(16)),  # the key that stands for nobody
        NtlmPeer(user=""),
        NtlmPeer(auth_flags=FLAGS | ANONYMOUS),
        NtlmPeer(user="DOM\\ann"),
        NtlmPeer(domain="A\\B"),
        NtlmPeer(flags=FLAGS & ~KEY_128, auth_flags=FLAGS),  # never offered
        NtlmPeer(auth_flags=FLAGS & ~ESS),
    ],
)
def test_who_is_refused(peer: NtlmPeer) -> None:
    ntlm = acceptor()
    message = peer.authenticate(ntlm.step(peer.negotiate, NOW))
    with pytest.raises(AuthFailed) as caught:
        ntlm.step(message, NOW)
    assert caught.value.reason == "rpc-auth-failed"
    assert ntlm.seal is None
    assert ntlm.user == ""


@pytest.mark.parametrize("flags", [FLAGS & ~ESS, FLAGS & ~UNICODE, FLAGS & ~0x200, 0])
def test_ntlm_v1_clients_hear_it_at_once(flags: int) -> None:
    with pytest.raises(AuthFailed):
        acceptor().step(negotiate(flags), NOW)


@pytest.mark.parametrize("size", [0, 16, 24])
def test_an_ntlm_v1_response(size: int) -> None:
    ntlm, peer = acceptor(), NtlmPeer(mic=False)
    ntlm.step(peer.negotiate, NOW)
    with pytest.raises(AuthFailed):
        ntlm.step(peer.message(bytes(size), bytes(16), FLAGS), NOW)


@pytest.mark.parametrize("at", [12, 72, 80, -1])
def test_a_mic_over_all_three_messages(at: int) -> None:  # MS-NLMP 3.2.5.1.2
    ntlm, peer = acceptor(), NtlmPeer()
    message = bytearray(peer.authenticate(ntlm.step(peer.negotiate, NOW)))
    message[at] ^= 1
    with pytest.raises(AuthFailed):
        ntlm.step(bytes(message), NOW)


def test_a_negotiate_that_was_changed_on_its_way() -> None:
    ntlm, peer = acceptor(), NtlmPeer()
    challenge = ntlm.step(negotiate(FLAGS & ~0x10), NOW)
    with pytest.raises(AuthFailed, match="MIC"):
        ntlm.step(peer.authenticate(challenge), NOW)


def test_no_session_key() -> None:
    ntlm, peer = acceptor(), NtlmPeer(mic=False)
    message = bytearray(peer.authenticate(ntlm.step(peer.negotiate, NOW)))
    struct.pack_into("<HH", message, 52, 15, 15)
    with pytest.raises(AuthFailed, match="session key"):
        ntlm.step(bytes(message), NOW)


def test_a_sharp_s_stays_one_letter() -> None:  # as Windows has it
    assert ntowf_v2(bytes(16), "straße", "") == ntowf_v2(bytes(16), "STRAßE", "")
    assert ntowf_v2(bytes(16), "straße", "") != ntowf_v2(bytes(16), "STRASSE", "")


def test_a_token_too_many() -> None:
    ntlm = run(NtlmPeer())
    with pytest.raises(AuthFailed):
        ntlm.step(negotiate(), NOW)


def test_names_of_a_host() -> None:
    assert HostNames.of("Bridge01.example.COM") == HostNames("BRIDGE01", "bridge01.example.com")
    assert HostNames.of("a-very-long-host-name").netbios == "A-VERY-LONG-HOS"


@given(st.binary(max_size=200), st.booleans())
def test_any_token(token: bytes, later: bool) -> None:
    ntlm = acceptor()
    if later:
        ntlm.step(negotiate(), NOW)
        token = b"NTLMSSP\0\3\0\0\0" + token
    with pytest.raises(AuthFailed):
        ntlm.step(token, NOW)


# -- keys that are too short ------------------------------------------------------------------

SHORT = [FLAGS & ~KEY_128, FLAGS & ~(KEY_128 | KEY_56)]


@pytest.mark.parametrize("flags", SHORT)
def test_40_and_56_bits_protect_nothing(flags: int) -> None:
    """A client that offers no more hears it at once."""
    with pytest.raises(AuthFailed, match="128-bit keys required") as caught:
        acceptor(strong=True).step(negotiate(flags), NOW)
    assert caught.value.reason == "rpc-auth-weak-key"


@pytest.mark.parametrize("flags", SHORT)
def test_nor_if_the_client_gives_up_the_128_that_it_offered(flags: int) -> None:
    ntlm, peer = acceptor(strong=True), NtlmPeer(auth_flags=flags)
    message = peer.authenticate(ntlm.step(peer.negotiate, NOW))
    with pytest.raises(AuthFailed, match="128-bit keys required"):
        ntlm.step(message, NOW)
    assert ntlm.seal is None


@pytest.mark.parametrize("peer", [NtlmPeer(), NtlmPeer(flags=FLAGS & ~(KEY_EXCH | KEY_56))])
def test_128_bits_do(peer: NtlmPeer) -> None:
    assert run(peer, acceptor(strong=True)).seal is not None


# -- NTLMv1 with extended session security ----------------------------------------------------


def ignore(_peer: str, _user: str) -> None:
    pass


@pytest.mark.parametrize(
    "peer", [OldPeer(), OldPeer(flags=FLAGS & ~KEY_EXCH), OldPeer(user="Ann", domain="")]
)
@pytest.mark.parametrize("strong", [False, True])
def test_an_old_client_where_it_is_allowed(peer: OldPeer, strong: bool) -> None:
    """MS-NLMP 3.3.1, 3.4.5.1: DES over both challenges; the key is made from the client's, too."""
    heard: list[tuple[str, str]] = []
    ntlm = acceptor(peer="10.0.0.9", strong=strong, on_old=lambda *who: heard.append(who))
    run(peer, ntlm)
    assert ntlm.user == (f"{peer.domain}\\{peer.user}" if peer.domain else peer.user)
    assert heard == [("10.0.0.9", ntlm.user)]
    assert ntlm.seal is not None
    sealed, signature = peer.session().seal(b"h", b"body", b"t")
    assert ntlm.seal.unprotect(b"h", sealed, b"t", signature, encrypt=True) == b"body"


def refusal(peer: NtlmPeer, **options: Any) -> AuthFailed:
    ntlm = acceptor(**options)
    message = peer.authenticate(ntlm.step(peer.negotiate, NOW))
    with pytest.raises(AuthFailed) as caught:
        ntlm.step(message, NOW)
    assert ntlm.seal is None
    assert ntlm.user == ""
    return caught.value


def test_an_old_client_elsewhere_is_told_in_the_log_what_would_let_it_in() -> None:
    refused = refusal(OldPeer())
    assert refused.reason == "rpc-auth-old-ntlm"
    assert "rpc.old_ntlm: true" in refused.detail


@pytest.mark.parametrize("lm_response", [b"", bytes(8), b"\xaa" * 24, b"\xaa" * 8 + bytes(15)])
def test_plain_ntlmv1_never(lm_response: bytes) -> None:
    """MS-NLMP 3.3.1: with extended session security LmChallengeResponse is the client's challenge
    and Z(16). Without it the response is over the server's challenge alone."""
    peer = OldPeer()
    peer.lm_response = lm_response
    assert refusal(peer, on_old=ignore).reason == "rpc-auth-old-ntlm"
    with pytest.raises(AuthFailed):
        acceptor(on_old=ignore).step(negotiate(FLAGS & ~ESS), NOW)
    assert refusal(OldPeer(auth_flags=FLAGS & ~ESS), on_old=ignore).reason == "rpc-auth-failed"


@pytest.mark.parametrize("flags", SHORT)
def test_an_old_client_has_128_bit_keys_at_every_level(flags: int) -> None:
    assert refusal(OldPeer(flags=flags), on_old=ignore).reason == "rpc-auth-weak-key"


@pytest.mark.parametrize(
    "peer",
    [OldPeer(nt_hash=bytes(16)), OldPeer(user="bob"), OldPeer(user="bob", nt_hash=bytes(16))],
)
def test_an_old_client_with_a_wrong_password_is_slowed_down(peer: OldPeer) -> None:
    guesses = Guesses()
    found = [refusal(peer, guesses=guesses, on_old=ignore).reason for _ in range(6)]
    assert found == ["rpc-auth-failed"] * 5 + ["rpc-auth-guessing"]


def test_new_clients_are_not_named_as_old_ones() -> None:
    heard: list[tuple[str, str]] = []
    run(NtlmPeer(), acceptor(on_old=lambda *who: heard.append(who)))
    assert heard == []


# -- guessing ---------------------------------------------------------------------------------


def attempt(guesses: Guesses, peer: NtlmPeer, *, address: str = "a", mono: float = 0.0) -> str:
    """The reason of its refusal, empty if it is in."""
    ntlm, now = acceptor(guesses=guesses, peer=address), Instant(mono, NOW.unix)
    try:
        ntlm.step(peer.authenticate(ntlm.step(peer.negotiate, now)), now)
    except AuthFailed as refused:
        return refused.reason
    return ""


WRONG = NtlmPeer(nt_hash=bytes(16))


def test_after_some_wrong_passwords_the_right_one_has_to_wait() -> None:
    guesses = Guesses()
    for _ in range(5):
        assert attempt(guesses, WRONG) == "rpc-auth-failed"
    assert attempt(guesses, WRONG) == "rpc-auth-guessing"
    assert attempt(guesses, NtlmPeer()) == "rpc-auth-guessing"
    assert attempt(guesses, NtlmPeer(user="ANN", domain="")) == "rpc-auth-guessing"
    assert attempt(guesses, NtlmPeer(), address="b") == ""  # from elsewhere it has not
    assert attempt(guesses, NtlmPeer(), mono=60.0) == ""
    assert attempt(guesses, WRONG, mono=60.0) == "rpc-auth-failed"


def test_a_user_that_does_not_exist_looks_the_same() -> None:
    guesses = Guesses()
    found = [attempt(guesses, NtlmPeer(user="bob")) for _ in range(6)]
    assert found == ["rpc-auth-failed"] * 5 + ["rpc-auth-guessing"]
