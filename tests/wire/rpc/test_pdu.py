"""Fragments byte by byte, cut anyhow, and lying about themselves. C706 12.6, MS-RPCE 2.2.2"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.wire.rpc.pdu import (
    FaultPdu,
    Flags,
    Fragment,
    FragmentReader,
    PduType,
    Request,
    Response,
    Verifier,
    VersionError,
    pack_call_header,
    pack_pdu,
)
from tests.wire.rpc import raw


def one(data: bytes) -> Fragment:
    (fragment,) = FragmentReader().feed(data)
    return fragment


def test_every_pdu_type_has_the_number_of_the_wire() -> None:  # C706 12.6.4
    numbers = {kind.name: kind.value for kind in PduType}
    assert numbers == {
        "REQUEST": 0,
        "RESPONSE": 2,
        "FAULT": 3,
        "BIND": 11,
        "BIND_ACK": 12,
        "BIND_NAK": 13,
        "ALTER_CONTEXT": 14,
        "ALTER_CONTEXT_RESP": 15,
        "AUTH3": 16,
        "SHUTDOWN": 17,
        "CO_CANCEL": 18,
        "ORPHANED": 19,
    }


def test_a_request_with_an_object_and_a_verifier() -> None:  # C706 12.6.4.9, MS-RPCE 2.2.2.11
    body = struct.pack("<IHH", 99, 3, 7) + bytes(range(16)) + b"stub" + b"\xaa" * 4
    auth = raw.trailer(10, 6, b"S" * 16, pad=4, context=79231)
    fragment = one(raw.pdu(raw.REQUEST, body, call_id=5, flags=0x83, auth=auth))
    request = Request.unpack(fragment)
    assert (request.alloc_hint, request.context, request.opnum) == (99, 3, 7)
    assert fragment.data[request.stub_at : fragment.body_end] == b"stub"
    assert fragment.verifier == Verifier(10, 6, 79231, b"S" * 16, 4)
    assert (fragment.call_id, fragment.is_first, fragment.is_last) == (5, True, True)


@pytest.mark.parametrize("kind", [raw.SHUTDOWN, raw.CO_CANCEL, raw.ORPHANED])
def test_a_pdu_that_is_only_a_header(kind: int) -> None:
    fragment = one(raw.pdu(kind, call_id=9))
    assert (fragment.type, fragment.call_id, fragment.end) == (kind, 9, 16)


def test_the_bytes_of_a_fault() -> None:  # RR-11: 32 bytes
    assert FaultPdu(2, 0xC00E0003, 1).pack() == raw.fault(0xC00E0003, ran=True, context=1)
    assert FaultPdu(2, 5, did_not_execute=True).pack() == raw.fault(5)
    assert len(FaultPdu(2, 5).pack()) == 32


def test_a_fault_is_read_with_and_without_its_reserved_bytes() -> None:  # C706 12.6.4.7
    assert FaultPdu.unpack(one(raw.fault(0x1C010002))) == FaultPdu(2, 0x1C010002, 0, True)
    short = raw.pdu(raw.FAULT, struct.pack("<IHHI", 28, 0, 0, 5), call_id=2)
    assert FaultPdu.unpack(one(short)).status == 5
    with pytest.raises(WireError):
        FaultPdu.unpack(one(raw.pdu(raw.FAULT, bytes(10))))


def test_a_verifier_goes_to_a_multiple_of_four() -> None:  # MS-RPCE 2.2.2.11
    verifier = Verifier(9, 6, 1, b"token")
    made = pack_pdu(PduType.AUTH3, 4, b"12345", verifier=verifier)
    padded = raw.trailer(9, 6, b"token", pad=3, context=1)
    assert made == raw.pdu(raw.AUTH3, b"12345" + bytes(3), call_id=4, auth=padded)
    assert one(made).verifier == Verifier(9, 6, 1, b"token", 3)


def test_the_bytes_before_a_stub() -> None:
    head = pack_call_header(PduType.REQUEST, 3, 2, 28, alloc_hint=4, context=0, opnum=1)
    assert head + b"stub" == raw.request(b"stub")
    head = pack_call_header(PduType.RESPONSE, 3, 2, 28, alloc_hint=4, context=0)
    assert head + b"stub" == raw.response(b"stub")
    assert Response.unpack(one(head + b"stub")) == Response(4, 0)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (raw.pdu(raw.REQUEST, drep=b"\0\0\0\0"), "packed_drep"),  # big-endian
        (raw.pdu(raw.REQUEST, drep=b"\x11\0\0\0"), "packed_drep"),  # EBCDIC
        (raw.pdu(raw.REQUEST, drep=b"\x10\1\0\0"), "packed_drep"),  # VAX floats
        (raw.pdu(1), "PTYPE"),
        (raw.pdu(20), "PTYPE"),
        (raw.pdu(raw.BIND, size=15), "frag_length"),
        (raw.pdu(raw.BIND, size=0), "frag_length"),
        (raw.pdu(raw.REQUEST, version=(4, 0)), "rpc_vers"),
        (b"GET / HTTP/1.1\r\n\r\n", "rpc_vers"),
        (raw.pdu(raw.REQUEST, bytes(8), auth_length=1), "auth_length"),
        (raw.pdu(raw.REQUEST, bytes(8), auth_length=17), "auth_length"),
        (raw.pdu(raw.REQUEST, bytes(8), auth_length=0xFFFF), "auth_length"),
        (raw.pdu(raw.REQUEST, bytes(8), auth=raw.trailer(10, 6, b"x", pad=9)), "auth_pad_length"),
    ],
)
def test_what_is_refused_before_anything_is_kept(data: bytes, field: str) -> None:
    with pytest.raises(WireError) as caught:
        list(FragmentReader().feed(data))
    assert caught.value.field == field


def test_only_a_bind_of_another_version_is_answered() -> None:  # C706 12.6.3.1
    with pytest.raises(VersionError):
        list(FragmentReader().feed(raw.pdu(raw.BIND, version=(6, 0))))
    assert one(raw.pdu(raw.BIND, version=(5, 1))).type is PduType.BIND


@pytest.mark.parametrize("size", [0, 7])
def test_a_request_shorter_than_its_header(size: int) -> None:
    with pytest.raises(WireError):
        Request.unpack(one(raw.pdu(raw.REQUEST, bytes(size))))
    with pytest.raises(WireError):  # no room for the object that its flags promise
        Request.unpack(one(raw.pdu(raw.REQUEST, bytes(8 + 15), flags=0x83)))
    with pytest.raises(WireError):
        Response.unpack(one(raw.pdu(raw.RESPONSE, bytes(size))))


def test_padding_cannot_reach_into_the_request_header() -> None:
    auth = raw.trailer(10, 6, bytes(16), pad=5)
    with pytest.raises(WireError):
        Request.unpack(one(raw.pdu(raw.REQUEST, bytes(8 + 4), auth=auth)))


STREAM = raw.bind() + raw.request(b"a" * 300) + raw.pdu(raw.ORPHANED) + raw.request(b"b", call_id=3)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=200))
def test_how_the_stream_is_cut_does_not_matter(steps: list[int]) -> None:
    reader, found, at = FragmentReader(), list[Fragment](), 0
    for step in steps:
        found += reader.feed(STREAM[at : at + step])
        at += step
    found += reader.feed(STREAM[at:])
    assert [fragment.data for fragment in found] == raw.pdus(STREAM)
    assert reader.unfinished == 0


def test_a_reader_keeps_one_unfinished_fragment_at_most() -> None:
    reader = FragmentReader()
    start = raw.pdu(raw.REQUEST, size=0xFFFF)
    assert list(reader.feed(start)) == []
    for _ in range(100):
        assert list(reader.feed(bytes(600))) == []
    assert reader.unfinished == 16 + 60_000 < 0xFFFF
    assert len(list(reader.feed(bytes(0xFFFF - 60_016)))) == 1
    assert reader.unfinished == 0


@given(st.binary(max_size=300))
def test_any_bytes_give_fragments_or_a_wire_error(data: bytes) -> None:
    reader = FragmentReader()
    try:
        for fragment in reader.feed(data):
            assert 16 <= fragment.end <= len(fragment.data)
            assert fragment.body_end >= 16
    except WireError:
        pass


@given(
    st.sampled_from(PduType),
    st.integers(0, 0xFFFFFFFF),
    st.binary(max_size=100),
    st.none()
    | st.builds(
        Verifier,
        *[st.integers(0, 255)] * 2,
        st.integers(0, 2**32 - 1),
        st.binary(min_size=1, max_size=40),
    ),
)
def test_round_trip(kind: PduType, call_id: int, body: bytes, verifier: Verifier | None) -> None:
    fragment = one(pack_pdu(kind, call_id, body, flags=Flags.FIRST, verifier=verifier))
    assert (fragment.type, fragment.call_id, fragment.flags) == (kind, call_id, Flags.FIRST)
    assert fragment.data[16 : fragment.body_end] == body
    if verifier is None:
        assert fragment.verifier is None
    else:
        assert fragment.verifier is not None
        assert fragment.verifier.value == verifier.value
        assert fragment.verifier.trailer()[4:] == verifier.trailer()[4:]
