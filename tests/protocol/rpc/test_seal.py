"""Signing and sealing by the example of MS-NLMP 4.2.4, and against a client by hand."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.rpc.seal import BadSeal, NtlmSeal, rc4
from tests.protocol.rpc.ntlm_peer import FLAGS, KEY_56, KEY_128, KEY_EXCH, PeerSession, Rc4

KEY = b"\x55" * 16
WEAKER = [FLAGS, FLAGS & ~KEY_128, FLAGS & ~(KEY_128 | KEY_56), FLAGS & ~KEY_EXCH]


def test_the_example_of_the_specification() -> None:  # MS-NLMP 4.2.4.4
    seal = NtlmSeal(KEY, 0xE28A8233, server=False)
    sealed, signature = seal.protect(b"", "Plaintext".encode("utf-16-le"), b"", encrypt=True)
    assert bytes(sealed).hex() == "54e50165bf1936dc996020c1811b0f06fb5f"
    assert signature.hex() == "010000007fb38ec5c55d497600000000"


@pytest.mark.parametrize("flags", WEAKER)
@pytest.mark.parametrize("encrypt", [True, False])
def test_both_ways_with_a_client_by_hand(flags: int, encrypt: bool) -> None:
    seal, peer = NtlmSeal(KEY, flags), PeerSession(KEY, flags)
    for number in range(3):  # one stream, one counter per direction
        body = bytes([number]) * 40
        if encrypt:
            sealed, signature = peer.seal(b"head", body, b"tail")
        else:
            sealed, signature = body, peer.sign(b"head" + body + b"tail")
        assert seal.unprotect(b"head", sealed, b"tail", signature, encrypt=encrypt) == body
        out, signature = seal.protect(b"h", body, b"t", encrypt=encrypt)
        assert len(signature) == seal.size(encrypt=encrypt) == 16
        if encrypt:
            assert peer.unseal(b"h", bytes(out), b"t", signature) == body
        else:
            assert out == body
            peer.check(b"h" + body + b"t", signature)


@pytest.mark.parametrize("part", range(4))
def test_one_bit_anywhere(part: int) -> None:
    seal, peer = NtlmSeal(KEY, FLAGS), PeerSession(KEY, FLAGS)
    sealed, signature = peer.seal(b"head", b"body", b"tail")
    parts = [b"head", sealed, b"tail", signature]
    parts[part] = bytes([parts[part][0] ^ 1]) + parts[part][1:]
    with pytest.raises(BadSeal):
        seal.unprotect(parts[0], parts[1], parts[2], parts[3], encrypt=True)


def test_a_replay_and_a_gap() -> None:
    seal, peer = NtlmSeal(KEY, FLAGS & ~KEY_EXCH), PeerSession(KEY, FLAGS & ~KEY_EXCH)
    first, second, third = (peer.sign(b"x") for _ in range(3))
    seal.verify(b"x", first)
    with pytest.raises(BadSeal):
        seal.verify(b"x", first)
    other = NtlmSeal(KEY, FLAGS & ~KEY_EXCH)
    other.verify(b"x", first)
    with pytest.raises(BadSeal):
        other.verify(b"x", third)
    assert second != third


def test_rekey_begins_the_streams_anew_and_counts_on() -> None:  # trap 19, MS-SPNG 3.3.5.1
    seal, peer = NtlmSeal(KEY, FLAGS), PeerSession(KEY, FLAGS)
    seal.verify(b"mechTypes", peer.sign(b"mechTypes"))
    peer.check(b"mechTypes", seal.sign(b"mechTypes"))
    seal.rekey()
    peer.rekey()
    sealed, signature = peer.seal(b"", b"body", b"")
    assert struct.unpack_from("<I", signature, 12) == (1,)
    assert seal.unprotect(b"", sealed, b"", signature, encrypt=True) == b"body"


@given(st.binary(min_size=5, max_size=32), st.binary(max_size=100))
def test_rc4(key: bytes, data: bytes) -> None:
    if len(key) in (5, 7, 8, 10, 16, 20, 24, 32):  # what the library takes
        assert rc4(key, data) == Rc4(key).update(data)
