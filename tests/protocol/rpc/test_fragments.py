"""Stubs cut into fragments and put together. RR-7, RR-8"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.protocol.rpc.calls import AuthLevel
from bridge.protocol.rpc.fragments import SMALLEST, Assembly, Protection, Target, cut
from bridge.protocol.rpc.seal import BadSeal, NtlmSeal
from bridge.wire.rpc.pdu import CALL_HEADER, Fragment, PduType
from tests.protocol.rpc.ntlm_peer import FLAGS, PeerSession
from tests.wire.rpc import raw

KEY = b"\x55" * 16
RESPONSE = Target(PduType.RESPONSE, 2, 0)


def protection(level: AuthLevel, *, server: bool = True) -> Protection:
    return Protection(NtlmSeal(KEY, FLAGS, server=server), 10, level, 79231)


def written(stub: bytes | list[bytes], limit: int, how: Protection | None = None) -> list[bytes]:
    return raw.pdus(b"".join(cut(RESPONSE, stub, limit, how)))


def test_one_fragment() -> None:
    assert written(b"stub", 5840) == [raw.response(b"stub")]
    assert written(b"", 5840) == [raw.response(b"")]
    assert written([], 5840) == [raw.response(b"")]
    assert written([b"", b"st", b"", b"ub"], 5840) == [raw.response(b"stub")]


def test_the_bytes_of_three() -> None:  # RR-7: alloc_hint = bytes still to come
    room = SMALLEST - 24
    stub = bytes(room) + b"\1" * room + b"end!"
    assert written(stub, SMALLEST) == [
        raw.response(bytes(room), flags=raw.FIRST, hint=2 * room + 4),
        raw.response(b"\1" * room, flags=0, hint=room + 4),
        raw.response(b"end!", flags=raw.LAST, hint=4),
    ]


def test_a_stub_that_fills_its_last_fragment() -> None:
    room = SMALLEST - 24
    assert [one[3] for one in written(bytes(2 * room), SMALLEST)] == [raw.FIRST, raw.LAST]


def test_without_protection_nothing_is_copied() -> None:
    body = bytes(100_000)
    pieces = cut(RESPONSE, [b"head", body, b"tail"], 5840, None)
    views = [piece for piece in pieces if isinstance(piece, memoryview)]
    assert sum(view.nbytes for view in views) == 100_008
    assert all(view.obj in (b"head", body, b"tail") for view in views)


@pytest.mark.parametrize("level", [AuthLevel.PACKET, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_what_a_client_by_hand_reads(level: AuthLevel) -> None:  # RR-8, trap 18
    session, stub = PeerSession(KEY, FLAGS), bytes(range(250)) * 20
    got = b""
    for one in written(stub, SMALLEST, protection(level)):
        assert len(one) <= SMALLEST
        end = len(one) - 24
        kind, number, pad, _, context = struct.unpack_from("<BBBBI", one, end)
        assert (kind, number, context) == (10, level, 79231)
        assert (end - 24) % 16 == 0  # the stub and its padding
        if level == AuthLevel.PRIVACY:
            plain = session.unseal(one[:24], one[24:end], one[end : end + 8], one[end + 8 :])
        else:
            session.check(one[: end + 8], one[end + 8 :])
            plain = one[24:end]
        got += plain[: len(plain) - pad]
    assert got == stub


@given(st.lists(st.binary(max_size=4000), max_size=5), st.sampled_from([1, 5, 6]))
def test_round_trip(stub: list[bytes], number: int) -> None:
    level = AuthLevel(number)
    ours = None if level is AuthLevel.NONE else protection(level)
    theirs = None if level is AuthLevel.NONE else protection(level, server=False)
    whole = Assembly()
    for one in written(stub, SMALLEST, ours):
        fragment = Fragment.unpack(one)
        if theirs is None:
            whole.add(one[CALL_HEADER : fragment.body_end])
        else:
            whole.add(theirs.open(fragment, CALL_HEADER))
    assert whole.whole() == b"".join(stub)
    assert whole.size == len(whole.whole())


def test_a_fragment_without_its_verifier() -> None:
    with pytest.raises(BadSeal):
        protection(AuthLevel.PRIVACY).open(Fragment.unpack(raw.response(b"x")), CALL_HEADER)


def test_four_mebibytes_take_two_buffers_per_fragment() -> None:
    pieces = cut(RESPONSE, bytes(4 << 20), 5840, None)
    fragments = -(-(4 << 20) // (5840 - 24))
    assert len(pieces) == 2 * fragments
