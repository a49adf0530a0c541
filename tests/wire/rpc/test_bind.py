"""bind, bind_ack, bind_nak by hand. C706 12.6.4.3 to 12.6.4.5"""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.model.errors import WireError
from bridge.model.guid import Guid
from bridge.wire.rpc.bind import (
    NDR,
    NDR64,
    NO_SYNTAX,
    Bind,
    BindAck,
    BindNak,
    Proposal,
    Result,
    Syntax,
    features,
)
from bridge.wire.rpc.pdu import Fragment, PduType, pack_pdu
from tests.wire.rpc import raw

ECHO = Syntax(Guid.parse(raw.ECHO_UUID), 1, 0)


def fragment(body: bytes, kind: int = raw.BIND) -> Fragment:
    return Fragment.unpack(raw.pdu(kind, body))


def test_a_bind_of_windows() -> None:  # RR-3: three contexts, n_transfer_syn may exceed 1
    body = raw.bind_body(
        raw.proposal(0, raw.ECHO, raw.NDR),
        raw.proposal(1, raw.ECHO, raw.NDR64, raw.NDR),
        raw.proposal(2, raw.ECHO, raw.features(3)),
        group=77,
        xmit=4280,
        recv=5840,
    )
    bind = Bind.unpack(fragment(body))
    assert (bind.max_xmit, bind.max_recv, bind.group) == (4280, 5840, 77)
    assert bind.proposals == (
        Proposal(0, ECHO, (NDR,)),
        Proposal(1, ECHO, (NDR64, NDR)),
        Proposal(2, ECHO, (features(3),)),
    )
    assert bind.proposals[2].transfers[0].features == 3
    assert NDR.features is None
    assert bind.pack() == body


def test_the_bytes_of_a_bind_ack() -> None:  # C706 12.6.4.4
    ack = BindAck(5840, 4280, 0x1234, (Result(0, 0, NDR), Result(2, 1)), "2103")
    expected = struct.pack("<HHIH", 5840, 4280, 0x1234, 5) + b"2103\0" + b"\0"
    expected += struct.pack("<BxH", 2, 0)
    expected += struct.pack("<HH", 0, 0) + raw.NDR + struct.pack("<HH", 2, 1) + bytes(20)
    assert ack.pack() == expected
    assert BindAck.unpack(fragment(expected, raw.BIND_ACK)) == ack
    assert ack.results[1].transfer == NO_SYNTAX


def test_an_alter_context_response_has_no_address() -> None:
    ack = BindAck(1432, 1432, 1, ())
    assert ack.pack() == struct.pack("<HHIH2xBxH", 1432, 1432, 1, 0, 0, 0)


def test_the_bytes_of_a_bind_nak() -> None:  # C706 12.6.4.5: the versions that we speak
    assert pack_pdu(PduType.BIND_NAK, 1, BindNak(4).pack()) == raw.nak(4)
    assert BindNak.unpack(Fragment.unpack(raw.nak(8))) == BindNak(8)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(11),
        raw.bind_body(count=1),
        raw.bind_body(raw.proposal(0, raw.ECHO, raw.NDR), count=255),
        raw.bind_body(struct.pack("<HBx", 0, 255) + raw.ECHO + raw.NDR, count=1),
    ],
)
def test_counts_that_promise_more_than_there_is(body: bytes) -> None:  # RR-12
    with pytest.raises(WireError):
        Bind.unpack(fragment(body))


def test_a_bind_ack_whose_address_is_longer_than_it() -> None:
    with pytest.raises(WireError):
        BindAck.unpack(fragment(struct.pack("<HHIH", 1, 1, 1, 0xFFFF) + b"2103", raw.BIND_ACK))


@given(st.binary(max_size=120))
def test_any_body(body: bytes) -> None:
    for kind in (Bind, BindAck, BindNak):
        with contextlib.suppress(WireError):
            kind.unpack(fragment(body))


syntaxes = st.builds(
    Syntax, st.binary(min_size=16, max_size=16).map(Guid), *[st.integers(0, 0xFFFF)] * 2
)
sizes = st.integers(0, 0xFFFF)
proposals = st.builds(Proposal, sizes, syntaxes, st.lists(syntaxes, max_size=4).map(tuple))
results = st.builds(Result, sizes, sizes, syntaxes)


@given(
    st.builds(
        Bind, sizes, sizes, st.integers(0, 2**32 - 1), st.lists(proposals, max_size=5).map(tuple)
    )
)
def test_bind_round_trip(bind: Bind) -> None:
    assert Bind.unpack(fragment(bind.pack())) == bind


@given(
    st.builds(
        BindAck,
        sizes,
        sizes,
        st.integers(0, 2**32 - 1),
        st.lists(results, max_size=5).map(tuple),
        st.integers(0, 65535).map(str) | st.just(""),
    )
)
def test_bind_ack_round_trip(ack: BindAck) -> None:
    assert BindAck.unpack(fragment(ack.pack(), raw.BIND_ACK)) == ack
