"""MD4 by the vectors of RFC 1320 A.5, and the hash of a password by MS-NLMP 4.2.2.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impacket.ntlm import compute_nthash

from bridge.protocol.rpc.md4 import md4, nt_hash

VECTORS = {
    "": "31d6cfe0d16ae931b73c59d7e0c089c0",
    "a": "bde52cb31de33e46245e05fbdbd6fb24",
    "abc": "a448017aaf21d8525fc10ae87aa6729d",
    "message digest": "d9130a8164549fe818874806e1c7014b",
    "abcdefghijklmnopqrstuvwxyz": "d79e1c308aa5bbcdeea8ed63df412da9",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": (
        "043f8582f241db351ce627e153e7f0e4"
    ),
    "1234567890" * 8: "e33b4ddc9c38f2199c3e7b164fcc0536",
}


@pytest.mark.parametrize("text", VECTORS)
def test_vectors(text: str) -> None:
    assert md4(text.encode()).hex() == VECTORS[text]


def test_nt_hash() -> None:  # MS-NLMP 4.2.2.1.2
    assert nt_hash("Password").hex() == "a4f49c406510bdcab6824ee7c30fd852"


@given(st.text(max_size=80, alphabet=st.characters(exclude_categories=["Cs"])))
def test_as_another_implementation_does(password: str) -> None:
    assert nt_hash(password) == compute_nthash(password)
