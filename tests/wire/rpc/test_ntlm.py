"""NTLM messages by hand. MS-NLMP 2.2"""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.rpc.ntlm import (
    Authenticate,
    Av,
    Challenge,
    Negotiate,
    NtResponse,
    pack_av_pairs,
    unpack_av_pairs,
)
from tests.protocol.rpc.ntlm_peer import FLAGS, NtlmPeer, negotiate

PEER = NtlmPeer(user="ann", domain="DOM")
MESSAGE = PEER.message(b"N" * 60, b"K" * 16, FLAGS)


def test_negotiate() -> None:
    assert Negotiate.unpack(negotiate()).flags == FLAGS
    assert Negotiate.unpack(negotiate()[:16]).flags == FLAGS  # without names


def test_the_bytes_of_a_challenge() -> None:  # MS-NLMP 2.2.1.2
    info = pack_av_pairs({Av.NB_COMPUTER_NAME: "B".encode("utf-16-le")})
    assert info == struct.pack("<HH2sHH", 1, 2, b"B\0", 0, 0)
    made = Challenge(0x12345678, bytes(range(8)), "BR", info).pack()
    expected = b"NTLMSSP\0" + struct.pack("<IHHI", 2, 4, 4, 56) + struct.pack("<I", 0x12345678)
    expected += bytes(range(8)) + bytes(8) + struct.pack("<HHI", 10, 10, 60)
    assert made[:48] == expected
    assert made[56:] == "BR".encode("utf-16-le") + info


def test_authenticate() -> None:  # MS-NLMP 2.2.1.3
    message = Authenticate.unpack(MESSAGE)
    assert (message.user, message.domain) == ("ann", "DOM")
    assert (message.nt_response, message.session_key) == (b"N" * 60, b"K" * 16)
    marked = Authenticate.unpack(MESSAGE[:72] + b"M" * 16 + MESSAGE[88:])
    assert marked.mic == b"M" * 16
    assert marked.without_mic == MESSAGE


def patched(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(MESSAGE)
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        MESSAGE[:63],
        b"NTLMSSQ\0" + MESSAGE[8:],
        patched(8, "<I", 1),
        patched(20, "<HHI", 60, 60, len(MESSAGE) - 59),
        patched(20, "<HHI", 60, 60, 0xFFFFFFFF),
        patched(20, "<HHI", 0xFFFF, 0xFFFF, 88),
        patched(36, "<HHI", 3, 3, 88),  # half a character
        patched(60, "<I", FLAGS & ~1),  # OEM
    ],
)
def test_messages_that_break_the_layout(data: bytes) -> None:
    with pytest.raises(WireError):
        Authenticate.unpack(data)


def test_an_empty_field_may_point_anywhere() -> None:
    assert Authenticate.unpack(patched(52, "<HHI", 0, 0, 0xFFFFFFFF)).session_key == b""


BLOB = b"\1\1" + bytes(6) + bytes(8) + b"\xaa" * 8 + bytes(4)


def test_an_ntlm_v2_response() -> None:  # MS-NLMP 2.2.2.8
    pairs = struct.pack("<HHI", 6, 4, 2) + bytes(4)
    response = NtResponse.unpack(b"P" * 16 + BLOB + pairs + bytes(4))
    assert (response.proof, response.blob, response.av_flags) == (
        b"P" * 16,
        BLOB + pairs + bytes(4),
        2,
    )
    assert NtResponse.unpack(b"P" * 16 + BLOB).av_flags == 0  # impacket leaves the end out


@pytest.mark.parametrize(
    "data", [b"", bytes(24), b"P" * 16 + b"\2" + BLOB[1:], bytes(16) + BLOB[:27]]
)
def test_what_is_no_ntlm_v2_response(data: bytes) -> None:  # 24 bytes: NTLMv1
    with pytest.raises(WireError):
        NtResponse.unpack(data)


def test_av_pairs_that_break_off() -> None:
    with pytest.raises(WireError):
        unpack_av_pairs(struct.pack("<HH", 2, 0xFFFF))
    assert unpack_av_pairs(b"\1\0") == {}


@given(st.dictionaries(st.sampled_from([kind for kind in Av if kind]), st.binary(max_size=50)))
def test_av_round_trip(pairs: dict[Av, bytes]) -> None:
    assert unpack_av_pairs(pack_av_pairs(pairs)) == pairs


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for raw in (data, MESSAGE[:12] + data, b"NTLMSSP\0\1\0\0\0" + data):
        for kind in (Negotiate, Authenticate, NtResponse):
            with suppress(WireError):
                kind.unpack(raw)
